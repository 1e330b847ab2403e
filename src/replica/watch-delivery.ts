/**
 * Changes on their way to the watchers: each once and in order, never part of a revision as if it were the whole. A
 * watcher that keeps up costs a look at its prefix; one that lags reads the ring by itself, a bounded part at a time, so
 * that the others do not wait for it. What the ring no longer has is never passed over in silence.
 */
import { assert } from '../base/assert.js';
import type { Revision } from '../base/revision.js';
import type { ChangeView } from '../base/watch.js';
import { at } from '../lease/fifo.js';
import type { Applied } from '../lease/types.js';
import { bytesOf, changesOf, changeView, clearRing, positionOf, remember } from './changes.js';
import type { RevisionChanges } from './changes.js';
import type { Context } from './state.js';
import { next } from './watchers.js';
import type { Watcher, Watching } from './watchers.js';
import { appliedRevision, sendNews } from './watching.js';

/** Revisions that one watcher reads in its turn, and that all read together in one step; the rest comes with the next. */
const READ_A_TURN = 2_000;
const READ_A_STEP = 20_000;

/** An entry was applied, at `revision`. */
export function noteChanges(context: Context, revision: Revision, applied: Applied): void {
  const { watching, lease, options } = context;
  const changes = changesOf(lease, applied);
  if (changes.length === 0) return;
  remember(watching.ring, { revision, changes }, options.watch.ringBytes);
  if (watching.watchers.size === 0) return;
  for (const { domain } of changes) {
    for (const length of watching.prefixLengths.keys()) {
      if (length > domain.length) continue;
      for (const watcher of watching.byPrefix.get(domain.slice(0, length)) ?? []) wake(watching, watcher, revision);
    }
  }
}

/** The state was replaced by one that is applied up to `revision`: nobody knows what changed in between. */
export function changesLost({ watching }: Context, revision: Revision): void {
  clearRing(watching.ring, next(revision));
  for (const watcher of watching.watchers.values()) {
    // What it has asked for may lie further ahead than even the new state.
    if (!watcher.behind && watcher.from <= revision) setBehind(watching, watcher);
  }
}

/** Sends what there is to all who can take it. Called at the end of each step. */
export function deliverChanges(context: Context): void {
  const { due } = context.watching;
  let left = READ_A_STEP;
  for (const watcher of [...due]) {
    if (left <= 0) return;
    due.delete(watcher);
    left -= deliver(context, watcher);
    // Its turn comes again behind those who have not had theirs.
    if (watcher.behind && watcher.ready && context.watching.watchers.has(watcher.id)) due.add(watcher);
  }
}

/** The domain of a change begins with its prefix, and it knew everything until now. */
function wake(watching: Watching, watcher: Watcher, revision: Revision): void {
  if (watcher.behind || watcher.from > revision) return;
  watcher.from = revision;
  setBehind(watching, watcher);
}

function setBehind(watching: Watching, watcher: Watcher): void {
  watcher.behind = true;
  if (watcher.ready) watching.due.add(watcher);
}

/** Reads on from where the watcher is and sends what it finds, or how far it got. Returns how much it read. */
function deliver(context: Context, watcher: Watcher): number {
  const { watching, options } = context;
  const { ring } = watching;
  assert(watcher.behind && watcher.ready, `watch ${watcher.id} has no turn`);
  if (watcher.from < ring.oldest) {
    sendNews(context, watcher, appliedRevision(context), { type: 'compacted', oldest: ring.oldest });
    return 1;
  }
  const { batchBytes, messageBytes } = options.watch;
  const events: ChangeView[] = [];
  let bytes = 0;
  let read = 0;
  for (let position = positionOf(ring, watcher.from); read < READ_A_TURN; position++, read++) {
    const of = at(ring.recent, position);
    if (of === undefined) {
      watcher.behind = false;
      break;
    }
    const skip = of.revision === watcher.from ? watcher.skip : 0;
    const found = matching(of, watcher.prefix, skip);
    if (bytes > 0 && bytes + found.bytes > batchBytes) break;
    if (found.bytes > messageBytes) return sendPart(context, watcher, of, skip) + read;
    for (const change of found.changes) events.push(changeView(of.revision, change));
    bytes += found.bytes;
    watcher.from = next(of.revision);
    watcher.skip = 0;
  }
  const complete = watcher.behind ? ((watcher.from - 1) as Revision) : appliedRevision(context);
  if (events.length > 0) sendNews(context, watcher, complete, { type: 'events', events });
  return read + 1;
}

/** A revision with more for this watcher than one message may have: all messages but the last say that it is not complete. */
function sendPart(context: Context, watcher: Watcher, of: RevisionChanges, skip: number): number {
  const events: ChangeView[] = [];
  let bytes = 0;
  let read = skip;
  for (; read < of.changes.length; read++) {
    const change = of.changes[read];
    if (!change?.domain.startsWith(watcher.prefix)) continue;
    const more = bytesOf(change);
    if (bytes > 0 && bytes + more > context.options.watch.messageBytes) break;
    events.push(changeView(of.revision, change));
    bytes += more;
  }
  assert(read < of.changes.length, `revision ${of.revision} was sent in parts and fits into one message`);
  watcher.from = of.revision;
  watcher.skip = read;
  sendNews(context, watcher, (of.revision - 1) as Revision, { type: 'events', events });
  return 1;
}

/** What of an entry, from its change number `skip` on, concerns a prefix. */
function matching(
  { changes }: RevisionChanges,
  prefix: string,
  skip: number,
): { changes: RevisionChanges['changes']; bytes: number } {
  const found = changes.filter(({ domain }, number) => number >= skip && domain.startsWith(prefix));
  return { changes: found, bytes: found.reduce((sum, change) => sum + bytesOf(change), 0) };
}
