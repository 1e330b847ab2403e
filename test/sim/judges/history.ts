/** The history of the clients of one incarnation, for the checker of `test/support/history`. */
import type { AcquireAnswer, LeaseRef } from '../../../src/base/api.js';
import { slotOf } from '../../../src/base/domain.js';
import type { Incarnation, RequestId } from '../../../src/base/ids.js';
import { eachLease } from '../../support/history/operations.js';
import type { JudgedCall, Operation, Outcome } from '../../support/history/operations.js';
import type { Attempt } from '../clients/attempts.js';
import { safeHoldMs } from './holds.js';

/**
 * What was asked of one incarnation. A call that got no answer may have reached any of them, so it is in the history of
 * each: that it took effect is never demanded.
 *
 * Of a counting name each slot is judged as a domain of its own, as far as `grants` says who was granted which: whether a
 * slot was free for somebody who was granted none is for the reference relation to say.
 */
export function historyOf(
  incarnation: Incarnation,
  attempts: readonly Attempt[],
  grants: ReadonlyMap<RequestId, LeaseRef> | undefined,
): Operation[] {
  const history: Operation[] = [];
  const counting = new Set<RequestId>();
  for (const { call } of attempts) if (call.type === 'acquire' && call.slots > 1) counting.add(call.requestId);
  for (const attempt of attempts) {
    const { client, node, sentAt, rate, receivedAt, answeredBy } = attempt;
    const call = judged(attempt, counting, grants);
    if (call === undefined) continue;
    if (answeredBy !== undefined && answeredBy.incarnation !== incarnation) continue;
    // Other slots than the one that it was granted at some time stood in its way; that one it may have had for a while (F7).
    const elsewhere = call.type === 'acquire' && counting.has(call.requestId) && namesNoSlot(attempt.reply);
    const outcome: Outcome = elsewhere ? { type: 'unknown' } : outcomeOf(attempt);
    if (outcome.type !== 'answer') {
      history.push({ client, node, call, invokedAt: sentAt, returnedAt: undefined, outcome });
      continue;
    }
    const told = { client, node, call, invokedAt: sentAt, returnedAt: receivedAt, outcome };
    for (const operation of eachLease(told)) {
      const ttlMs = heldMs(operation.outcome);
      history.push(ttlMs === 0 ? operation : { ...operation, safeUntil: sentAt + safeHoldMs(ttlMs) / rate });
    }
  }
  return history;
}

/** The call as it is judged, about one domain or slot; undefined when it is not judged here. */
function judged(
  { call, reply }: Attempt,
  counting: ReadonlySet<RequestId>,
  grants: ReadonlyMap<RequestId, LeaseRef> | undefined,
): JudgedCall | undefined {
  switch (call.type) {
    // A List is many domains, each as it was: the relation reads it.
    case 'list':
    case 'transferLeadership':
    case 'changeLimits':
    case 'getStatus':
    case 'getStateHash':
      return undefined;
    case 'acquire':
    case 'withdraw': {
      if (!counting.has(call.requestId)) return otherwise(reply) ? undefined : call;
      const granted = grants?.get(call.requestId);
      return granted === undefined ? undefined : { ...call, domain: granted.domain };
    }
    case 'renew':
      if (grants !== undefined) return call;
      return call.leases.some(({ domain }) => slotOf(domain) !== undefined) ? undefined : call;
    case 'release':
    case 'verify':
      return grants === undefined && slotOf(call.lease.domain) !== undefined ? undefined : call;
    case 'get':
    case 'forceRelease':
      return grants === undefined && slotOf(call.domain) !== undefined ? undefined : call;
  }
}

/** Refused because the name counts: that says nothing of a domain. */
function otherwise(reply: Attempt['reply']): boolean {
  const outcome = acquired(reply);
  return outcome?.type === 'notGranted' && outcome.reason === 'slots_differ';
}

/** Not granted, or not yet, or granted once what is forgotten: what else it says is of the name, not of a slot. */
function namesNoSlot(reply: Attempt['reply']): boolean {
  const outcome = acquired(reply);
  if (outcome?.type === 'ended') return outcome.ended.lease === undefined;
  return outcome?.type === 'notGranted' || outcome?.type === 'queued';
}

function acquired(reply: Attempt['reply']): AcquireAnswer['outcome'] | undefined {
  return reply?.type === 'answer' && reply.answer.type === 'acquire' ? reply.answer.outcome : undefined;
}

/** The TTL of the lease that the answer says is its caller's; 0 when it says nothing of the kind. */
function heldMs(outcome: Outcome): number {
  if (outcome.type !== 'answer') return 0;
  const { answer } = outcome;
  if (answer.type === 'acquire') return answer.outcome.type === 'granted' ? answer.outcome.lease.ttlMs : 0;
  const result = answer.type === 'renew' ? answer.results[0] : undefined;
  return result?.type === 'live' ? result.ttlMs : 0;
}

function outcomeOf({ reply, answeredBy }: Attempt): Outcome {
  if (reply?.type === 'answer' && answeredBy !== undefined) {
    return { type: 'answer', answer: reply.answer, revision: answeredBy.revision };
  }
  if (reply?.type === 'failure' && reply.failure.outcome === 'not-done') return { type: 'not-done' };
  if (reply?.type === 'silent' && !reply.reached) return { type: 'not-done' };
  return { type: 'unknown' };
}
