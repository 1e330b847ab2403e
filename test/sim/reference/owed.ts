/**
 * What a process owes at the end of a step (S5, L2; design 7 and 8). The other checks say what may be done; these say
 * what may not be left undone, so that a call that is forgotten, or a lease that never ends, shows at once and not when
 * somebody's patience is over.
 */
import type { LeaseRef } from '../../../src/base/api.js';
import type { Calls } from './calls.js';
import { leaseKey } from './leader-clock.js';
import type { LeaderClock } from './leader-clock.js';
import type { LeaseModel } from './lease-model.js';
import type { RaftModel } from './raft-state.js';

/** What the debts of a step are judged by. */
export interface Ledger {
  readonly model: RaftModel;
  readonly leases: LeaseModel;
  readonly calls: Calls;
  readonly clock: LeaderClock | undefined;
  readonly fail: (text: string) => void;
}

/** After each step. */
export function checkOwed(ledger: Ledger): void {
  const { model, clock } = ledger;
  if (model.leading === undefined) checkHandedBack(ledger);
  else checkMeantFor(ledger, model.leading.term);
  if (model.leading !== undefined && clock !== undefined && model.ready) {
    checkFatesTold(ledger, clock, model.leading);
  }
}

/**
 * A node that does not lead has no call of another node open: what it served as leader went back with its leadership.
 * The end of a hand-over is told by itself.
 */
function checkHandedBack({ calls, fail }: Ledger): void {
  for (const { from, id, over, twin, call } of calls.all()) {
    if (from === '' || over || twin || call.type === 'transferLeadership') continue;
    fail(`keeps call ${id} of ${from}, and does not lead`);
  }
}

/**
 * A leader keeps no copy of a call that was meant for another leadership: the node that took the call may have passed it
 * to the leader in between, and have its answer. The end of a hand-over is told by itself.
 */
function checkMeantFor({ calls, fail }: Ledger, term: number): void {
  for (const { from, id, over, twin, call, meantFor } of calls.all()) {
    if (meantFor === undefined || over || twin || meantFor === term || call.type === 'transferLeadership') continue;
    fail(`serves call ${id} of ${from}, which was meant for term ${meantFor}, in term ${term}`);
  }
}

/**
 * A renewal that waits for nothing any more, because all that it names is over, is answered: neither for an Expire, whose
 * outcome is known, nor for a Void that was appended for it and goes its way.
 */
function checkFatesTold(
  { leases, calls, fail }: Ledger,
  clock: LeaderClock,
  { confirmed, issued }: NonNullable<RaftModel['leading']>,
): void {
  for (const { call, id, over, twin, forwardedTo, since } of calls.all()) {
    if (call.type !== 'renew' || over || twin || forwardedTo !== undefined) continue;
    const waits = ({ domain, token }: LeaseRef): boolean =>
      leases.live.get(domain)?.token === token || clock.voids.has(leaseKey({ domain, token }));
    if (call.leases.some(waits)) continue;
    // Of several rounds of one step it is not known for which the call waits.
    const sent = clock.rounds[confirmed] ?? 0;
    if (sent > since.step || (confirmed === issued && sent === since.step)) {
      const names = call.leases.map(leaseKey).join(', ');
      fail(`does not answer renewal ${id} of ${names}, which are over, though round ${confirmed} is confirmed`);
    }
  }
}
