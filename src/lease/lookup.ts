/** Questions to the state. Nothing here changes it. */
import { AssertionFailed } from '../base/assert.js';
import type { EndedView, EndReason } from '../base/api.js';
import { nameOf } from '../base/domain.js';
import type { Domain, RequestId } from '../base/ids.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import type { LeaseKey } from './commands.js';
import { namesFrom } from './names.js';
import { placeOf } from './queue.js';
import type { Queue } from './queue.js';
import { ended, isFinished } from './requests.js';
import { slotDomain } from './slots.js';
import type { State } from './state.js';
import type { Asked, CoolDown, FinishedRequest, Lease, Waiter } from './types.js';

/** What the state knows of a request id. */
export type FoundRequest =
  | { readonly type: 'live'; readonly lease: Lease }
  | { readonly type: 'waiting'; readonly waiter: Waiter }
  | { readonly type: 'finished'; readonly request: FinishedRequest };

/** The live lease of `domain`; undefined when nobody holds it. */
export function leaseOf(state: State, domain: Domain): Lease | undefined {
  return state.leases.get(domain);
}

/** The lease (domain, token) if it lives. */
export function liveLease(state: State, { domain, token }: LeaseKey): Lease | undefined {
  const lease = state.leases.get(domain);
  return lease?.token === token ? lease : undefined;
}

/** All live leases, in no order that means anything. */
export function liveLeases(state: State): Iterable<Lease> {
  return state.leases.values();
}

/** How many leases live. */
export function liveCount(state: State): number {
  return state.leases.size;
}

/** The token of the live lease of `domain`, 0 if there is none. */
export function currentToken(state: State, domain: Domain): Revision {
  return state.leases.get(domain)?.token ?? ZERO_REVISION;
}

/** The request with this id; undefined when it never took effect, or that is forgotten. */
export function findRequest(state: State, id: RequestId): FoundRequest | undefined {
  const known = state.requests.known.get(id);
  if (known === undefined) return undefined;
  if (isFinished(known)) return { type: 'finished', request: known };
  if (typeof known === 'object') return { type: 'waiting', waiter: known };
  const lease = state.leases.get(known);
  if (lease?.requestId !== id) throw new AssertionFailed(`request ${id} should hold ${known} and does not`);
  return { type: 'live', lease };
}

/** The request that had been granted the lease (domain, token), if that is over and not forgotten. */
export function finishedLease(state: State, { domain, token }: LeaseKey): FinishedRequest | undefined {
  return ended(state.requests, domain, token);
}

/** What the live lease's acquire asked for. */
export function askedFor(state: State, { domain, ttlMs, holder, coolDownMs }: Lease): Asked {
  return { ttlMs, holder, coolDownMs, slots: slotsOf(state, nameOf(domain)) ?? 1 };
}

/** How many slots a counting name has; undefined for a name that does not count. */
export function slotsOf(state: State, name: Domain): number | undefined {
  return state.slots.get(name)?.counting.slots;
}

/** Who waits for a domain or a counting name, first come first. Not to be changed. */
export function queueOf(state: State, name: Domain): Readonly<Queue> {
  return state.queues.get(name) ?? [];
}

/** 1 is next. */
export function position(state: State, waiter: Waiter): number {
  return placeOf(state.queues.get(waiter.domain) ?? [], waiter) + 1;
}

/** The cool-down of a domain or a slot. */
export function coolDownOf(state: State, domain: Domain): CoolDown | undefined {
  return state.coolDowns.get(domain);
}

/** All cool-downs, in no order that means anything. */
export function coolDowns(state: State): Iterable<CoolDown> {
  return state.coolDowns.values();
}

/** All queues by name, in no order that means anything. */
export function queues(state: State): Iterable<readonly [Domain, Readonly<Queue>]> {
  return state.queues;
}

/** At most `limit` names with `prefix` behind `after`, in byte order: what is held, closed or waited for. */
export function listNames(state: State, prefix: string, after: string, limit: number): readonly Domain[] {
  return namesFrom(state.names, prefix, after, limit);
}

/** A lease in the way of whoever wants `name`: the one there is, or that of the lowest slot that is held. */
export function leaseInTheWay(state: State, name: Domain): Lease | undefined {
  const slots = slotsOf(state, name);
  if (slots === undefined) return state.leases.get(name);
  for (let number = 0; number < slots; number++) {
    const lease = state.leases.get(slotDomain(name, number));
    if (lease !== undefined) return lease;
  }
  return undefined;
}

/**
 * How the lease `ref`, which must not be live, ended. Of a lease that is not remembered it can be said that it is
 * - `earlier_history`, if its token is not above this history's base,
 * - `never_granted`, if its token is above `forgotten`: it would have ended above its token, so it would be remembered,
 * - `unspecified` otherwise.
 */
export function describeEnd(state: State, ref: LeaseKey): EndedView {
  const { domain, token } = ref;
  if (liveLease(state, ref) !== undefined)
    throw new AssertionFailed(`lease ${token} of ${domain} is live and has no end`);
  const request = finishedLease(state, ref);
  if (request !== undefined) return endedRequest(state, request);
  return {
    lease: { domain, token },
    reason: forgottenReason(state, token),
    by: '',
    note: '',
    currentToken: currentToken(state, domain),
  };
}

/** How `request` ended, and who holds its domain now. */
export function endedRequest(state: State, request: FinishedRequest): EndedView {
  const { domain, token, reason, by, note } = request;
  return {
    lease: token === undefined ? undefined : { domain, token },
    reason,
    by,
    note,
    currentToken: currentToken(state, domain),
  };
}

function forgottenReason(state: State, token: Revision): EndReason {
  if (token <= state.history.base) return 'earlier_history';
  return token > state.requests.forgotten ? 'never_granted' : 'unspecified';
}
