/**
 * The keys of a data directory's database. One tag byte, then numbers of 8 bytes, big-endian, so that they sort.
 *
 *     01                      hard state        02   Genesis        04   pointer to the current table
 *     03 <first index>        log block
 *     05 <prefix> 00          meta record of the table under that prefix
 *     05 <prefix> 01 <key>    record of the state
 *
 * The values are in disk-records.ts, disk-log.ts and state.ts; MARK and IDENTITY, which lie beside the database, in
 * disk-mark.ts and disk-identity.ts. Each value carries its own format version.
 */
import { getUint64, setUint64, viewOf } from './disk-bytes.js';

const LOG_TAG = 3;
const TABLE_TAG = 5;
const META_PART = 0;
const RECORD_PART = 1;

/** Key of the hard-state record. */
export const HARD_KEY = Uint8Array.of(1);
/** Key of the Genesis record. */
export const GENESIS_KEY = Uint8Array.of(2);
/** Key of the pointer to the current table. */
export const POINTER_KEY = Uint8Array.of(4);
/** Bytes before the codec's own key in a record's key. */
export const RECORD_KEY_OFFSET = 10;

/** A half-open range of keys. */
export interface KeyRange {
  readonly gte: Uint8Array;
  readonly lt: Uint8Array;
}

/** Key of the log block that begins at `first`. */
export function blockKey(first: number): Uint8Array {
  return numbered(LOG_TAG, first, new Uint8Array(0));
}

/** The inverse of {@link blockKey}; undefined for a key that is none. */
export function firstOfBlockKey(key: Uint8Array): number | undefined {
  return key.length === 9 && key[0] === LOG_TAG ? getUint64(viewOf(key), 1, 'a log key') : undefined;
}

/** All log blocks, or those that begin below `before`. */
export function blockRange(before?: number): KeyRange {
  return {
    gte: Uint8Array.of(LOG_TAG),
    lt: before === undefined ? Uint8Array.of(LOG_TAG + 1) : blockKey(before),
  };
}

/** Key of the meta record under `prefix`. */
export function metaKey(prefix: number): Uint8Array {
  return numbered(TABLE_TAG, prefix, Uint8Array.of(META_PART));
}

/** Key of a record under `prefix`; `key` is the codec's. */
export function tableKey(prefix: number, key: Uint8Array): Uint8Array {
  return tableKeys(prefix)(key);
}

/** {@link tableKey} of many records under one prefix: what their keys begin with is made once. */
export function tableKeys(prefix: number): (key: Uint8Array) => Uint8Array {
  const head = numbered(TABLE_TAG, prefix, Uint8Array.of(RECORD_PART));
  return (key) => {
    const out = new Uint8Array(head.length + key.length);
    out.set(head);
    out.set(key, head.length);
    return out;
  };
}

/** The records under `prefix`, without its meta record. */
export function recordRange(prefix: number): KeyRange {
  return {
    gte: numbered(TABLE_TAG, prefix, Uint8Array.of(RECORD_PART)),
    lt: numbered(TABLE_TAG, prefix, Uint8Array.of(RECORD_PART + 1)),
  };
}

/** Everything under `prefix`. */
export function prefixRange(prefix: number): KeyRange {
  return {
    gte: numbered(TABLE_TAG, prefix, new Uint8Array(0)),
    lt: numbered(TABLE_TAG, prefix + 1, new Uint8Array(0)),
  };
}

/** Everything of all tables. */
export function allTables(): KeyRange {
  return { gte: Uint8Array.of(TABLE_TAG), lt: Uint8Array.of(TABLE_TAG + 1) };
}

/** The prefix in a key of a table. */
export function prefixOf(key: Uint8Array): number {
  return getUint64(viewOf(key), 1, 'a key of a table');
}

/** Everything under prefixes below, and above, `prefix`. */
export function otherPrefixes(prefix: number): readonly KeyRange[] {
  const { gte, lt } = prefixRange(prefix);
  return [
    { gte: Uint8Array.of(TABLE_TAG), lt: gte },
    { gte: lt, lt: Uint8Array.of(TABLE_TAG + 1) },
  ];
}

function numbered(tag: number, value: number, tail: Uint8Array): Uint8Array {
  const key = new Uint8Array(9 + tail.length);
  key[0] = tag;
  setUint64(viewOf(key), 1, value);
  key.set(tail, 9);
  return key;
}
