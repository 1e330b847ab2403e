/**
 * The only functions that change a state, each keeping all of its indexes in step and noting what the next cut has to
 * write. They assert what must hold before; `apply.ts` asserts what must hold after.
 */
import { AssertionFailed } from '../base/assert.js';
import type { Domain, RequestId } from '../base/ids.js';
import { at, shift } from './fifo.js';
import { evict, hold, remember } from './requests.js';
import { recordBytes } from './size.js';
import type { State } from './state.js';
import type { FinishedRequest, Lease } from './types.js';

// The messages are built only when they are needed: these checks run for every entry.

/** Makes `lease` the live lease of its domain, at the revision that is being applied. */
export function grant(state: State, lease: Lease): void {
  const { domain, token, requestId } = lease;
  if (token !== state.revision) {
    throw new AssertionFailed(`a grant of ${domain} at revision ${state.revision} has token ${token}`);
  }
  const held = state.leases.get(domain);
  if (held !== undefined) {
    throw new AssertionFailed(`${domain} is granted at ${token} while token ${held.token} is live`);
  }
  // Two grants at one revision would be two leases with one token (L11).
  const before = state.requests.byToken.get(token);
  if (before !== undefined) {
    throw new AssertionFailed(`${domain} is granted at ${token}, which was the token of ${before.domain} already`);
  }
  hold(state.requests, requestId, domain);
  markDirty(state, domain, undefined, recordBytes.lease(lease));
  state.leases.set(domain, lease);
}

/** Replaces the live lease `lease` by itself with a new version and what is left of it for a leader that starts now. */
export function setCheckpoint(state: State, lease: Lease, checkpointLeftMs: number | undefined): void {
  const changed = { ...lease, version: lease.version + 1, checkpointLeftMs };
  markDirty(state, lease.domain, lease, recordBytes.lease(changed));
  state.leases.set(lease.domain, changed);
}

/** Ends the live lease `lease` and remembers its request. */
export function end(state: State, lease: Lease, reason: FinishedRequest['reason'], by = '', note = ''): void {
  const { domain, token, requestId } = lease;
  if (state.leases.get(domain) !== lease) {
    throw new AssertionFailed(`lease ${token} of ${domain} ends at ${state.revision}, but is not live`);
  }
  if (token >= state.revision) {
    throw new AssertionFailed(`lease ${token} of ${domain} ends at ${state.revision}, not after its grant`);
  }
  markDirty(state, domain, lease, recordBytes.domainKey(domain));
  state.leases.delete(domain);
  const { owner, ttlMs, holder } = lease;
  finish(state, {
    requestId,
    domain,
    finishedAt: state.revision,
    token,
    reason,
    by,
    note,
    owner,
    asked: { ttlMs, holder },
  });
}

/** Remembers that `requestId` was withdrawn before it came: an Acquire with it that arrives later is over (F6, schedule C). */
export function finishUnknown(state: State, requestId: RequestId, domain: Domain, owner: string): void {
  if (state.requests.known.has(requestId)) {
    throw new AssertionFailed(`request ${requestId} is known, not withdrawn early`);
  }
  finish(state, {
    requestId,
    domain,
    finishedAt: state.revision,
    token: undefined,
    reason: 'withdrawn',
    by: '',
    note: '',
    owner,
    asked: undefined,
  });
}

/** Allows grants from here. */
export function endHold(state: State): void {
  state.holding = false;
  state.changes.bytes += recordBytes.summary;
}

/** Forgets the oldest finished requests beyond the limit. Called once for an entry, after its command. */
export function forgetOldest(state: State): void {
  const { changes, requests, limits } = state;
  if (requests.order.length <= limits.finishedRequests) return;
  evict(requests, limits.finishedRequests, (request) => {
    if (request.finishedAt > changes.takenAt) changes.bytes -= recordBytes.finished(request);
  });
  for (let key = at(changes.batches, 0); key !== undefined && key <= requests.forgotten; key = at(changes.batches, 0)) {
    shift(changes.batches);
    changes.outdated.push(key);
    changes.bytes += recordBytes.batchKey;
  }
}

function finish(state: State, request: FinishedRequest): void {
  remember(state.requests, request);
  state.changes.bytes += recordBytes.finished(request);
}

/** Notes that `domain`, whose lease was `before` until now, changes and takes `bytes` in the next cut. */
function markDirty(state: State, domain: Domain, before: Lease | undefined, bytes: number): void {
  const { changes } = state;
  const known = changes.dirty.get(domain);
  if (known === undefined) {
    // Untouched since the last cut, so that cut holds what the state holds now.
    changes.dirty.set(domain, { stored: before !== undefined, bytes });
    changes.bytes += bytes;
  } else {
    changes.bytes += bytes - known.bytes;
    known.bytes = bytes;
  }
}
