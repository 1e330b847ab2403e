/** The commands that end leases and waits: Release, Withdraw, ForceRelease, Expire, EndWait. Each hands over in the same entry. */
import { nameOf } from '../base/domain.js';
import type { Domain } from '../base/ids.js';
import { ZERO_REVISION } from '../base/revision.js';
import { close, end, finishUngranted, leaveQueue } from './change.js';
import type { CommandOf } from './commands.js';
import { handOver, handOverAll } from './hand-over.js';
import { askedFor, currentToken, describeEnd, findRequest, finishedLease, liveLease } from './lookup.js';
import { isForeign } from './reuse.js';
import type { State } from './state.js';
import type { Doing, FinishedRequest, Lease, Result, Waiter } from './types.js';

/**
 * Ends the lease (domain, token) if it lives. A late or repeated Release harms nobody: it names the lease that it ends,
 * and an earlier copy's success is answered as success. What is bound to an owner answers nobody else.
 */
export function release(state: State, command: CommandOf<'release'>, doing: Doing): Result {
  const lease = liveLease(state, command);
  if (lease !== undefined) {
    if (isForeign(lease, command)) return { type: 'reused', difference: 'owner' };
    endLease(state, lease, 'released', doing);
    handOver(state, nameOf(lease.domain), new Set(command.detached), command.atUnixMs, doing);
    return { type: 'released', released: true, ended: undefined };
  }
  const finished = finishedLease(state, command);
  if (finished !== undefined && isForeign(finished, command)) return { type: 'reused', difference: 'owner' };
  if (finished?.reason === 'released') return { type: 'released', released: true, ended: undefined };
  return { type: 'released', released: false, ended: describeEnd(state, command) };
}

/**
 * Ends what the request was granted, takes it out of its queue, or remembers an unknown id as over, so that an Acquire with
 * it that comes later does nothing. Afterwards the request holds nothing and waits for nothing, whatever had become of it.
 */
export function withdraw(state: State, command: CommandOf<'withdraw'>, doing: Doing): Result {
  const { requestId, domain } = command;
  const found = findRequest(state, requestId);
  if (found === undefined) {
    finishUngranted(state, command, undefined, 'withdrawn');
    return { type: 'withdrawn' };
  }
  const known = found.type === 'live' ? found.lease : found.type === 'waiting' ? found.waiter : found.request;
  if (isForeign(known, command)) return { type: 'reused', difference: 'owner' };
  if (nameOf(known.domain) !== domain) return { type: 'reused', difference: 'domain' };
  if (found.type === 'waiting') endWaiter(state, found.waiter, 'withdrawn', doing);
  if (found.type === 'live') {
    endLease(state, found.lease, 'withdrawn', doing);
    handOver(state, domain, new Set(command.detached), command.atUnixMs, doing);
  }
  return { type: 'withdrawn' };
}

/** Ends the lease (domain, token) whoever holds it. It names the token, so a repetition cannot hit the next holder (S12). */
export function forceRelease(state: State, command: CommandOf<'forceRelease'>, doing: Doing): Result {
  const lease = liveLease(state, command);
  if (lease !== undefined) {
    endLease(state, lease, 'force_released', doing, command.by, command.note);
    handOver(state, nameOf(lease.domain), new Set(command.detached), command.atUnixMs, doing);
  }
  const now = lease === undefined ? currentToken(state, command.domain) : ZERO_REVISION;
  return { type: 'forceReleased', released: lease !== undefined, currentToken: now };
}

/**
 * Ends each listed lease that is still what the proposer saw. A lease whose version rose was checkpointed or voided in
 * between, so the leader decides anew; an entry of another term than its proposer's is the work of a leader that was
 * deposed meanwhile and does nothing at all (F5, raft 5.2). A lease that asked for a cool-down leaves its domain closed.
 */
export function expire(state: State, command: CommandOf<'expire'>, term: number, doing: Doing): void {
  if (command.term !== term) return;
  const freed: Domain[] = [];
  for (const key of command.leases) {
    const lease = liveLease(state, key);
    if (lease?.version !== key.version) continue;
    endLease(state, lease, 'expired', doing);
    if (lease.coolDownMs > 0) {
      const coolDown = { domain: lease.domain, since: state.revision, ms: lease.coolDownMs };
      close(state, coolDown);
      doing.closed.push(coolDown);
    } else freed.push(lease.domain);
  }
  handOverAll(state, freed, command.leases, command.atUnixMs, doing);
}

/**
 * Ends the wait of each listed request. One that an entry in between granted loses that grant again: the proposer answered
 * nothing for it since it proposed this, so nobody can have been told (F7); hence the term, as in {@link expire}.
 */
export function endWait(state: State, command: CommandOf<'endWait'>, term: number, doing: Doing): void {
  if (command.term !== term) return;
  const freed: Domain[] = [];
  for (const { requestId } of command.waits) {
    const found = findRequest(state, requestId);
    if (found?.type === 'waiting') endWaiter(state, found.waiter, 'left_queue', doing);
    if (found?.type !== 'live') continue;
    endLease(state, found.lease, 'left_queue', doing);
    freed.push(found.lease.domain);
  }
  // All have ended first: nothing is handed to a request whose wait this very entry ends.
  handOverAll(state, freed, command.waits, command.atUnixMs, doing);
}

function endWaiter(state: State, waiter: Waiter, reason: 'withdrawn' | 'left_queue', doing: Doing): void {
  leaveQueue(state, waiter);
  const { ttlMs, holder, coolDownMs, slots } = waiter;
  finishUngranted(state, waiter, { ttlMs, holder, coolDownMs, slots }, reason);
  doing.left.push(waiter);
}

function endLease(
  state: State,
  lease: Lease,
  reason: FinishedRequest['reason'],
  doing: Doing,
  by?: string,
  note?: string,
): void {
  end(state, lease, askedFor(state, lease), reason, by, note);
  doing.ended.push({ lease, reason });
}
