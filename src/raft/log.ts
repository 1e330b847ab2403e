import { assert } from '../base/assert.js';
import type { Entry, Position } from './types.js';

/** The log from the anchor on, in memory; only the cuts of the state bound it. */
export interface Log {
  /** The position before the first kept entry. Committed. */
  anchor: Position;
  /** Consecutive from `anchor.index + 1`. */
  entries: Entry[];
}

/** Index of the last entry; the anchor's when there is none. */
export function lastIndexOf(log: Log): number {
  return log.anchor.index + log.entries.length;
}

/** Index and term of the last entry. */
export function lastPosition(log: Log): Position {
  const last = log.entries.at(-1);
  return last === undefined ? log.anchor : { index: last.index, term: last.term };
}

/** The entry at `index`, undefined outside the kept log. */
export function entryAt(log: Log, index: number): Entry | undefined {
  const at = index - log.anchor.index - 1;
  return at < 0 ? undefined : log.entries[at];
}

/** The term at `index`, the anchor's included; undefined when compacted or beyond the end (R10: never 0 instead). */
export function termAt(log: Log, index: number): number | undefined {
  return index === log.anchor.index ? log.anchor.term : entryAt(log, index)?.term;
}

/** True when a log that ends at `other` holds at least as much as one that ends at `own` (paper 5.4.1): term first, then index. */
export function isUpToDate(other: Position, own: Position): boolean {
  return other.term > own.term || (other.term === own.term && other.index >= own.index);
}

/** Adds one entry at the end. */
export function appendEntry(log: Log, entry: Entry): void {
  const last = lastPosition(log);
  assert(entry.index === last.index + 1, `entry ${entry.index} does not follow the last entry ${last.index}`);
  assert(entry.term >= last.term, `entry ${entry.index} has term ${entry.term} after term ${last.term}`);
  log.entries.push(entry);
}

/** Removes the entries at and above `from`. Never a committed one: that would be a lost write. */
export function cutEntries(log: Log, from: number, commit: number): void {
  assert(from > commit, `the log would be cut at ${from}, at or below the commit index ${commit}`);
  assert(from > log.anchor.index, `the log would be cut at ${from}, at or below its anchor ${log.anchor.index}`);
  log.entries.length = Math.max(0, from - log.anchor.index - 1);
}

/** Entries after `after` up to and including `to`. */
export function entriesIn(log: Log, after: number, to: number): readonly Entry[] {
  assert(after >= log.anchor.index, `entries after ${after} were asked for, the log begins after ${log.anchor.index}`);
  assert(to <= lastIndexOf(log), `entries up to ${to} were asked for, the log ends at ${lastIndexOf(log)}`);
  return log.entries.slice(after - log.anchor.index, Math.max(after, to) - log.anchor.index);
}

/** Entries from `first` on with at most `maxBytes` of payload; one entry always fits. */
export function entriesWithin(log: Log, first: number, maxBytes: number): readonly Entry[] {
  assert(first > log.anchor.index, `entry ${first} was asked for, the log begins after ${log.anchor.index}`);
  const begin = first - log.anchor.index - 1;
  let end = begin;
  let bytes = 0;
  for (let entry = log.entries[end]; entry !== undefined; entry = log.entries[end]) {
    bytes += entry.payload.length;
    if (bytes > maxBytes && end > begin) break;
    end++;
  }
  return log.entries.slice(begin, end);
}

/** Bytes of payload in `entries`: the one size that windows and quotas charge and release (R14). */
export function payloadBytes(entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + entry.payload.length, 0);
}

/** The greatest index at or below `index` with a term at or below `term`; the anchor's index when all above it is greater. */
export function lastAtOrBelow(log: Log, index: number, term: number): number {
  let at = Math.min(index, lastIndexOf(log));
  while (at > log.anchor.index && (termAt(log, at) ?? 0) > term) at--;
  return at;
}

/** True when the entries can follow `prev` in a message of `term`: consecutive, terms rising from `prev`'s to at most `term` (R9). */
export function areConsecutive(prev: Position, entries: readonly Entry[], term: number): boolean {
  let last = prev;
  for (const entry of entries) {
    if (entry.index !== last.index + 1 || entry.term < last.term) return false;
    last = entry;
  }
  return last.term <= term;
}

/** Index of the first entry that this log does not hold with the same term; past the last of `entries` when it holds all. */
export function firstUnknown(log: Log, prev: Position, entries: readonly Entry[]): number {
  const known = entries.find((entry) => entry.index > log.anchor.index && termAt(log, entry.index) !== entry.term);
  return known?.index ?? prev.index + entries.length + 1;
}

/** Forgets the entries up to and including `index`, which becomes the anchor. */
export function compactLog(log: Log, index: number): void {
  if (index <= log.anchor.index) return;
  const term = termAt(log, index);
  assert(term !== undefined, `the log cannot be compacted to ${index}, it ends at ${lastIndexOf(log)}`);
  log.entries.splice(0, index - log.anchor.index);
  log.anchor = { index, term };
}

/** Drops everything: the log begins after a snapshot at `anchor`. */
export function resetLog(log: Log, anchor: Position): void {
  assert(anchor.index > log.anchor.index, `a snapshot at ${anchor.index} lies behind the anchor ${log.anchor.index}`);
  log.entries = [];
  log.anchor = { index: anchor.index, term: anchor.term };
}
