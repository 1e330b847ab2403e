/**
 * Queued acquires at the leader (design 7 and 8; F7, S5). A call for a waiter is held here for a bounded time. The state
 * machine decides who is granted; this file knows who would hear of it:
 *  - a waiter is *detached* when this leader, in this term, saw its last call end, or has an EndWait of it open;
 *  - one whom a new leader has seen no call of counts as attached until the grace is over;
 *  - nobody has called for a detached one during the grace, or its wait is over: EndWait, and nothing is answered for it
 *    until the outcome.
 */
import { assert } from '../base/assert.js';
import { nameOf } from '../base/domain.js';
import type { Domain, RequestId } from '../base/ids.js';
import type { WaitEnd } from '../lease/commands.js';
import { position, leaseInTheWay, queueOf, queues } from '../lease/lookup.js';
import { freePlace } from '../lease/slots.js';
import type { Applied, Lease, Waiter } from '../lease/types.js';
import { answerAcquire, answerGranted, answerNotGranted, proposeAcquire } from './serving.js';
import { afterRound, batches, proposeInternal } from './renewal.js';
import type { Context, Leadership, Served } from './state.js';
import { endedView, leaseView } from './views.js';

/** How often waits and holds are looked at, in milliseconds. */
const SCAN_MS = 20;

/** One waiter as this leader sees it. */
export interface Attachment {
  readonly waiter: Waiter;
  /** The calls that are held for it. */
  readonly calls: Set<Served>;
  /** Since when there is none; counts only while there is none. */
  silentSince: number;
  /** False for a waiter whom a new leader found, until it sees a call for it. */
  seen: boolean;
  /** When its wait is over. */
  readonly waitUntil: number;
  /** The held call that was proposed because the domain is free. */
  offered: Served | undefined;
  /** Set while an EndWait is open: nothing is answered for the id until its outcome (F7). Holds what waits for that. */
  ending: { readonly over: boolean; readonly waiting: (() => void)[] } | undefined;
}

/** All waiters, at one leader. */
export interface Waits {
  readonly attachments: Map<RequestId, Attachment>;
  /** Names whose free place could not be offered to their waiters yet. */
  readonly unoffered: Set<Domain>;
  lastScanAt: number;
}

/** Nobody waits. */
export function createWaits(): Waits {
  return { attachments: new Map(), unoffered: new Set(), lastScanAt: 0 };
}

/** This leader begins: everybody who waits counts as attached for the grace, and waits from now. */
export function takeOverWaits(context: Context, leadership: Leadership): void {
  for (const [name, queue] of queues(context.lease)) {
    for (const waiter of queue) attach(context, leadership, waiter, false);
    leadership.waits.unoffered.add(name);
  }
}

/** Holds a call for a waiter, and has it proposed if the domain is free. */
export function holdCall(context: Context, leadership: Leadership, served: Served, waiter: Waiter): void {
  const attachment = leadership.waits.attachments.get(waiter.requestId);
  assert(attachment !== undefined, `waiter ${waiter.requestId} is not known to the leader`);
  if (attachment.offered === served) attachment.offered = undefined;
  attachment.calls.add(served);
  offer(context, leadership, waiter.domain);
}

/** A call has ended, however: it is held no more. */
export function letGo(context: Context, leadership: Leadership, served: Served): void {
  if (served.call.type !== 'acquire') return;
  const attachment = leadership.waits.attachments.get(served.call.requestId);
  if (attachment?.calls.delete(served) !== true) return;
  attachment.silentSince = context.time.nowMs;
  attachment.seen = true;
  if (attachment.offered === served) attachment.offered = undefined;
}

/**
 * Who is passed over when `name` comes free: the detached ones in front of the first waiter who is not. As the applied
 * state and this leader see it now; whoever joins until the entry is applied comes behind.
 */
export function detachedBefore({ lease, options, time }: Context, leadership: Leadership, name: Domain): RequestId[] {
  const detached: RequestId[] = [];
  for (const { requestId } of queueOf(lease, name)) {
    const attachment = leadership.waits.attachments.get(requestId);
    assert(attachment !== undefined, `waiter ${requestId} is not known to the leader`);
    if (!isDetached(attachment, time.nowMs, options.waiterGraceMs)) break;
    // One whose EndWait is open has left by then, or that EndWait takes back what it is handed: lists stay short when many
    // leave together.
    if (attachment.ending === undefined) detached.push(requestId);
  }
  return detached;
}

function isDetached({ calls, seen, silentSince, ending }: Attachment, now: number, graceMs: number): boolean {
  if (ending !== undefined) return true;
  return calls.size === 0 && (seen || now - silentSince >= graceMs);
}

/** What an entry did to the queues: new waiters are attached, those that left are answered, what came free is offered. */
export function settleWaits(context: Context, leadership: Leadership, applied: Applied, index: number): void {
  if (applied.queued !== undefined) attach(context, leadership, applied.queued, true);
  for (const waiter of applied.left) leave(context, leadership, applied, waiter, index);
  for (const { lease } of applied.ended) endWaitApplied(context, leadership, lease.requestId);
  for (const { lease } of applied.ended) offer(context, leadership, nameOf(lease.domain));
  for (const { domain } of applied.opened) offer(context, leadership, nameOf(domain));
  for (const { domain } of applied.left) offer(context, leadership, domain);
}

/** Grants are allowed from now on: whoever is called for is offered what is free. */
export function holdEnded(context: Context, leadership: Leadership): void {
  for (const [name] of queues(context.lease)) offer(context, leadership, name);
}

function attach({ time }: Context, { waits }: Leadership, waiter: Waiter, seen: boolean): void {
  const { requestId, waitMs } = waiter;
  assert(!waits.attachments.has(requestId), `waiter ${requestId} is known twice`);
  waits.attachments.set(requestId, {
    waiter,
    calls: new Set(),
    silentSince: time.nowMs,
    seen,
    waitUntil: time.nowMs + waitMs,
    offered: undefined,
    ending: undefined,
  });
}

/** Answers the calls of a waiter who has left its queue: by a grant, or because it is over. */
function leave(context: Context, leadership: Leadership, applied: Applied, waiter: Waiter, index: number): void {
  const { requestId } = waiter;
  const attachment = leadership.waits.attachments.get(requestId);
  assert(attachment !== undefined, `waiter ${requestId} is not known to the leader`);
  const lease = applied.granted.find((granted) => granted.requestId === requestId);
  if (lease === undefined) {
    over(context, leadership, attachment);
    return;
  }
  // Granted while an EndWait is open: nobody is told, and the EndWait takes it back (F7).
  if (attachment.ending !== undefined) return;
  leadership.waits.attachments.delete(requestId);
  // The call that was proposed is answered as the caller of its own entry.
  for (const served of attachment.calls) {
    if (served !== attachment.offered) answerHandedOver(context, leadership, served, lease, index);
  }
}

/** The lease of a request ended; if it was granted while an EndWait was open, this is its outcome. */
function endWaitApplied(context: Context, leadership: Leadership, requestId: RequestId): void {
  const attachment = leadership.waits.attachments.get(requestId);
  if (attachment !== undefined) over(context, leadership, attachment);
}

/** A waiter's request is over, without a grant that anybody was told of. */
function over(context: Context, leadership: Leadership, attachment: Attachment): void {
  const { waiter, calls, offered, ending } = attachment;
  const { requestId, domain } = waiter;
  leadership.waits.attachments.delete(requestId);
  for (const served of calls) {
    if (served === offered) continue;
    if (ending?.over === true) answerNotGranted(context, served, 'wait_over', leaseInTheWay(context.lease, domain));
    else answerAcquire(context, served, { type: 'ended', ended: endedView(context.lease, requestId) });
  }
  for (const resume of ending?.waiting ?? []) resume();
}

/**
 * A grant by hand-over leaves when a majority has confirmed this leader after the call came: the freeing entry does, if it
 * was appended after the call arrived; else a round does (design 8).
 */
function answerHandedOver(context: Context, leadership: Leadership, served: Served, lease: Lease, index: number): void {
  const answer = (): void => {
    if (!served.done) answerGranted(context, leadership, served, lease);
  };
  if (index > served.arrivedBehind) answer();
  else afterRound(context, leadership, answer);
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
    if (proposeAcquire(context, leadership, served)) attachment.offered = served;
    else unoffered.add(name);
    return;
  }
}

/** Ends holds and waits whose time is over. Called at each tick. */
export function scanWaits(context: Context, leadership: Leadership): void {
  const { waits } = leadership;
  const { nowMs } = context.time;
  if (nowMs - waits.lastScanAt < SCAN_MS) return;
  waits.lastScanAt = nowMs;
  // As a copy: what still cannot be offered is put back.
  for (const name of [...waits.unoffered]) offer(context, leadership, name);
  const over: Attachment[] = [];
  for (const attachment of waits.attachments.values()) {
    endHolds(context, attachment);
    if (isOver(attachment, nowMs, context.options.waiterGraceMs)) over.push(attachment);
  }
  proposeEndWaits(context, leadership, over);
}

/** Answers `queued` to the calls that were held as long as they may be; the caller calls again. */
function endHolds(context: Context, { waiter, calls, offered, ending }: Attachment): void {
  if (ending !== undefined) return;
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
function isOver(attachment: Attachment, now: number, graceMs: number): boolean {
  const { calls, seen, silentSince, waitUntil, offered, ending } = attachment;
  if (ending !== undefined || offered !== undefined) return false;
  if (calls.size === 0 && now - silentSince >= graceMs) return true;
  // One of whom a new leader has seen no call has the whole grace to come back.
  return now >= waitUntil && (calls.size > 0 || seen);
}

function proposeEndWaits(context: Context, leadership: Leadership, attachments: readonly Attachment[]): void {
  const { nowMs, unixMs } = context.time;
  // Before any list is made: none of them is in it.
  for (const attachment of attachments) attachment.ending = { over: nowMs >= attachment.waitUntil, waiting: [] };
  const ends = attachments.map((attachment) => {
    const { domain, requestId } = attachment.waiter;
    return { attachment, requestId, detached: detachedBefore(context, leadership, domain) };
  });
  for (const batch of batches(ends, ({ detached }) => 48 + 38 * detached.length)) {
    const waits: WaitEnd[] = batch.map(({ requestId, detached }) => ({ requestId, detached }));
    const command = { type: 'endWait', term: leadership.term, waits, atUnixMs: unixMs } as const;
    if (proposeInternal(context, leadership, command) !== undefined) continue;
    // Leadership is being handed over: tried again.
    for (const { attachment } of batch) attachment.ending = undefined;
  }
}
