/**
 * Renewals and every answer that says "you hold it" (design 7, Time; research 5.4; F5, L2). Such an answer leaves only
 *  - after a confirmation round that was sent after the call arrived (or an entry appended after it, see serving.ts),
 *  - for a flagged lease after a Void appended after the call arrived is applied in this leader's term,
 *  - while an Expire of the lease is open, not before its outcome.
 */
import { assert } from '../base/assert.js';
import type { LeaseRef } from '../base/api.js';
import { leaseOf, liveLease } from '../lease/lookup.js';
import type { Lease } from '../lease/types.js';
import { step } from '../raft/raft.js';
import { renewTimed, timedOf } from './clock.js';
import { batches } from './batches.js';
import { proposeInternal } from './proposing.js';
import type { Timed } from './clock.js';
import type { Context, Leadership } from './state.js';

/**
 * True while a Checkpoint of the lease was decided by this leader and is not applied, and while one is applied and not
 * voided, whoever wrote it. Not only from the moment of apply: a renewal between the two would be shortened by the
 * next leader (F5, schedule A).
 */
export function isFlagged(context: Context, timed: Timed): boolean {
  if (timed.checkpointIndex > context.applied) return true;
  const lease = leaseOf(context.lease, timed.domain);
  return lease?.token === timed.token && lease.checkpointLeftMs !== undefined;
}

/** Runs `resume` when a round sent after now is confirmed. Dropped when this node stops leading. */
export function afterRound(context: Context, leadership: Leadership, resume: () => void): void {
  const [effect] = step(context.raft, { type: 'confirm' });
  assert(effect?.type === 'pendingRound', `a ready leader's confirm was answered by ${effect?.type ?? 'nothing'}`);
  leadership.rounds.push({ round: effect.round, resume });
}

/** A round is confirmed: all that wait for it or an earlier one go on. */
export function roundConfirmed(leadership: Leadership, round: number): void {
  let ready = 0;
  while ((leadership.rounds[ready]?.round ?? Infinity) <= round) ready++;
  for (const waiter of leadership.rounds.splice(0, ready)) waiter.resume();
}

/**
 * Renews what is live among `refs`, as of the call's arrival, and runs `resume` once the answer may leave. Which of
 * them are live is read by `resume`, from the state then.
 */
export function renewNow(
  context: Context,
  leadership: Leadership,
  refs: readonly LeaseRef[],
  arrivedAt: number,
  resume: () => void,
): void {
  let open = 1;
  const settled = (): void => {
    open--;
    if (open === 0) unlessExpiring(leadership, refs, resume);
  };
  for (const ref of refs) {
    const lease = liveLease(context.lease, ref);
    if (lease === undefined) continue;
    open++;
    renewOne(context, leadership, timedOf(leadership.clock, lease), arrivedAt, settled);
  }
  afterRound(context, leadership, settled);
}

/** The last look before an answer: while an Expire of one of the leases is open, its outcome comes first (L2). */
function unlessExpiring(leadership: Leadership, refs: readonly LeaseRef[], resume: () => void): void {
  for (const { domain, token } of refs) {
    const timed = leadership.clock.timed.get(domain);
    if (timed?.token !== token || timed.expiring === undefined) continue;
    timed.expiring.push(() => {
      unlessExpiring(leadership, refs, resume);
    });
    return;
  }
  resume();
}

/** As {@link renewNow} for one lease whose answer is confirmed already by its own entry. */
export function whenAnswerable(
  context: Context,
  leadership: Leadership,
  lease: Lease,
  arrivedAt: number,
  resume: () => void,
): void {
  const live = liveLease(context.lease, lease);
  if (live === undefined) resume();
  else {
    const timed = timedOf(leadership.clock, live);
    renewOne(context, leadership, timed, arrivedAt, () => {
      unlessExpiring(leadership, [lease], resume);
    });
  }
}

function renewOne(
  context: Context,
  leadership: Leadership,
  timed: Timed,
  arrivedAt: number,
  settled: () => void,
): void {
  if (timed.expiring !== undefined) {
    timed.expiring.push(() => {
      // Decided: ended, or alive and timed again. A renewal that waited counts from its own arrival.
      if (timed.live) renewOne(context, leadership, timed, arrivedAt, settled);
      else settled();
    });
    return;
  }
  renewTimed(timed, arrivedAt);
  if (!isFlagged(context, timed)) {
    settled();
    return;
  }
  if (timed.voidWanted === undefined) {
    timed.voidWanted = [];
    leadership.voidsWanted.push(timed);
  }
  timed.voidWanted.push(settled);
}

/** Appends the Voids that are wanted, many in an entry. Called at the end of each step; what is not taken stays wanted. */
export function proposeVoids(context: Context, leadership: Leadership): void {
  const wanted = leadership.voidsWanted.splice(0).filter((timed) => timed.live);
  for (const batch of batches(wanted, ({ domain }) => 40 + domain.length)) {
    const leases = batch.map(({ domain, token }) => ({ domain, token }));
    const waiting = batch.flatMap((timed) => timed.voidWanted ?? []);
    const resume = (): void => {
      for (const each of waiting) each();
    };
    const index = proposeInternal(context, leadership, { type: 'void', leases }, { resume });
    if (index === undefined) leadership.voidsWanted.push(...batch);
    else for (const timed of batch) timed.voidWanted = undefined;
  }
}
