import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeChunk, encodeChunk } from '../../src/wire/chunk.js';
import { decodeCommand, encodeCommand } from '../../src/wire/command.js';
import { decodeConfiguration, encodeConfiguration } from '../../src/wire/configuration.js';
import { CorruptBytes } from '../../src/wire/corrupt.js';
import { decodeGenesis, encodeGenesis } from '../../src/wire/genesis.js';
import {
  decodeFormRequest,
  decodeFormResponse,
  decodeHello,
  encodeFormRequest,
  encodeFormResponse,
  encodeHello,
} from '../../src/wire/hello.js';
import { decodeMessage, encodeMessage } from '../../src/wire/message.js';
import { decodeStateRecord, encodeStateRecord } from '../../src/wire/state.js';
import { decodeSummary, encodeSummary } from '../../src/wire/summary.js';
import * as any from './arbitraries.js';

interface Codec<T> {
  readonly values: fc.Arbitrary<T>;
  readonly encode: (value: T) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => unknown;
}

const codec = <T>(
  values: fc.Arbitrary<T>,
  encode: (value: T) => Uint8Array,
  decode: (bytes: Uint8Array) => unknown,
): Codec<unknown> => ({ values, encode: encode as (value: unknown) => Uint8Array, decode });

const codecs: Readonly<Record<string, Codec<unknown>>> = {
  command: codec(any.command, encodeCommand, decodeCommand),
  configuration: codec(any.configuration, encodeConfiguration, decodeConfiguration),
  record: codec(
    any.stateRecord,
    (record) => {
      const { key, value } = encodeStateRecord(record);
      return Uint8Array.from([key.length >> 8, key.length, ...key, ...value]);
    },
    (bytes) => {
      const end = 2 + (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0);
      return decodeStateRecord(bytes.subarray(2, end), bytes.subarray(end));
    },
  ),
  summary: codec(any.summary, encodeSummary, decodeSummary),
  genesis: codec(any.genesis, encodeGenesis, decodeGenesis),
  message: codec(any.message, encodeMessage, decodeMessage),
  chunk: codec(any.chunk, encodeChunk, decodeChunk),
  hello: codec(any.hello, encodeHello, decodeHello),
  formRequest: codec(any.formRequest, encodeFormRequest, decodeFormRequest),
  formResponse: codec(any.formResponse, encodeFormResponse, decodeFormResponse),
};

/** The value, or undefined for bytes that were refused in the one way in which bytes may be refused. */
function decoded(decode: (bytes: Uint8Array) => unknown, bytes: Uint8Array): unknown {
  try {
    return decode(bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(CorruptBytes);
    return undefined;
  }
}

describe.each(Object.entries(codecs))('%s', (_name, { values, encode, decode }) => {
  it('comes back as it went', () => {
    fc.assert(
      fc.property(values, (value) => {
        expect(decode(encode(value))).toEqual(value);
      }),
    );
  });

  it('is read from bytes in the middle of a larger buffer', () => {
    fc.assert(
      fc.property(values, (value) => {
        const bytes = encode(value);
        const larger = new Uint8Array(bytes.length + 10);
        larger.set(bytes, 5);
        expect(decode(larger.subarray(5, 5 + bytes.length))).toEqual(value);
      }),
      { numRuns: 20 },
    );
  });

  it('is refused, or is a valid value, when cut anywhere', () => {
    fc.assert(
      fc.property(values, (value) => {
        const bytes = encode(value);
        for (let length = 0; length < bytes.length; length++) {
          const got = decoded(decode, bytes.subarray(0, length));
          if (got !== undefined) expect(decode(encode(got))).toEqual(got);
        }
      }),
      { numRuns: 15 },
    );
  });

  it('is refused, or is a valid value, when bits are flipped', () => {
    fc.assert(
      fc.property(
        values,
        fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })), { minLength: 1 }),
        (value, flips) => {
          const bytes = Uint8Array.from(encode(value));
          for (const [at, mask] of flips) {
            const index = at % bytes.length;
            bytes[index] = (bytes[index] ?? 0) ^ mask;
            const got = decoded(decode, bytes);
            if (got !== undefined) expect(decode(encode(got))).toEqual(got);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is refused, or is a valid value, when it is noise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        decoded(decode, bytes);
      }),
      { numRuns: 300 },
    );
  });
});
