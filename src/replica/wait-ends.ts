/**
 * The ends of holds and waits at the leader: a call is answered `queued` when it was held for as long as it may be; a
 * request leaves its queue by an EndWait when its wait is over, or when nobody has called for it during the grace.
 */
import { leaseInTheWay, position } from '../lease/lookup.js';
import { answerAcquire } from './answers.js';
import { lookAgain } from './attachments.js';
import { takeDue } from './due.js';
import { freeingBatches, mayBeFree } from './passing.js';
import { proposeInternal } from './proposing.js';
import type { Attachment, Context, Leadership } from './state.js';
import { leaseView } from './views.js';
import { findWaiters, offerAgain } from './waiting.js';

/** Ends holds and waits whose time is over. Called at each tick. */
export function scanWaits(context: Context, leadership: Leadership): void {
  findWaiters(context, leadership, context.options.timedPerTick);
  offerAgain(context, leadership);
  const over: Attachment[] = [];
  for (const attachment of takeDue(leadership.waits.due, context.time.nowMs)) {
    // First: a call that is held until its wait is over is told so.
    if (isOver(context, attachment)) over.push(attachment);
    else {
      endHolds(context, attachment);
      lookAgain(context, leadership, attachment);
    }
  }
  proposeEndWaits(context, leadership, over);
}

/** Answers `queued` to the calls that were held as long as they may be; the caller calls again. */
function endHolds(context: Context, { waiter, calls, offered }: Attachment): void {
  for (const served of calls) {
    if (served === offered || context.time.nowMs < served.holdUntil) continue;
    const current = leaseInTheWay(context.lease, waiter.domain);
    answerAcquire(context, served, {
      type: 'queued',
      position: position(context.lease, waiter),
      current: current === undefined ? undefined : leaseView(current),
    });
  }
}

/** Not while its own call is on its way to a grant: an EndWait behind that would take it back. */
function isOver({ time, options }: Context, attachment: Attachment): boolean {
  const { calls, seen, silentSince, waitUntil, offered } = attachment;
  if (offered !== undefined) return false;
  if (calls.size === 0 && time.nowMs - silentSince >= options.waiterGraceMs) return true;
  // One of whom a new leader has seen no call has the whole grace to come back.
  return time.nowMs >= waitUntil && (calls.size > 0 || seen);
}

function proposeEndWaits(context: Context, leadership: Leadership, over: readonly Attachment[]): void {
  const { nowMs, unixMs } = context.time;
  // Before any list is made: from here they are detached.
  for (const attachment of over) attachment.ending = { over: nowMs >= attachment.waitUntil, waiting: [] };
  // It frees nothing but what others on their way grant to them in between, which is counted already.
  const frees = (): number => 0;
  const parts = freeingBatches(
    context,
    leadership,
    over,
    ({ waiter }) => waiter.domain,
    () => 48,
    frees,
  );
  for (const part of parts) {
    const waits = part.map(({ item, detached }) => ({ requestId: item.waiter.requestId, detached }));
    const command = { type: 'endWait', term: leadership.term, waits, atUnixMs: unixMs } as const;
    const names = part.map(({ name }) => name).filter((name) => mayBeFree(context, leadership, name) > 0);
    if (proposeInternal(context, leadership, command, { frees: names }) !== undefined) continue;
    // Leadership is being handed over: tried again.
    for (const { item } of part) {
      item.ending = undefined;
      lookAgain(context, leadership, item);
    }
  }
}
