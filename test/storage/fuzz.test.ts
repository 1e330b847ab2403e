/**
 * The readers of a data directory, fed with bytes made wrong. What a checksum covers is refused or is what was written;
 * a log comes back whole, shorter or not at all, never with another entry; what carries a right checksum over wrong
 * contents is refused, or read as what can be written.
 */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32c } from '../../src/base/digest.js';
import { createRandom, nextInt } from '../../src/base/random.js';
import type { Random } from '../../src/base/random.js';
import type { StateRecord } from '../../src/lease/types.js';
import type { Entry } from '../../src/raft/types.js';
import type { Database } from '../../src/storage/database.js';
import { loadLog } from '../../src/storage/load-log.js';
import { loadTable } from '../../src/storage/load-table.js';
import { TableSum } from '../../src/storage/table-sum.js';
import { CorruptBytes } from '../../src/wire/corrupt.js';
import { blockKey, firstOfBlockKey, metaKey, POINTER_KEY, tableKey } from '../../src/wire/disk.js';
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
import type { ChainPosition, CutMeta } from '../../src/wire/disk-records.js';
import { encodeStateRecord } from '../../src/wire/state.js';
import * as any from '../wire/arbitraries.js';
import { blindly } from '../wire/mutations.js';
import { expectSane } from '../wire/sane.js';

const seeds = fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { minLength: 20, maxLength: 20 });

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
const cutMeta: fc.Arbitrary<CutMeta> = fc.record({
  prefix: any.count,
  snapshot: any.meta,
  incarnation: any.incarnation,
  history: fc.record({ base: any.revision, start: any.count }),
  anchor: fc.record({ index: any.count, term: any.count, chain: any.uint32 }),
  count: any.count,
  sum: fc.record({ high: any.uint32, low: any.uint32 }),
  summary: any.summary,
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
  'meta record of a cut': sealed(cutMeta, encodeCutMeta, decodeCutMeta, { fixed: false }),
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
      fc.property(values, values, seeds, (value, other, list) => {
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
      fc.property(values, values, seeds, (value, other, list) => {
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
      fc.property(mark, mark, seeds, (one, two, list) => {
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

describe('the log', () => {
  it('with one value changed, exchanged or added is refused, or what was written', async () => {
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(fc.nat(2 ** 31), seeds, async (logSeed, list) => {
        const { anchor, values, entries } = randomLog(createRandom(logSeed));
        expect((await loadLog(databaseOf(values), anchor)).entries).toEqual(entries);
        for (const seed of list) {
          const wrong = changedLog(values, anchor, createRandom(seed));
          const got = await refusedOr(loadLog(databaseOf(wrong), anchor));
          if (got === undefined) refused++;
          else expect(got.entries).toEqual(entries);
        }
      }),
      { numRuns: 40 },
    );
    expect(refused).toBeGreaterThan(300);
  });

  it('without one of its values is refused, by itself or by its last chain value, or is what was written', async () => {
    const outcomes = { refused: 0, byChain: 0 };
    await fc.assert(
      fc.asyncProperty(fc.nat(2 ** 31), async (logSeed) => {
        const { anchor, values, entries, last } = randomLog(createRandom(logSeed));
        for (const lost of values.keys()) {
          const rest = new Map([...values].filter(([key]) => key !== lost));
          const got = await refusedOr(loadLog(databaseOf(rest), anchor));
          if (got === undefined) outcomes.refused++;
          // MARK holds the last entry's chain value, and a start refuses a log that has another.
          else if (got.index.at(last.index)?.chain !== last.chain) outcomes.byChain++;
          else expect(got.entries).toEqual(entries);
        }
      }),
      { numRuns: 200 },
    );
    for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(20);
  });

  it('under any key of its length is refused or ignored', async () => {
    const { value } = encodeBlock(5, 0, []);
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 0, maxLength: 12 }), async (tail) => {
        const key = Uint8Array.of(3, ...tail);
        const got = await refusedOr(loadLog(databaseOf(new Map([[hex(key), value]])), { index: 4, term: 1, chain: 0 }));
        if (got === undefined) return;
        expect(got.entries).toEqual([]);
        expect(firstOfBlockKey(key)).toBeLessThanOrEqual(5);
      }),
    );
  });
});

describe('the table', () => {
  it('with one key or value changed, lost, exchanged or added is refused, or what was written', async () => {
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(
        cutMeta,
        fc.array(any.stateRecord, { minLength: 1, maxLength: 6 }),
        seeds,
        async (meta, all, list) => {
          const written = [...new Map(all.map((record) => [hex(encodeStateRecord(record).key), record])).values()];
          const values = tableOf(meta, written);
          const whole = await loadTable(databaseOf(values));
          expect(sorted(whole.records)).toEqual(sorted(written));
          for (const seed of list) {
            const wrong = changedTable(values, createRandom(seed));
            const got = await refusedOr(loadTable(databaseOf(wrong)));
            if (got === undefined) refused++;
            else expect([got.meta, got.records]).toEqual([whole.meta, whole.records]);
          }
        },
      ),
      { numRuns: 40 },
    );
    expect(refused).toBeGreaterThan(300);
  });
});

/** Values by the hex digits of their keys. */
type Values = ReadonlyMap<string, Uint8Array>;

/** As much of a database as a start reads. */
function databaseOf(values: Values): Database {
  const ordered = [...values].sort(([left], [right]) => (left < right ? -1 : 1));
  const part: Pick<Database, 'get'> & { iterator(range: { gte: Uint8Array; lt: Uint8Array }): unknown } = {
    get: (key) => Promise.resolve(values.get(hex(key))),
    async *iterator({ gte, lt }) {
      for (const [key, value] of ordered) {
        if (key >= hex(gte) && key < hex(lt)) yield await Promise.resolve([unhex(key), value]);
      }
    },
  };
  return part as Database;
}

/** A log of several writes, some of which superseded the tail of what was there. */
function randomLog(random: Random): {
  anchor: ChainPosition;
  values: Values;
  entries: readonly Entry[];
  last: { index: number; chain: number };
} {
  const anchor = { index: nextInt(random, 0, 9), term: 1, chain: nextInt(random, 0, 2 ** 31) };
  const values = new Map<string, Uint8Array>();
  const entries: Entry[] = [];
  const chains: number[] = [];
  for (let write = nextInt(random, 1, 6), term = 1; write > 0; write--) {
    const keep = nextInt(random, 0, 3) === 0 ? nextInt(random, 0, entries.length) : entries.length;
    if (keep < entries.length) term++;
    for (const key of values.keys()) if (key > hex(blockKey(anchor.index + keep + 1))) values.delete(key);
    entries.length = chains.length = keep;
    const first = anchor.index + keep + 1;
    const added = Array.from({ length: nextInt(random, 1, 4) }, (_, at): Entry => {
      const payload = Uint8Array.from({ length: nextInt(random, 0, 12) }, () => nextInt(random, 0, 255));
      return { index: first + at, term, kind: payload.length === 0 ? 'noop' : 'command', payload };
    });
    const { value, chains: more } = encodeBlock(first, chains.at(-1) ?? anchor.chain, added);
    values.set(hex(blockKey(first)), value);
    entries.push(...added);
    chains.push(...more);
  }
  return {
    anchor,
    values,
    entries,
    last: { index: anchor.index + entries.length, chain: chains.at(-1) ?? anchor.chain },
  };
}

function changedLog(values: Values, anchor: ChainPosition, random: Random): Values {
  const keys = [...values.keys()];
  const key = keys[nextInt(random, 0, keys.length - 1)] ?? '';
  const other = keys[nextInt(random, 0, keys.length - 1)] ?? '';
  const [value, another] = [values.get(key) ?? new Uint8Array(0), values.get(other) ?? new Uint8Array(0)];
  const wrong = new Map(values);
  switch (nextInt(random, 0, 3)) {
    case 0:
      wrong.set(key, another);
      wrong.set(other, value);
      break;
    case 1:
      wrong.set(hex(blockKey(anchor.index + nextInt(random, 0, 20))), value);
      break;
    default:
      wrong.set(key, blindly(value, another, random));
  }
  return wrong;
}

function tableOf(meta: CutMeta, all: readonly StateRecord[]): Values {
  const prefix = 7;
  const sum = new TableSum();
  const values = new Map<string, Uint8Array>();
  for (const record of all) {
    const { key, value } = encodeStateRecord(record);
    sum.put(key, value);
    values.set(hex(tableKey(prefix, key)), value);
  }
  values.set(hex(POINTER_KEY), encodePointer(prefix));
  values.set(hex(metaKey(prefix)), encodeCutMeta({ ...meta, prefix, count: sum.count, sum: sum.sum }));
  return values;
}

function changedTable(values: Values, random: Random): Values {
  const keys = [...values.keys()];
  const key = keys[nextInt(random, 0, keys.length - 1)] ?? '';
  const other = keys[nextInt(random, 0, keys.length - 1)] ?? '';
  const [value, another] = [values.get(key) ?? new Uint8Array(0), values.get(other) ?? new Uint8Array(0)];
  const wrong = new Map(values);
  switch (nextInt(random, 0, 4)) {
    case 0:
      wrong.delete(key);
      break;
    case 1:
      wrong.set(key, another);
      wrong.set(other, value);
      break;
    case 2:
      wrong.delete(key);
      wrong.set(hex(blindly(unhex(key), unhex(other), random)), value);
      break;
    default:
      wrong.set(key, blindly(value, another, random));
  }
  return wrong;
}

async function refusedOr<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    expect(error).toBeInstanceOf(CorruptBytes);
    return undefined;
  }
}

function sorted(all: readonly StateRecord[]): readonly StateRecord[] {
  const key = (record: StateRecord): string => hex(encodeStateRecord(record).key);
  return all.toSorted((left, right) => (key(left) < key(right) ? -1 : 1));
}

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

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const unhex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));
