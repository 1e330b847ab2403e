/**
 * A digest of the whole state, to compare members at one revision. It is a sum over the logical records (each live
 * lease, waiter, cool-down, counting name and remembered request) and the summary with the applied revision, so neither
 * the order in which a member holds them nor the rhythm in which it cuts them into records makes a difference: two members
 * at one revision agree or have diverged.
 *
 * Computed from scratch, some microseconds a record, so a full table takes tenths of a second: for diagnosis and tests,
 * not for every entry.
 */
import { addDigest, digestString, digestText } from '../base/digest.js';
import type { Digest } from '../base/digest.js';
import { from } from './fifo.js';
import type { State } from './state.js';
import type { FinishedRequest, Lease, Waiter } from './types.js';

/** 16 hex digits; equal for equal states. */
export function hashState(state: State): string {
  let sum = digestFields(summaryFields(state));
  for (const lease of state.leases.values()) sum = addDigest(sum, digestFields(leaseFields(lease)));
  for (const queue of state.queues.values()) {
    for (const waiter of queue) sum = addDigest(sum, digestFields(waiterFields(waiter)));
  }
  for (const { domain, since, ms } of state.coolDowns.values()) {
    sum = addDigest(sum, digestFields(['coolDown', domain, since, ms]));
  }
  for (const { counting } of state.slots.values()) {
    sum = addDigest(sum, digestFields(['counting', counting.name, counting.slots, counting.principal]));
  }
  for (const request of from(state.requests.order, 0)) sum = addDigest(sum, digestFields(requestFields(request)));
  return digestText(sum);
}

/** Fields in one fixed order, as JSON: unlike plain joining, no text inside a field can look like the end of it. */
function digestFields(fields: readonly unknown[]): Digest {
  return digestString(JSON.stringify(fields));
}

function summaryFields({ revision, requests, holding, limits }: State): readonly unknown[] {
  const { finishedRequests, queue, leasesPerPrincipal, waitersPerPrincipal, countingNames, prefixes } = limits;
  const quotas = prefixes.map(({ prefix, leases, waiters }) => [prefix, leases, waiters]);
  const numbers = [finishedRequests, queue, leasesPerPrincipal, waitersPerPrincipal, countingNames];
  return ['summary', revision, requests.forgotten, holding, numbers, quotas];
}

function leaseFields(lease: Lease): readonly unknown[] {
  const { domain, token, requestId, holder, metadata, ttlMs, coolDownMs, grantedAtUnixMs, owner, principal } = lease;
  const clock = [lease.version, lease.checkpointLeftMs ?? null];
  return [
    'lease',
    domain,
    token,
    requestId,
    holder,
    metadata,
    ttlMs,
    coolDownMs,
    grantedAtUnixMs,
    owner,
    principal,
    clock,
  ];
}

function waiterFields(waiter: Waiter): readonly unknown[] {
  const { domain, queuedAt, requestId, holder, metadata, ttlMs, coolDownMs, slots, waitMs, owner, principal } = waiter;
  const at = [queuedAt, waiter.queuedAtUnixMs];
  return ['waiter', domain, at, requestId, holder, metadata, ttlMs, coolDownMs, slots, waitMs, owner, principal];
}

function requestFields(request: FinishedRequest): readonly unknown[] {
  const { requestId, domain, finishedAt, token, reason, by, note, owner, asked } = request;
  const what = asked === undefined ? null : [asked.ttlMs, asked.holder, asked.coolDownMs, asked.slots];
  return ['finished', requestId, domain, finishedAt, token ?? null, reason, by, note, owner, what];
}
