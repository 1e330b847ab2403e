/** The history of the clients of one incarnation, for the checker of `test/support/history`. */
import type { Call } from '../../../src/base/api.js';
import type { Incarnation } from '../../../src/base/ids.js';
import { eachLease } from '../../support/history/operations.js';
import type { JudgedCall, Operation, Outcome } from '../../support/history/operations.js';
import type { Attempt } from '../clients/attempts.js';
import { safeHoldMs } from './holds.js';

/**
 * What was asked of one incarnation. A call that got no answer may have reached any of them, so it is in the history of
 * each: that it took effect is never demanded.
 */
export function historyOf(incarnation: Incarnation, attempts: readonly Attempt[]): Operation[] {
  const history: Operation[] = [];
  for (const attempt of attempts) {
    const { client, node, call, sentAt, rate, receivedAt, answeredBy } = attempt;
    if (!isJudged(call)) continue;
    if (answeredBy !== undefined && answeredBy.incarnation !== incarnation) continue;
    const outcome = outcomeOf(attempt);
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

/** A List is many domains, each as it was: the reference relation reads it. */
function isJudged(call: Call): call is JudgedCall {
  return !['list', 'transferLeadership', 'getStatus', 'getStateHash'].includes(call.type);
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
