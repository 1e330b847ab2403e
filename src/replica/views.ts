/** Records of the state machine as clients see them. */
import type { LeaseRef, LeaseState, LeaseView } from '../base/api.js';
import type { Lease } from '../lease/types.js';
import { describeEnd, leaseOf } from '../lease/lookup.js';
import type { State } from '../lease/state.js';

/** A lease without what only the cluster needs. The request id is a bearer secret and never leaves (S6.5). */
export function leaseView(lease: Lease): LeaseView {
  const { domain, token, holder, metadata, ttlMs, grantedAtUnixMs } = lease;
  return { domain, token, holder, metadata, ttlMs, grantedAtUnixMs };
}

/** Live with its TTL, or how it ended. */
export function leaseState(state: State, ref: LeaseRef): LeaseState {
  const lease = leaseOf(state, ref.domain);
  if (lease?.token === ref.token) return { type: 'live', ttlMs: lease.ttlMs };
  return { type: 'ended', ended: describeEnd(state, ref) };
}
