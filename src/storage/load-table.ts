/** Reads the newest cut at a start, and holds it against the count and sum in its meta record (F4). */
import { sameDigest } from '../base/digest.js';
import type { StateRecord } from '../lease/types.js';
import { CorruptBytes } from '../wire/corrupt.js';
import { metaKey, POINTER_KEY, RECORD_KEY_OFFSET, recordRange } from '../wire/disk.js';
import { decodeCutMeta, decodePointer, type CutMeta } from '../wire/disk-records.js';
import { decodeStateRecord } from '../wire/state.js';
import { plainBytes, type Database } from './database.js';
import { TableSum } from './table-sum.js';

/** A table as it was found. */
export interface LoadedTable {
  readonly meta: CutMeta;
  readonly records: readonly StateRecord[];
  readonly sum: TableSum;
}

/** The table that the pointer names. Throws `CorruptBytes`. */
export async function loadTable(database: Database): Promise<LoadedTable> {
  const prefix = decodePointer(await required(database, POINTER_KEY, 'the pointer to the state table'));
  const meta = decodeCutMeta(await required(database, metaKey(prefix), "the meta record of the state's cut"));
  if (meta.prefix !== prefix) throw new CorruptBytes("the meta record of the state's cut", 'is that of another table');
  const sum = new TableSum();
  const found: [Uint8Array, Uint8Array][] = [];
  for await (const [storedKey, storedValue] of database.iterator(recordRange(prefix))) {
    const key = plainBytes(storedKey).subarray(RECORD_KEY_OFFSET);
    const value = plainBytes(storedValue);
    sum.put(key, value);
    found.push([key, value]);
  }
  if (sum.count !== meta.count || !sameDigest(sum.sum, meta.sum)) {
    throw new CorruptBytes(
      `the state table at ${meta.snapshot.index}`,
      sum.count === meta.count
        ? 'the sum of its records is wrong'
        : `has ${sum.count} records instead of ${meta.count}`,
    );
  }
  return { meta, sum, records: found.map(([key, value]) => decodeStateRecord(key, value)) };
}

/** The value under `key`. Throws `CorruptBytes` when there is none. */
export async function required(database: Database, key: Uint8Array, what: string): Promise<Uint8Array> {
  const value = await database.get(key);
  if (value === undefined) throw new CorruptBytes(what, 'is missing');
  return plainBytes(value);
}
