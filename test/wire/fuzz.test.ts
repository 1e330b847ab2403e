/**
 * Every decoder of bytes from outside, fed with valid bytes made wrong: it refuses in its documented way, or gives a
 * value that its encoder writes and that comes back. Nothing else is thrown, nothing hangs, no prototype changes.
 */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32c } from '../../src/base/digest.js';
import { createRandom, nextInt } from '../../src/base/random.js';
import { decodeChunk, encodeChunk } from '../../src/wire/chunk.js';
import { decodeCommand, encodeCommand } from '../../src/wire/command.js';
import { decodeConfiguration, encodeConfiguration } from '../../src/wire/configuration.js';
import { CorruptBytes } from '../../src/wire/corrupt.js';
import {
  decodeForwardedCall,
  decodeForwardedResult,
  encodeForwardedCall,
  encodeForwardedResult,
} from '../../src/wire/forward.js';
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
import { decodeDone, decodeFrame, doneFrame, helloFrame, numberFrame, partFrame } from '../../src/wire/peer-frames.js';
import type { Frame } from '../../src/wire/peer-frames.js';
import { encodeFields, messageType } from '../../src/wire/proto.js';
import { failureFromTrailers } from '../../src/wire/public-error.js';
import { parseRequest } from '../../src/wire/public-parse.js';
import { UnexpectedResponse } from '../../src/wire/public-unexpected.js';
import { WATCH_METHOD } from '../../src/wire/public-watch.js';
import { encodeCall, METHOD_OF } from '../../src/wire/public.js';
import { decodeStateRecord, encodeStateRecord } from '../../src/wire/state.js';
import { decodeSummary, encodeSummary } from '../../src/wire/summary.js';
import * as any from './arbitraries.js';
import { answer, call, header, LIMITS } from './arbitrary-answers.js';
import { watchMessage } from './arbitrary-watches.js';
import { forwardedCall, forwardedResult } from './arbitrary-forwards.js';
import { blindly, deep, structurally } from './mutations.js';
import { expectSane } from './sane.js';

interface Decoder<T> {
  readonly values: fc.Arbitrary<T>;
  readonly encode: (value: T) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => T;
  readonly refusal: new (...parameters: never[]) => Error;
  /** Whether texts are part of a state, so that each must stay what it is; those of answers are only shown. */
  readonly texts: boolean;
  /** Where the message begins, in bytes that are more than a message. */
  readonly from: (bytes: Uint8Array) => number;
  /** Makes good again what has to fit the message, as somebody would who wrote it on purpose. */
  readonly mend?: (bytes: Uint8Array) => Uint8Array;
}

const decoder = <T>(
  values: fc.Arbitrary<T>,
  encode: (value: T) => Uint8Array,
  decode: (bytes: Uint8Array) => T,
  more: Partial<Decoder<T>> = {},
): Decoder<unknown> =>
  ({
    refusal: CorruptBytes,
    texts: true,
    from: () => 0,
    ...more,
    values,
    encode,
    decode,
  }) as unknown as Decoder<unknown>;

const lengthPrefixed = (key: Uint8Array, value: Uint8Array): Uint8Array =>
  Uint8Array.from([key.length >> 8, key.length, ...key, ...value]);

const endOfKey = (bytes: Uint8Array): number => 2 + (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0);

const encodeFrame = ({ hello, parts, numbers }: Frame): Uint8Array =>
  Uint8Array.from(
    Buffer.concat([
      ...(hello === undefined ? [] : [helloFrame(hello)]),
      ...parts.map(partFrame),
      ...numbers.map(numberFrame),
    ]),
  );

/** With the checksum that the body has now. */
function checksummed(bytes: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(bytes);
  if (copy.length >= 4) new DataView(copy.buffer).setUint32(0, crc32c(copy.subarray(4)));
  return copy;
}

const decoders: Readonly<Record<string, Decoder<unknown>>> = {
  command: decoder(any.command, encodeCommand, decodeCommand),
  configuration: decoder(any.configuration, encodeConfiguration, decodeConfiguration),
  'state record': decoder(
    any.stateRecord,
    (record) => {
      const { key, value } = encodeStateRecord(record);
      return lengthPrefixed(key, value);
    },
    (bytes) => decodeStateRecord(bytes.subarray(2, endOfKey(bytes)), bytes.subarray(endOfKey(bytes))),
    { from: endOfKey },
  ),
  'state summary': decoder(any.summary, encodeSummary, decodeSummary),
  genesis: decoder(any.genesis, encodeGenesis, decodeGenesis),
  message: decoder(any.message, encodeMessage, decodeMessage),
  chunk: decoder(any.chunk, encodeChunk, decodeChunk, { from: () => 4, mend: checksummed }),
  hello: decoder(any.hello, encodeHello, decodeHello),
  'form request': decoder(any.formRequest, encodeFormRequest, decodeFormRequest),
  'form response': decoder(any.formResponse, encodeFormResponse, decodeFormResponse),
  'forwarded call': decoder(forwardedCall, encodeForwardedCall, decodeForwardedCall),
  'forwarded result': decoder(forwardedResult, encodeForwardedResult, decodeForwardedResult, { texts: false }),
  frame: decoder(
    fc.record({
      hello: fc.option(any.hello.map(encodeHello), { nil: undefined }),
      parts: fc.array(any.message.map(encodeMessage), { maxLength: 3 }),
      numbers: fc.array(any.count, { maxLength: 3 }),
    }),
    encodeFrame,
    (bytes) => decodeFrame(bytes, 'frame'),
  ),
  'end of a snapshot': decoder<number | undefined>(
    any.count,
    (value) => (value === undefined ? new Uint8Array(0) : doneFrame(value)),
    decodeDone,
  ),
  response: decoder(
    fc.record({ answer, header }),
    ({ answer: given, header: around }) => {
      const type = Object.keys(METHOD_OF).indexOf(given.type);
      const bytes = METHOD_OF[given.type].responseSerialize({ header: around, answer: given, version: '' });
      return Uint8Array.from([type, ...bytes]);
    },
    (bytes) => {
      const method = Object.values(METHOD_OF)[bytes[0] ?? 0] ?? METHOD_OF.get;
      const { answer: got, header: around } = method.responseDeserialize(Buffer.from(bytes.subarray(1)));
      return { answer: got, header: around } as never;
    },
    { from: () => 1, refusal: UnexpectedResponse, texts: false },
  ),
  'message of a watch': decoder(
    watchMessage,
    (message) => WATCH_METHOD.responseSerialize(message),
    (bytes) => {
      const { header: around, news } = WATCH_METHOD.responseDeserialize(Buffer.from(bytes));
      return { header: around, news: news ?? { type: 'progress' } };
    },
    { refusal: UnexpectedResponse, texts: false },
  ),
};

/** What is decoded is what the encoder writes: nothing got in that could not go out. */
function judge({ decode, encode, refusal, texts }: Decoder<unknown>, bytes: Uint8Array): 'refused' | 'read' {
  let value: unknown;
  try {
    value = decode(bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(refusal);
    return 'refused';
  }
  expectSane(value, texts);
  const again = decode(encode(value));
  if (!isDeepStrictEqual(again, value)) expect(again).toEqual(value);
  return 'read';
}

function mutated(one: Decoder<unknown>, bytes: Uint8Array, other: Uint8Array, seed: number): Uint8Array {
  const random = createRandom(seed);
  let wrong = bytes;
  for (let times = nextInt(random, 1, 3); times > 0; times--) {
    const from = nextInt(random, 0, 3) === 0 ? undefined : one.from(wrong);
    if (from === undefined) wrong = blindly(wrong, other, random);
    else wrong = Uint8Array.from([...wrong.subarray(0, from), ...structurally(wrong.subarray(from), random)]);
  }
  return one.mend !== undefined && nextInt(random, 0, 9) > 0 ? one.mend(wrong) : wrong;
}

/** Deeper than any stack. */
const NESTED = deep(100_000);
const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 });

describe.each(Object.entries(decoders))('%s', (_name, one) => {
  it('made wrong is refused, or read as what can be written', () => {
    const count = { refused: 0, read: 0 };
    fc.assert(
      fc.property(one.values, one.values, fc.array(seeds, { minLength: 10, maxLength: 10 }), (value, other, list) => {
        for (const seed of list) count[judge(one, mutated(one, one.encode(value), one.encode(other), seed))]++;
      }),
      { numRuns: 30 },
    );
    // Neither is everything refused before anything is looked at, nor nothing.
    expect(count.refused).toBeGreaterThan(20);
    expect(count.read).toBeGreaterThan(20);
  });

  it('nested deeply is refused or read', () => {
    fc.assert(
      fc.property(one.values, (value) => {
        const bytes = one.encode(value);
        for (const nested of NESTED) {
          const wrong = Uint8Array.from(Buffer.concat([bytes.subarray(0, one.from(bytes)), nested]));
          judge(one, one.mend === undefined ? wrong : one.mend(wrong));
        }
      }),
      { numRuns: 2 },
    );
  });
});

/** What chance hardly meets. */
describe('an edge', () => {
  it('of indices: entries behind the greatest one are refused', () => {
    const member = { nodeId: 'n1', directoryId: 'a'.repeat(32) };
    const after = (index: number): Uint8Array =>
      encodeFields(messageType('CoreMessage'), {
        ...{ from: member, to: member, term: 1 },
        append: { prev: { index, term: 1 }, entries: [{ term: 1, kind: 1 }], commit: 0, request: 1 },
      });
    expect(decodeMessage(after(2 ** 53 - 3))).toMatchObject({ entries: [{ index: 2 ** 53 - 2 }] });
    expect(() => decodeMessage(after(2 ** 53 - 1))).toThrow(CorruptBytes);
  });

  it('of request ids: another form of the same id is refused', () => {
    const command = (requestId: string): Uint8Array =>
      encodeFields(messageType('Command'), { format: 1, withdraw: { domain: 'a', requestId, owner: '' } });
    const id = '123e4567-e89b-42d3-a456-426614174000';
    expect(decodeCommand(command(id))).toMatchObject({ requestId: id });
    expect(() => decodeCommand(command(id.toUpperCase()))).toThrow(CorruptBytes);
  });
});

describe('a request', () => {
  const types = Object.keys(METHOD_OF) as (keyof typeof METHOD_OF)[];

  it('made wrong has faults, or is a call within all limits', () => {
    const count = { faults: 0, read: 0 };
    fc.assert(
      fc.property(call, call, fc.array(seeds, { minLength: 10, maxLength: 10 }), (made, other, list) => {
        for (const seed of list) {
          const random = createRandom(seed);
          const bytes = nextInt(random, 0, 3) === 0 ? blindly(encodeCall(made), encodeCall(other), random) : undefined;
          const method = METHOD_OF[nextInt(random, 0, 9) === 0 ? other.type : made.type];
          const wrong = Buffer.from(bytes ?? structurally(encodeCall(made), random));
          const parsed = parseRequest(method.requestDeserialize(wrong), LIMITS);
          if ('faults' in parsed) {
            expect(parsed.faults.length).toBeGreaterThan(0);
            count.faults++;
            continue;
          }
          const { ok } = parsed;
          count.read++;
          expectSane(ok, true);
          if (ok.type === 'acquire' && ok.requestId === undefined) continue;
          const again = method.requestDeserialize(encodeCall(ok as never));
          expect(parseRequest(again, LIMITS)).toEqual(parsed);
        }
      }),
      { numRuns: 100 },
    );
    expect(count.faults).toBeGreaterThan(50);
    expect(count.read).toBeGreaterThan(50);
  });

  it('nested deeply has faults or is a call', () => {
    for (const type of types) {
      for (const bytes of NESTED) {
        const parsed = parseRequest(METHOD_OF[type].requestDeserialize(Buffer.from(bytes)), LIMITS);
        expect('ok' in parsed || parsed.faults.length > 0).toBe(true);
      }
    }
  });
});

describe('metadata whose keys are names of JavaScript', () => {
  const names = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'valueOf'];
  const metadata = names.toSorted().map((name) => [name, 'x'] as const);

  it.each(['acquire', 'command'])('comes through as it is, and changes nothing else: %s', (kind) => {
    fc.assert(
      fc.property(any.command, call, (command, made) => {
        if (kind === 'command' && command.type === 'acquire') {
          const given = { ...command, metadata };
          expect(decodeCommand(encodeCommand(given))).toEqual(given);
        } else if (kind === 'acquire' && made.type === 'acquire') {
          const given = { ...made, metadata };
          const method = METHOD_OF.acquire;
          expect(parseRequest(method.requestDeserialize(encodeCall(given)), LIMITS)).toEqual({ ok: given });
        } else fc.pre(false);
      }),
      { numRuns: 5 },
    );
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(Object.getPrototypeOf(Object.prototype)).toBeNull();
  });
});

describe('trailers', () => {
  it('of any texts are a failure or none', () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom('__proto__', 'toString', '-1', '1e9', '9007199254740993', '99999999999999999999', 'not-done'),
    );
    const value = fc.oneof(text, fc.uint8Array({ maxLength: 8 }));
    fc.assert(
      fc.property(fc.array(value, { minLength: 4, maxLength: 4 }), fc.nat(4), (values, absent) => {
        const keys = ['fencepost-reason', 'fencepost-outcome', 'retry-delay-ms', 'fencepost-revision'];
        const got = failureFromTrailers('m', {
          get: (key) => {
            const at = keys.indexOf(key);
            const found = at === absent ? undefined : values[at];
            return found === undefined ? [] : [found];
          },
        });
        if (got === undefined) return;
        expect(Number.isSafeInteger(got.retryDelayMs) && got.retryDelayMs >= 0).toBe(true);
        expect(['not-done', 'unknown']).toContain(got.failure.outcome);
        expect(Number.isSafeInteger(got.failure.revision ?? 0)).toBe(true);
        if (got.failure.outcome === 'not-done') expect(values[1]).toBe('not-done');
      }),
    );
  });
});
