/**
 * Queued acquires at the leader (design 7 and 8; F7, S5). A call for a waiter is held here for a bounded time. The state
 * machine decides who is granted; this file knows who would hear of it:
 *  - a waiter is *detached* when this leader, in this term, saw its last call end, or has an EndWait of it open;
 *  - one whom a new leader has seen no call of counts as attached until the grace is over;
 *  - while an EndWait of it is open (see `wait-ends.ts`) nothing is answered for it (F7).
 */
import { BigMap } from '../base/big-map.js';
import { nameOf } from '../base/domain.js';
import type { Domain, RequestId } from '../base/ids.js';
import { currentToken, leaseInTheWay, queueOf, queues } from '../lease/lookup.js';
import { freePlace } from '../lease/slots.js';
import type { Applied, Waiter } from '../lease/types.js';
import { answerAcquire, answerGranted, answerNotGranted } from './answers.js';
import { attach, attachmentOf, forget, lookAgain } from './attachments.js';
import { createDueList } from './due.js';
import { proposeAcquire } from './proposing.js';
import { afterRound } from './renewal.js';
import type { Attachment, Context, Leadership, Served, Waits } from './state.js';
import { endedView } from './views.js';

/** How often what could not be offered is offered again, in milliseconds. */
const RETRY_OFFER_MS = 20;

/** Nobody waits. */
export function createWaits(): Waits {
  return {
    attachments: new BigMap(),
    found: undefined,
    due: createDueList(),
    freeing: new Map(),
    unoffered: new Set(),
    offeredAgainAt: 0,
  };
}

/**
 * This leader begins: everybody who waits counts as attached for the grace, and waits from now. It gets to know them by
 * and by (see {@link findWaiters}), as it does the leases: a few hundred thousand in one go take it near an election time-out.
 */
export function takeOverWaits({ lease, time }: Context, { waits }: Leadership): void {
  waits.found = { queues: queues(lease)[Symbol.iterator](), from: time.nowMs };
}

/** Gets to know about `limit` more of the waiters that were found; a queue comes as a whole. Called at each tick. */
export function findWaiters(context: Context, leadership: Leadership, limit: number): void {
  const { waits } = leadership;
  for (let left = limit; waits.found !== undefined && left > 0;) {
    const next = waits.found.queues.next();
    if (next.done === true) {
      waits.found = undefined;
      return;
    }
    const [name, queue] = next.value;
    for (const waiter of queue) attachmentOf(context, leadership, waiter);
    waits.unoffered.add(name);
    left -= queue.length;
  }
}

/** Holds a call for a waiter, and has it proposed if the domain is free. */
export function holdCall(context: Context, leadership: Leadership, served: Served, waiter: Waiter): void {
  const attachment = attachmentOf(context, leadership, waiter);
  if (attachment.offered === served) attachment.offered = undefined;
  attachment.calls.add(served);
  lookAgain(context, leadership, attachment);
  offer(context, leadership, waiter.domain);
}

/** What an entry did to the queues: new waiters are attached, those that left are answered, what came free is offered. */
export function settleWaits(context: Context, leadership: Leadership, applied: Applied, index: number): void {
  if (applied.queued !== undefined) attach(context, leadership, applied.queued);
  for (const waiter of applied.left) leave(context, leadership, applied, waiter, index);
  for (const { lease } of applied.ended) endWaitApplied(context, leadership, lease.requestId, index);
  for (const { lease } of applied.ended) offer(context, leadership, nameOf(lease.domain));
  for (const { domain } of applied.opened) offer(context, leadership, nameOf(domain));
  for (const { domain } of applied.left) offer(context, leadership, domain);
}

/** Grants are allowed from now on: whoever is called for is offered what is free. */
export function holdEnded(context: Context, leadership: Leadership): void {
  for (const [name] of queues(context.lease)) offer(context, leadership, name);
}

/** Answers the calls of a waiter who has left its queue: by a grant, or because it is over. */
function leave(context: Context, leadership: Leadership, applied: Applied, waiter: Waiter, index: number): void {
  const { requestId } = waiter;
  const attachment = attachmentOf(context, leadership, waiter);
  const lease = applied.granted.find((granted) => granted.requestId === requestId);
  if (lease === undefined) {
    over(context, leadership, attachment, index);
    return;
  }
  // Granted while an EndWait is open: nobody is told, and the EndWait takes it back (F7).
  if (attachment.ending !== undefined) return;
  forget(leadership, attachment);
  // The call that was proposed is answered as the caller of its own entry.
  for (const served of attachment.calls) {
    if (served === attachment.offered) continue;
    whenConfirmed(context, leadership, served, index, () => {
      answerGranted(context, leadership, served, lease);
    });
  }
}

/** The lease of a request ended; if it was granted while an EndWait was open, this is its outcome. */
function endWaitApplied(context: Context, leadership: Leadership, requestId: RequestId, index: number): void {
  const attachment = leadership.waits.attachments.get(requestId);
  if (attachment !== undefined) over(context, leadership, attachment, index);
}

/** A waiter's request is over by the entry at `index`, without a grant that anybody was told of. */
function over(context: Context, leadership: Leadership, attachment: Attachment, index: number): void {
  const { waiter, calls, offered, ending } = attachment;
  const { requestId, domain } = waiter;
  forget(leadership, attachment);
  const ended = endedView(context.lease, requestId);
  // A Withdraw may have come before the EndWait.
  const waitOver = ending?.over === true && ended.reason === 'left_queue';
  for (const served of calls) {
    if (served === offered) continue;
    whenConfirmed(context, leadership, served, index, () => {
      if (waitOver) answerNotGranted(context, served, 'wait_over', leaseInTheWay(context.lease, domain));
      else {
        const now = currentToken(context.lease, ended.lease?.domain ?? domain);
        answerAcquire(context, served, { type: 'ended', ended: { ...ended, currentToken: now } });
      }
    });
  }
  for (const resume of ending?.waiting ?? []) resume();
}

/**
 * What the entry at `index` made of a waiter is told when a majority has confirmed this leader after the call came: that
 * entry does, if it was appended after the call arrived; else a round does (design 8).
 */
function whenConfirmed(
  context: Context,
  leadership: Leadership,
  served: Served,
  index: number,
  answer: () => void,
): void {
  if (index > served.arrivedBehind) answer();
  else {
    afterRound(context, leadership, () => {
      if (!served.done) answer();
    });
  }
}

/**
 * If `name` has a free place and a waiter for whom a call is held, the first such call is proposed: the entry that freed
 * the place passed it over, or grants were held back. Its own entry grants it, and the next is offered what is left then.
 */
function offer(context: Context, leadership: Leadership, name: Domain): void {
  const { attachments, unoffered } = leadership.waits;
  unoffered.delete(name);
  if (context.lease.holding || freePlace(context.lease, name) === undefined) return;
  for (const { requestId } of queueOf(context.lease, name)) {
    const attachment = attachments.get(requestId);
    if (attachment === undefined || attachment.ending !== undefined) continue;
    if (attachment.offered !== undefined) return;
    const [served] = attachment.calls;
    if (served === undefined) continue;
    if (proposeAcquire(context, leadership, served)) {
      attachment.offered = served;
      lookAgain(context, leadership, attachment);
    } else unoffered.add(name);
    return;
  }
}

/** Offers again what could not be offered before: the leader had too much work, or was handing over. Called at each tick. */
export function offerAgain(context: Context, leadership: Leadership): void {
  const { waits } = leadership;
  const { nowMs } = context.time;
  if (waits.unoffered.size === 0 || nowMs - waits.offeredAgainAt < RETRY_OFFER_MS) return;
  waits.offeredAgainAt = nowMs;
  // As a copy: what still cannot be offered is put back.
  for (const name of [...waits.unoffered]) offer(context, leadership, name);
}
