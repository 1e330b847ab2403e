/** The frames, taken apart by hand, are the messages that `peer.proto` says. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FORMAT as HELLO_FORMAT } from '../../src/replica/forming.js';
import { encodeChunk } from '../../src/wire/chunk.js';
import { CorruptBytes } from '../../src/wire/corrupt.js';
import { encodeHello, readHello } from '../../src/wire/hello.js';
import { encodeMessage, readMessage } from '../../src/wire/message.js';
import { decodeDone, decodeFrame, doneFrame, helloFrame, numberFrame, partFrame } from '../../src/wire/peer-frames.js';
import { decodeFields, encodeFields, FORMAT, messageType } from '../../src/wire/proto.js';
import type { Fields } from '../../src/wire/proto.js';
import * as any from './arbitraries.js';

const asType = (name: string, bytes: Uint8Array): Fields => decodeFields(messageType(name), bytes, name);

describe('a frame', () => {
  it.each(['ControlRequest', 'AppendRequest'])('of parts is a %s', (name) => {
    fc.assert(
      fc.property(any.hello, fc.array(any.message, { maxLength: 4 }), (hello, messages) => {
        const frames = [
          helloFrame(encodeHello(hello)),
          ...messages.map((message) => partFrame(encodeMessage(message))),
        ];
        const fields = asType(name, Buffer.concat(frames));
        expect(readHello(fields['hello'] as Fields)).toEqual(hello);
        expect((fields['messages'] as readonly Fields[]).map(readMessage)).toEqual(messages);
      }),
      { numRuns: 30 },
    );
  });

  it('written by any implementation is read', () => {
    const frame = encodeFields(messageType('ForwardRequest'), {
      calls: [{ id: 1 }, { id: 2 }],
      cancelled: [3, 2 ** 40],
    });
    const { hello, parts, numbers } = decodeFrame(frame, 'frame');
    expect(hello).toBeUndefined();
    expect(parts).toHaveLength(2);
    expect(numbers).toEqual([3, 2 ** 40]);
    expect(asType('ForwardRequest', numberFrame(7))['cancelled']).toHaveLength(1);
  });

  it('of a snapshot carries the chunk, and its answer the request', () => {
    fc.assert(
      fc.property(any.chunk, any.count, (chunk, request) => {
        const bytes = encodeChunk(chunk);
        const fields = asType('InstallSnapshotRequest', partFrame(bytes));
        expect(Buffer.from(fields['chunk'] as Uint8Array).equals(bytes)).toBe(true);
        expect(decodeDone(doneFrame(request))).toBe(request);
        expect(decodeDone(encodeFields(messageType('InstallSnapshotResponse'), { doneRequest: request }))).toBe(
          request,
        );
      }),
      { numRuns: 20 },
    );
  });

  it('of noise is read or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        for (const decode of [decodeFrame, decodeDone]) {
          try {
            decode(bytes, 'frame');
          } catch (error) {
            expect(error).toBeInstanceOf(CorruptBytes);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it('and a hello are of one format', () => {
    expect(HELLO_FORMAT).toBe(FORMAT);
  });
});
