/**
 * The recent changes of the state, once for all watchers of a node: which entries changed what that can be seen, newest
 * last, as many as fit. Everybody applies the same entries, so every node has the same changes in the same order.
 */
import { assert } from '../base/assert.js';
import type { EndedView, LeaseRef } from '../base/api.js';
import type { Domain } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import { utf8Length } from '../base/utf8.js';
import type { ChangeView } from '../base/watch.js';
import { at, createFifo, push, shift } from '../lease/fifo.js';
import type { Fifo } from '../lease/fifo.js';
import { describeEnd, queueOf } from '../lease/lookup.js';
import type { State } from '../lease/state.js';
import type { Applied, Lease } from '../lease/types.js';
import { leaseView } from './views.js';

/** What an entry changed that a watcher is told. */
export type Change =
  | { readonly type: 'granted'; readonly domain: Domain; readonly lease: Lease }
  | { readonly type: 'ended'; readonly domain: Domain; readonly ended: EndedView & { readonly lease: LeaseRef } }
  | { readonly type: 'queueChanged'; readonly domain: Domain; readonly queueLength: number };

/** All changes of one entry; at least one. */
export interface RevisionChanges {
  readonly revision: Revision;
  readonly changes: readonly Change[];
}

/** See the head of the file. */
export interface ChangeRing {
  /** By revision; entries that changed nothing are left out. */
  readonly recent: Fifo<RevisionChanges>;
  /** From this revision on nothing is missing. */
  oldest: Revision;
  /** About what `recent` takes. */
  bytes: number;
}

/** What a change takes beside its texts, and a pair of metadata beside its two: objects here, fields on the wire. */
const CHANGE_BYTES = 96;
const PAIR_BYTES = 16;

/** Nothing is known of what was before `oldest`. */
export function createRing(oldest: Revision): ChangeRing {
  return { recent: createFifo(), oldest, bytes: 0 };
}

/** Everything before `oldest` is unknown: the state was replaced. */
export function clearRing(ring: ChangeRing, oldest: Revision): void {
  while (shift(ring.recent) !== undefined);
  ring.oldest = oldest;
  ring.bytes = 0;
}

/** What the entry that was just applied to `state` changed: ends first, then grants, then queues. */
export function changesOf(state: State, applied: Applied): Change[] {
  const changes: Change[] = [];
  for (const { lease } of applied.ended) {
    const { domain, token } = lease;
    changes.push({ type: 'ended', domain, ended: { ...describeEnd(state, lease), lease: { domain, token } } });
  }
  for (const lease of applied.granted) changes.push({ type: 'granted', domain: lease.domain, lease });
  const names = new Set(applied.left.map(({ domain }) => domain));
  if (applied.queued !== undefined) names.add(applied.queued.domain);
  for (const domain of names) {
    changes.push({ type: 'queueChanged', domain, queueLength: queueOf(state, domain).length });
  }
  return changes;
}

/** Adds the changes of the newest revision and drops the oldest ones for it; the newest are kept whatever they take. */
export function remember(ring: ChangeRing, of: RevisionChanges, maxBytes: number): void {
  const { recent } = ring;
  assert(of.revision >= ring.oldest, `changes of ${of.revision} are older than the kept ${ring.oldest}`);
  push(recent, of);
  ring.bytes += sizeOf(of);
  while (ring.bytes > maxBytes && recent.length > 1) {
    const dropped = shift(recent);
    assert(dropped !== undefined, 'a ring of several has an oldest');
    ring.bytes -= sizeOf(dropped);
    ring.oldest = (dropped.revision + 1) as Revision;
  }
}

/** Where the first revision at or behind `revision` is in `recent`; its length when there is none. */
export function positionOf({ recent }: ChangeRing, revision: Revision): number {
  let low = 0;
  let high = recent.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((at(recent, middle)?.revision ?? Infinity) < revision) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many bytes a change takes: no fewer than on the wire, where a message must stay below what a client accepts. */
export function bytesOf(change: Change): number {
  switch (change.type) {
    case 'granted': {
      const { domain, holder, metadata } = change.lease;
      let bytes = CHANGE_BYTES + domain.length + utf8Length(holder);
      for (const [key, value] of metadata) bytes += PAIR_BYTES + utf8Length(key) + utf8Length(value);
      return bytes;
    }
    case 'ended':
      return CHANGE_BYTES + change.domain.length + utf8Length(change.ended.by) + utf8Length(change.ended.note);
    case 'queueChanged':
      return CHANGE_BYTES + change.domain.length;
  }
}

/** A change as clients see it. */
export function changeView(revision: Revision, change: Change): ChangeView {
  switch (change.type) {
    case 'granted':
      return { revision, type: 'granted', lease: leaseView(change.lease) };
    case 'ended':
      return { revision, type: 'ended', ended: change.ended };
    case 'queueChanged': {
      const { type, domain, queueLength } = change;
      return { revision, type, domain, queueLength };
    }
  }
}

function sizeOf({ changes }: RevisionChanges): number {
  return changes.reduce((sum, change) => sum + bytesOf(change), 0);
}
