/** What a node holds of its watchers. Each takes a few words, however slow it is; the changes are kept once, in the ring. */
import { assert } from '../base/assert.js';
import type { Revision } from '../base/revision.js';
import { createRing } from './changes.js';
import type { ChangeRing } from './changes.js';
import type { WatchId, WatchLimits } from './types.js';

/** One watch that is served. */
export interface Watcher {
  readonly id: WatchId;
  readonly prefix: string;
  /** What it knows ends before this revision; what it asked for may begin ahead of what is applied. */
  from: Revision;
  /** Changes of `from` itself that it has been sent already. */
  skip: number;
  /** The ring may have something for it from `from` on. Otherwise it knows everything that is applied. */
  behind: boolean;
  /** The next message may be sent. */
  ready: boolean;
  /** When the last message was sent; before the first, long ago. */
  sentAt: number;
  readonly since: number;
}

/** The watches of one node. */
export interface Watching {
  readonly ring: ChangeRing;
  readonly watchers: Map<WatchId, Watcher>;
  /** Every stream that is open, of watches that are over too, but for the refused: whose quota it counts against. */
  readonly streams: Map<WatchId, string>;
  readonly principals: Map<string, number>;
  readonly byPrefix: Map<string, Set<Watcher>>;
  /** How many prefixes there are of each length. */
  readonly prefixLengths: Map<number, number>;
  /** Behind and ready, in the order of their turns. */
  readonly due: Set<Watcher>;
  /** Since when this node knows no leader. */
  leaderlessSince: number | undefined;
}

/** Nobody watches; changes are known from the first entry behind `applied` on. */
export function createWatching(applied: Revision, { batchBytes, messageBytes }: WatchLimits): Watching {
  // A revision that comes in parts takes a message for itself: nothing that was gathered before may be left with it.
  assert(batchBytes <= messageBytes, `a batch of ${batchBytes} bytes does not fit into a message of ${messageBytes}`);
  return {
    ring: createRing(next(applied)),
    watchers: new Map(),
    streams: new Map(),
    principals: new Map(),
    byPrefix: new Map(),
    prefixLengths: new Map(),
    due: new Set(),
    leaderlessSince: undefined,
  };
}

/** The revision behind `revision`. */
export function next(revision: Revision): Revision {
  return (revision + 1) as Revision;
}

/** It is over; its stream, and its place in the quota, are there until it is closed. */
export function dropWatcher(watching: Watching, watcher: Watcher): void {
  const { id, prefix } = watcher;
  watching.watchers.delete(id);
  watching.due.delete(watcher);
  const same = watching.byPrefix.get(prefix);
  same?.delete(watcher);
  if (same?.size !== 0) return;
  watching.byPrefix.delete(prefix);
  const lengths = (watching.prefixLengths.get(prefix.length) ?? 0) - 1;
  if (lengths > 0) watching.prefixLengths.set(prefix.length, lengths);
  else watching.prefixLengths.delete(prefix.length);
}

/** It is served from here on. */
export function addWatcher({ watchers, due, byPrefix, prefixLengths }: Watching, watcher: Watcher): void {
  const { id, prefix } = watcher;
  watchers.set(id, watcher);
  if (watcher.behind) due.add(watcher);
  const same = byPrefix.get(prefix);
  if (same !== undefined) {
    same.add(watcher);
    return;
  }
  byPrefix.set(prefix, new Set([watcher]));
  prefixLengths.set(prefix.length, (prefixLengths.get(prefix.length) ?? 0) + 1);
}
