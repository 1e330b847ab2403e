import { assert } from './assert.js';
import type { Brand } from './ids.js';

/**
 * A position in the history of a cluster name: positive safe integer of 16 digits. The revision of the entry that
 * granted a lease is its fencing token. `ZERO_REVISION` stands for "none".
 */
export type Revision = Brand<number, 'Revision'>;

/** Less than every revision. */
export const ZERO_REVISION = 0 as Revision;

/** Where a history's revisions begin (design 3, F2). */
export interface History {
  /** `max(clock, floor)` at forming, in microseconds since 1970. */
  readonly base: Revision;
  /** The Raft index at which the history begins; its snapshot, so the first entry is `start + 1`. */
  readonly start: number;
}

/** `base + (index − start)`. The only place where an index becomes a revision. */
export function revisionAt(history: History, index: number): Revision {
  const revision = history.base + (index - history.start);
  assert(index >= history.start, `index ${index} lies before the history's start ${history.start}`);
  assert(Number.isSafeInteger(revision), `revision ${revision} of index ${index} is not a safe integer`);
  return revision as Revision;
}
