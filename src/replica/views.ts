/** Records of the state machine as clients see them. */
import type { EndedView, LeaseRef, LeaseState, LeaseView, WaiterView } from '../base/api.js';
import { assert } from '../base/assert.js';
import type { RequestId } from '../base/ids.js';
import type { Lease, Waiter } from '../lease/types.js';
import { describeEnd, endedRequest, findRequest, leaseOf } from '../lease/lookup.js';
import type { State } from '../lease/state.js';

/** A lease without what only the cluster needs. The request id is a bearer secret and never leaves (S6.5). */
export function leaseView(lease: Lease): LeaseView {
  const { domain, token, holder, metadata, ttlMs, grantedAtUnixMs } = lease;
  return { domain, token, holder, metadata, ttlMs, grantedAtUnixMs };
}

/** A waiter as an operator sees it. */
export function waiterView({ holder, metadata, queuedAtUnixMs }: Waiter): WaiterView {
  return { holder, metadata, queuedAtUnixMs };
}

/** How a request that is over ended. */
export function endedView(state: State, requestId: RequestId): EndedView {
  const found = findRequest(state, requestId);
  assert(found?.type === 'finished', `request ${requestId} is not over`);
  return endedRequest(state, found.request);
}

/** Live with its TTL, or how it ended. */
export function leaseState(state: State, ref: LeaseRef): LeaseState {
  const lease = leaseOf(state, ref.domain);
  if (lease?.token === ref.token) return { type: 'live', ttlMs: lease.ttlMs };
  return { type: 'ended', ended: describeEnd(state, ref) };
}
