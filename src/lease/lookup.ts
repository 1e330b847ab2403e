/** Questions to the state. Nothing here changes it. */
import { AssertionFailed } from '../base/assert.js';
import type { EndedView, EndReason } from '../base/api.js';
import type { Domain, RequestId } from '../base/ids.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import type { State } from './state.js';
import type { FinishedRequest, Lease, LeaseKey } from './types.js';

/** What the state knows of a request id. */
export type FoundRequest =
  { readonly type: 'live'; readonly lease: Lease } | { readonly type: 'finished'; readonly request: FinishedRequest };

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
  if (typeof known === 'object') return { type: 'finished', request: known };
  const lease = state.leases.get(known);
  if (lease?.requestId !== id) throw new AssertionFailed(`request ${id} should hold ${known} and does not`);
  return { type: 'live', lease };
}

/** The request that had been granted the lease (domain, token), if that is over and not forgotten. */
export function finishedLease(state: State, { domain, token }: LeaseKey): FinishedRequest | undefined {
  const request = state.requests.byToken.get(token);
  return request?.domain === domain ? request : undefined;
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
