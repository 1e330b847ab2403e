/** Hand-over: whatever frees a domain grants it to the next waiter in the same entry, whose revision is the token. */
import { nameOf } from '../base/domain.js';
import type { Domain, RequestId } from '../base/ids.js';
import { grant, leaveQueue } from './change.js';
import type { Passing } from './commands.js';
import { firstBut } from './queue.js';
import { freePlace } from './slots.js';
import type { State } from './state.js';
import type { Doing, Lease, Waiter } from './types.js';

/**
 * Grants what is free of `name` to its waiters, first come first served, lowest slot first, but for the `passed`: they
 * keep their place, and nobody would hear of a grant to them (design 7, Hand-over). If all are passed over, the domain is
 * free with a queue: the next call of one of them is granted.
 */
export function handOver(
  state: State,
  name: Domain,
  passed: ReadonlySet<RequestId>,
  atUnixMs: number,
  doing: Doing,
): void {
  const queue = state.queues.get(name);
  if (queue === undefined || state.holding) return;
  for (;;) {
    const place = freePlace(state, name);
    const waiter = place === undefined ? undefined : firstBut(queue, passed);
    if (place === undefined || waiter === undefined) return;
    grantWaiter(state, place, waiter, atUnixMs, doing);
  }
}

/**
 * {@link handOver} of everything that one entry freed, after all of it is free: of several slots the lowest is granted first.
 * All lists of the entry count for each name, so a proposer may give a name's list with one of its places only.
 */
export function handOverAll(
  state: State,
  freed: readonly Domain[],
  lists: readonly Passing[],
  atUnixMs: number,
  doing: Doing,
): void {
  const passed = new Set(lists.flatMap(({ detached }) => detached));
  for (const name of new Set(freed.map(nameOf))) handOver(state, name, passed, atUnixMs, doing);
}

/** Grants the free `place` to `waiter`; returns the lease. */
export function grantWaiter(state: State, place: Domain, waiter: Waiter, atUnixMs: number, doing: Doing): Lease {
  leaveQueue(state, waiter);
  const lease = grantPlace(state, place, waiter, atUnixMs, doing);
  doing.left.push(waiter);
  return lease;
}

/** Grants the free `place` to whoever asked so, by the entry that is being applied; returns the lease. */
export function grantPlace(
  state: State,
  place: Domain,
  asked: Pick<Waiter, 'requestId' | 'holder' | 'metadata' | 'ttlMs' | 'coolDownMs' | 'owner' | 'principal'>,
  atUnixMs: number,
  doing: Doing,
): Lease {
  const { requestId, holder, metadata, ttlMs, coolDownMs, owner, principal } = asked;
  const lease: Lease = {
    domain: place,
    token: state.revision,
    requestId,
    holder,
    metadata,
    ttlMs,
    coolDownMs,
    grantedAtUnixMs: atUnixMs,
    owner,
    principal,
    version: 0,
    checkpointLeftMs: undefined,
  };
  grant(state, lease);
  doing.granted.push(lease);
  return lease;
}
