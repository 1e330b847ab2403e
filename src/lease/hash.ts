/**
 * A digest of the whole state, to compare members at one revision. It is a sum over the logical records (each live
 * lease, each remembered request) and the summary with the applied revision, so neither the order in which a member holds them
 * nor the rhythm in which it cuts them into records makes a difference: two members at one revision agree or have diverged.
 *
 * Computed from scratch, some microseconds a record, so a full table takes tenths of a second: for diagnosis and tests,
 * not for every entry.
 */
import { addDigest, digestString, digestText } from '../base/digest.js';
import type { Digest } from '../base/digest.js';
import { from } from './fifo.js';
import type { State } from './state.js';
import type { FinishedRequest, Lease } from './types.js';

/** 16 hex digits; equal for equal states. */
export function hashState(state: State): string {
  let sum = digestFields(summaryFields(state));
  for (const lease of state.leases.values()) sum = addDigest(sum, digestFields(leaseFields(lease)));
  for (const request of from(state.requests.order, 0)) sum = addDigest(sum, digestFields(requestFields(request)));
  return digestText(sum);
}

/** Fields in one fixed order, as JSON: unlike plain joining, no text inside a field can look like the end of it. */
function digestFields(fields: readonly unknown[]): Digest {
  return digestString(JSON.stringify(fields));
}

function summaryFields({ revision, requests, holding, limits }: State): readonly unknown[] {
  return ['summary', revision, requests.forgotten, holding, limits.finishedRequests];
}

function leaseFields(lease: Lease): readonly unknown[] {
  const { domain, token, requestId, holder, metadata, ttlMs, grantedAtUnixMs, owner, version } = lease;
  const left = lease.checkpointLeftMs ?? null;
  return ['lease', domain, token, requestId, holder, metadata, ttlMs, grantedAtUnixMs, owner, version, left];
}

function requestFields(request: FinishedRequest): readonly unknown[] {
  const { requestId, domain, finishedAt, token, reason, by, note, owner, asked } = request;
  const what = asked === undefined ? null : [asked.ttlMs, asked.holder];
  return ['finished', requestId, domain, finishedAt, token ?? null, reason, by, note, owner, what];
}
