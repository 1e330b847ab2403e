/** How calls end at the leader. Each is answered once, through `context.completed`. */
import { assert } from '../base/assert.js';
import type { EndedView, NotGrantedReason } from '../base/api.js';
import { failure } from '../base/errors.js';
import type { Reason } from '../base/errors.js';
import { revisionAt } from '../base/revision.js';
import { leaseOf, queueOf } from '../lease/lookup.js';
import type { Lease, Result } from '../lease/types.js';
import { letGo } from './attachments.js';
import { coolDownLeftMs } from './cooling.js';
import { sharedLimits } from './limits.js';
import { whenAnswerable } from './renewal.js';
import { failed, originKey } from './state.js';
import type { Context, Leadership, Served } from './state.js';
import type { CallResult } from './types.js';
import { leaseState, leaseView } from './views.js';

/** Ends a call. */
export function complete(context: Context, served: Served, result: CallResult): void {
  if (served.done) return;
  abandon(context, served);
  context.completed.push({ served, result });
}

/** Its caller has gone, or it is being answered: whoever still waits for the call drops it. */
export function abandon(context: Context, served: Served): void {
  served.done = true;
  const { leadership } = context;
  if (leadership === undefined) return;
  leadership.served.delete(originKey(served.origin));
  letGo(context, leadership, served);
}

/** A grant leaves only when the lease's fate is not open: after its Void, after the outcome of its Expire (F5, L2). */
export function answerGranted(context: Context, leadership: Leadership, served: Served, lease: Lease): void {
  whenAnswerable(context, leadership, lease, served.arrivedAt, () => {
    const now = leaseOf(context.lease, lease.domain);
    if (now?.token === lease.token) {
      answerAcquire(context, served, { type: 'granted', lease: leaseView(now) });
      return;
    }
    const state = leaseState(context.lease, lease);
    assert(state.type === 'ended', `lease ${lease.domain} is live under another object`);
    answerAcquire(context, served, state);
  });
}

type AcquireOutcome = Extract<Extract<CallResult, { type: 'answer' }>['answer'], { type: 'acquire' }>['outcome'];

/** Answers an acquire. */
export function answerAcquire(context: Context, served: Served, outcome: AcquireOutcome): void {
  assert(served.call.type === 'acquire', `a ${served.call.type} is answered as an acquire`);
  answer(context, served, { type: 'acquire', requestId: served.call.requestId, outcome });
}

/** Answers a call with what its entry did. */
export function answerResult(
  context: Context,
  served: Served,
  result: Exclude<Result, { type: 'granted' | 'queued' }>,
): void {
  switch (result.type) {
    case 'notGranted':
      answerNotGranted(context, served, result.reason, result.current);
      return;
    case 'overQuota': {
      const { of, what, limit } = result;
      refuse(context, served, 'QUOTA_EXCEEDED', `${of} has as many ${what} as it may: ${limit}`);
      return;
    }
    case 'ended':
      answerAcquire(context, served, { type: 'ended', ended: result.ended });
      return;
    case 'tooOld': {
      const revision = context.lease.revision;
      const message = `the request was made at a revision below ${result.forgotten}, up to which finished requests are forgotten`;
      complete(context, served, failed(failure('REQUEST_TOO_OLD', message, { revision })));
      return;
    }
    case 'reused':
      refuseReuse(context, served, result.difference);
      return;
    case 'released':
      answer(context, served, {
        type: 'release',
        released: result.released,
        ended: endedUnless(result.released, result.ended),
      });
      return;
    case 'withdrawn':
      answer(context, served, { type: 'withdraw' });
      return;
    case 'forceReleased':
      answer(context, served, { type: 'forceRelease', released: result.released, currentToken: result.currentToken });
      return;
    case 'limitsChanged': {
      const { before, after } = result;
      answer(context, served, { type: 'changeLimits', before: sharedLimits(before), after: sharedLimits(after) });
      return;
    }
    case 'done':
      assert(false, 'an internal command has no caller');
  }
}

/** Not granted, with what is in the way as the state has it now. */
export function answerNotGranted(
  context: Context,
  served: Served,
  reason: NotGrantedReason,
  current: Lease | undefined,
): void {
  assert(served.call.type === 'acquire', `a ${served.call.type} is answered as an acquire`);
  const { domain } = served.call;
  answerAcquire(context, served, {
    type: 'notGranted',
    reason,
    current: current === undefined ? undefined : leaseView(current),
    queueLength: queueOf(context.lease, domain).length,
    coolDownLeftMs: coolDownLeftMs(context, domain),
  });
}

/** The id stands for something else. */
export function refuseReuse(context: Context, served: Served, difference: string): void {
  refuse(context, served, 'REQUEST_ID_REUSED', `the request id was used before with another ${difference}`);
}

function endedUnless(released: boolean, ended: EndedView | undefined): EndedView | undefined {
  assert(released || ended !== undefined, 'a lease that was not released has ended somehow');
  return released ? undefined : ended;
}

/** Answers a call, stamped with what is applied now. */
export function answer(
  context: Context,
  served: Served,
  value: Extract<CallResult, { type: 'answer' }>['answer'],
): void {
  const revision = revisionAt(context.genesis.history, context.applied);
  complete(context, served, { type: 'answer', answer: value, revision });
}

/** Ends a call with an error that says so in the table's words; unknown, when an entry was appended for it. */
export function refuse(context: Context, served: Served, reason: Reason, message: string): void {
  complete(context, served, failed(failure(reason, message, { outcome: served.proposed ? 'unknown' : 'not-done' })));
}
