/**
 * What a start loads, with keys and values made wrong: a log comes back whole, shorter or not at all, never with another
 * entry; a table whole or not at all.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
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
import { encodeBlock } from '../../src/wire/disk-log.js';
import { encodeCutMeta, encodePointer } from '../../src/wire/disk-records.js';
import type { ChainPosition, CutMeta } from '../../src/wire/disk-records.js';
import { encodeStateRecord } from '../../src/wire/state.js';
import * as any from '../wire/arbitraries.js';
import { blindly } from '../wire/mutations.js';

describe('the log', () => {
  it('with one value changed, exchanged or added is refused, or what was written', async () => {
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(fc.nat(2 ** 31), any.seeds, async (logSeed, list) => {
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
        any.cutMeta,
        fc.array(any.stateRecord, { minLength: 1, maxLength: 6 }),
        any.seeds,
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

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const unhex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));
