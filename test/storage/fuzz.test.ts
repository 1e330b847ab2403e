/**
 * The readers of single records and files, fed with bytes made wrong. What a checksum covers is refused or is what was
 * written; what carries a right checksum over wrong contents is refused, or read as what can be written.
 */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32c } from '../../src/base/digest.js';
import { createRandom, nextInt } from '../../src/base/random.js';
import type { Entry } from '../../src/raft/types.js';
import { CorruptBytes } from '../../src/wire/corrupt.js';
import { decodeIdentity, encodeIdentity } from '../../src/wire/disk-identity.js';
import type { Identity } from '../../src/wire/disk-identity.js';
import { decodeBlock, encodeBlock } from '../../src/wire/disk-log.js';
import { decodeMarkFile, encodeMarkSlot, MARK_SLOT_BYTES, MARK_SLOT_OFFSETS } from '../../src/wire/disk-mark.js';
import type { NumberedMark } from '../../src/wire/disk-mark.js';
import {
  decodeCutMeta,
  decodeHardState,
  decodePointer,
  encodeCutMeta,
  encodeHardState,
  encodePointer,
  sealGenesis,
  unsealGenesis,
} from '../../src/wire/disk-records.js';
import * as any from '../wire/arbitraries.js';
import { blindly } from '../wire/mutations.js';
import { expectSane } from '../wire/sane.js';

interface Sealed<T> {
  readonly values: fc.Arbitrary<T>;
  readonly encode: (value: T) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => T;
  /** Puts the right checksum on bytes that were changed. */
  readonly seal: (bytes: Uint8Array) => Uint8Array;
  /** Equal contents have equally many bytes: there is no protobuf message in it, which may carry unknown fields. */
  readonly fixed: boolean;
}

const sealed = <T>(
  values: fc.Arbitrary<T>,
  encode: (value: T) => Uint8Array,
  decode: (bytes: Uint8Array) => T,
  { seal = checksumAtEnd, fixed = true }: Partial<Pick<Sealed<T>, 'seal' | 'fixed'>> = {},
): Sealed<unknown> => ({ values, encode, decode, seal, fixed }) as unknown as Sealed<unknown>;

const vote = fc.option(any.member, { nil: undefined });
const hardState = fc.record({ write: any.count, term: any.count, vote });
const mark: fc.Arbitrary<NumberedMark> = fc.record({
  counter: any.count,
  write: any.count,
  term: any.count,
  vote,
  index: any.count,
  indexTerm: any.count,
  chain: any.uint32,
});
const common = { cluster: any.text, node: any.nodeId, directory: any.directoryId };
const identity: fc.Arbitrary<Identity> = fc.oneof(
  fc.record({ type: fc.constant('new' as const), ...common }),
  fc.record({ type: fc.constant('member' as const), ...common, incarnation: any.incarnation }),
);
interface Block {
  readonly first: number;
  readonly before: number;
  readonly entries: readonly Entry[];
}
const block: fc.Arbitrary<Block> = fc
  .record({ first: fc.integer({ min: 1, max: 2 ** 52 }), before: any.uint32 })
  .chain(({ first, before }) => any.entriesFrom(first).map((entries) => ({ first, before, entries })));

const records: Readonly<Record<string, Sealed<unknown>>> = {
  'hard state': sealed(hardState, encodeHardState, decodeHardState),
  Genesis: sealed(any.genesis, sealGenesis, unsealGenesis, { fixed: false }),
  pointer: sealed(any.count, encodePointer, decodePointer),
  'meta record of a cut': sealed(any.cutMeta, encodeCutMeta, decodeCutMeta, { fixed: false }),
  IDENTITY: sealed(identity, encodeIdentity, decodeIdentity, { seal: checksumInLastLine }),
  'log block': sealed(
    block,
    ({ first, before, entries }) => encodeBlock(first, before, entries).value,
    (bytes) => {
      const { first, before, entries } = decodeBlock(bytes, 'block');
      return { first, before, entries };
    },
    { seal: checksumOfBlock, fixed: false },
  ),
};

describe.each(Object.entries(records))('%s', (_name, { values, encode, decode, seal, fixed }) => {
  it('comes back as it went, and with any change is refused', () => {
    fc.assert(
      fc.property(values, values, any.seeds, (value, other, list) => {
        const bytes = encode(value);
        expect(decode(bytes)).toEqual(value);
        for (const seed of list) {
          const wrong = blindly(bytes, encode(other), createRandom(seed));
          if (isDeepStrictEqual(wrong, bytes) || isDeepStrictEqual(wrong, encode(other))) continue;
          expect(() => decode(wrong)).toThrow(CorruptBytes);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('with wrong contents under a right checksum is refused, or read as what can be written', () => {
    let refused = 0;
    fc.assert(
      fc.property(values, values, any.seeds, (value, other, list) => {
        for (const seed of list) {
          const wrong = seal(blindly(encode(value), encode(other), createRandom(seed)));
          let got: unknown;
          try {
            got = decode(wrong);
          } catch (error) {
            expect(error).toBeInstanceOf(CorruptBytes);
            refused++;
            continue;
          }
          expectSane(got, true);
          const written = encode(got);
          if (fixed) expect(written.length).toBe(wrong.length);
          const again = decode(written);
          if (!isDeepStrictEqual(again, got)) expect(again).toEqual(got);
        }
      }),
      { numRuns: 40 },
    );
    expect(refused).toBeGreaterThan(50);
  });
});

describe('MARK', () => {
  it('with any change holds one of its two marks, or is refused', () => {
    let refused = 0;
    fc.assert(
      fc.property(mark, mark, any.seeds, (one, two, list) => {
        const file = new Uint8Array(MARK_SLOT_OFFSETS[1] + MARK_SLOT_BYTES);
        file.set(encodeMarkSlot(one), MARK_SLOT_OFFSETS[0]);
        file.set(encodeMarkSlot(two), MARK_SLOT_OFFSETS[1]);
        expect([one, two]).toContainEqual(decodeMarkFile(file));
        for (const seed of list) {
          const random = createRandom(seed);
          const wrong = Uint8Array.from(file);
          for (let times = nextInt(random, 1, 6); times > 0; times--) {
            const at = (MARK_SLOT_OFFSETS[nextInt(random, 0, 1)] ?? 0) + nextInt(random, 0, 80);
            wrong[at] = (wrong[at] ?? 0) ^ nextInt(random, 1, 255);
          }
          const cut = nextInt(random, 0, 9) === 0 ? wrong.subarray(0, nextInt(random, 0, wrong.length)) : wrong;
          try {
            expect([one, two]).toContainEqual(decodeMarkFile(cut));
          } catch (error) {
            if (!(error instanceof CorruptBytes)) throw error;
            refused++;
          }
        }
      }),
      { numRuns: 40 },
    );
    expect(refused).toBeGreaterThan(20);
  });
});

function checksumAtEnd(bytes: Uint8Array): Uint8Array {
  const copy = Buffer.from(bytes);
  if (copy.length >= 4) copy.writeUInt32BE(crc32c(copy.subarray(0, -4)), copy.length - 4);
  return Uint8Array.from(copy);
}

function checksumInLastLine(bytes: Uint8Array): Uint8Array {
  const text = Buffer.from(bytes).toString('latin1');
  const end = text.lastIndexOf('checksum ');
  if (end < 0) return bytes;
  const body = Buffer.from(text.slice(0, end), 'latin1');
  return Uint8Array.from(
    Buffer.concat([body, Buffer.from(`checksum ${crc32c(body).toString(16).padStart(8, '0')}\n`)]),
  );
}

/** The checksum of the entries as they can be found; what has no such form keeps its own. */
function checksumOfBlock(bytes: Uint8Array): Uint8Array {
  const copy = Buffer.from(bytes);
  const end = copy.length - 4;
  if (end < 17) return bytes;
  let chain = copy.readUInt32BE(13);
  for (let at = 17; at < end;) {
    const next = at + 21 > end ? end + 1 : at + 21 + copy.readUInt32BE(at + 17);
    if (next > end) return bytes;
    chain = crc32c(copy.subarray(at, next), chain);
    at = next;
  }
  copy.writeUInt32BE(crc32c(copy.subarray(0, 17), chain), end);
  return Uint8Array.from(copy);
}
