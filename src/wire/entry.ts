/** Entries of the log ↔ their messages. An entry's index is not written: it follows from its place. */
import { assert } from '../base/assert.js';
import type { Entry, EntryKind } from '../raft/types.js';
import { decodeConfiguration } from './configuration.js';
import { CorruptBytes } from './corrupt.js';
import { bytes as bytesOf, enumName, enumNumber, integer, parts } from './fields.js';
import type { Names } from './fields.js';
import { uint64 } from './numbers.js';
import type { Fields } from './proto.js';

/** In the order of their numbers on the wire. */
export const ENTRY_KINDS: Names<EntryKind> = ['noop', 'command', 'configuration'];

/** As a part of another message; the entries must be consecutive. */
export function entriesFields(entries: readonly Entry[]): readonly Fields[] {
  const first = entries[0]?.index ?? 0;
  return entries.map((entry, at) => {
    assert(entry.index === first + at, `entry ${entry.index} stands where ${first + at} belongs`);
    return { term: uint64(entry.term, 'term'), kind: enumNumber(ENTRY_KINDS, entry.kind), payload: entry.payload };
  });
}

/** From the field `entries` of another message. */
export function readEntries(fields: Fields, firstIndex: number, what: string): readonly Entry[] {
  const entries = parts(fields, 'entries', what);
  if (!Number.isSafeInteger(firstIndex + entries.length)) {
    throw new CorruptBytes(what, 'has entries with an index above 2^53 - 1');
  }
  return entries.map((entry, at) => {
    const payload = bytesOf(entry, 'payload', what);
    const kind = enumName(ENTRY_KINDS, entry, 'kind', what);
    const base = { index: firstIndex + at, term: integer(entry, 'term', what), kind, payload };
    return kind === 'configuration' ? { ...base, configuration: decodeConfiguration(payload) } : base;
  });
}
