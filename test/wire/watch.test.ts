import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRandom, nextInt } from '../../src/base/random.js';
import { streamMessages } from '../../src/wire/public-messages.js';
import type { WireHeader, WireWatchRequest, WireWatchResponse } from '../../src/wire/public-types.js';
import { UnexpectedResponse } from '../../src/wire/public-unexpected.js';
import { parseWatch, WATCH_METHOD } from '../../src/wire/public-watch.js';
import { watchCall, watchMessage } from './arbitrary-watches.js';
import { blindly, structurally } from './mutations.js';

const { encodeRequest, encodeResponse } = streamMessages<WireWatchRequest, WireWatchResponse>('LeaseService', 'Watch');

function carried(message: WireWatchRequest): ReturnType<typeof parseWatch> {
  return parseWatch(WATCH_METHOD.requestDeserialize(encodeRequest(message)));
}

describe('a watch', () => {
  it('comes as it was made', () => {
    fc.assert(
      fc.property(watchCall, (call) => {
        expect(parseWatch(WATCH_METHOD.requestDeserialize(WATCH_METHOD.requestSerialize(call)))).toEqual({ ok: call });
      }),
    );
  });

  it('has every fault told at once', () => {
    expect(carried({ prefix: '\ufffd', startRevision: -1n })).toEqual({
      faults: [
        'prefix is not well-formed UTF-8, or holds U+FFFD',
        'start_revision is -1; it must be from 0 to 2^53 - 1',
      ],
    });
    expect(carried({ prefix: 'ö'.repeat(128), startRevision: 0n })).toEqual({
      faults: ['prefix has 256 bytes; at most 255 are allowed'],
    });
    expect(carried({ prefix: 'p'.repeat(255), startRevision: 0n })).toHaveProperty('ok');
    expect(carried({ prefix: '', startRevision: 2n ** 53n })).toHaveProperty('faults');
    expect(carried({ prefix: '', startRevision: 2n ** 53n - 1n })).toHaveProperty('ok');
    expect(parseWatch(WATCH_METHOD.requestDeserialize(Buffer.from([0xff])))).toEqual({
      faults: ['the bytes are no request message of watch'],
    });
  });

  it('made wrong has faults, or is a watch within all limits', () => {
    const count = { faults: 0, read: 0 };
    fc.assert(
      fc.property(watchCall, watchCall, fc.nat(), (call, other, seed) => {
        const random = createRandom(seed);
        const bytes = WATCH_METHOD.requestSerialize(call);
        const wrong =
          nextInt(random, 0, 1) === 0
            ? blindly(bytes, WATCH_METHOD.requestSerialize(other), random)
            : structurally(bytes, random);
        const parsed = parseWatch(WATCH_METHOD.requestDeserialize(Buffer.from(wrong)));
        if ('faults' in parsed) {
          expect(parsed.faults.length).toBeGreaterThan(0);
          count.faults++;
          return;
        }
        count.read++;
        const { prefix, startRevision } = parsed.ok;
        expect(prefix.isWellFormed()).toBe(true);
        expect(Number.isSafeInteger(startRevision) && startRevision >= 0).toBe(true);
        expect(carried({ prefix, startRevision: BigInt(startRevision) })).toEqual(parsed);
      }),
      { numRuns: 500 },
    );
    expect(count.faults).toBeGreaterThan(50);
    expect(count.read).toBeGreaterThan(50);
  });
});

describe('a message of a watch', () => {
  const HEADER: WireHeader = { cluster: 'c', incarnation: '', revision: 7n, nodeId: 'n1', leaderId: '' };
  const read = (message: Omit<WireWatchResponse, 'header'>, header: WireHeader | null = HEADER): unknown =>
    WATCH_METHOD.responseDeserialize(encodeResponse({ header, ...message })).news;

  it('comes as it was given', () => {
    fc.assert(
      fc.property(watchMessage, (message) => {
        expect(WATCH_METHOD.responseDeserialize(WATCH_METHOD.responseSerialize(message))).toEqual(message);
      }),
    );
  });

  it('cut or damaged is a message or UnexpectedResponse', () => {
    fc.assert(
      fc.property(watchMessage, fc.nat(), fc.integer({ min: 0, max: 255 }), fc.nat(), (message, at, mask, length) => {
        const bytes = Buffer.from(WATCH_METHOD.responseSerialize(message));
        bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ mask;
        try {
          WATCH_METHOD.responseDeserialize(bytes.subarray(0, length % (bytes.length + 1)));
        } catch (error) {
          expect(error).toBeInstanceOf(UnexpectedResponse);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('of a newer server has no news, or leaves out what is not known', () => {
    expect(read({})).toBeUndefined();
    const queueChanged = { domain: 'd', queueLength: 3 };
    expect(read({ events: { events: [{ revision: 5n }, { revision: 6n, queueChanged }] } })).toEqual({
      type: 'events',
      events: [{ revision: 6, type: 'queueChanged', domain: 'd', queueLength: 3 }],
    });
  });

  it('without a header, or with numbers that are none, is refused', () => {
    expect(() => read({ progress: {} }, null)).toThrow(UnexpectedResponse);
    expect(() => read({ compacted: { oldestRevision: 0n } })).toThrow(UnexpectedResponse);
    expect(() => read({ compacted: { oldestRevision: 2n ** 53n } })).toThrow(UnexpectedResponse);
    const queueChanged = { domain: 'd', queueLength: 3 };
    expect(() => read({ events: { events: [{ revision: 0n, queueChanged }] } })).toThrow(UnexpectedResponse);
    const ended = { lease: null, reason: 'END_REASON_EXPIRED', by: '', note: '', currentToken: 0n };
    expect(() => read({ events: { events: [{ revision: 5n, ended }] } })).toThrow(UnexpectedResponse);
  });
});
