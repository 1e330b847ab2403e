/**
 * The replicated state: which leases live, which requests are over. It lives in memory; `records.ts` says what of it
 * goes to disk, `change.ts` holds the only functions that change it.
 */
import type { Domain } from '../base/ids.js';
import type { History, Revision } from '../base/revision.js';
import { createFifo, push } from './fifo.js';
import type { Fifo } from './fifo.js';
import { createRequests, hold, remember } from './requests.js';
import type { RequestTable } from './requests.js';
import { recordBytes } from './size.js';
import type { FinishedRequest, Lease, StateLimits, StateRecord, StateSummary } from './types.js';

/** The state at one revision. Others read `revision` and use the functions of this folder for the rest. */
export interface State {
  /** The revision of the last entry applied. */
  revision: Revision;
  readonly history: History;
  readonly limits: StateLimits;
  /** Grants are held back until EndHold (F14). */
  holding: boolean;
  readonly leases: Map<Domain, Lease>;
  readonly requests: RequestTable;
  readonly changes: ChangeLog;
}

/** What has changed since the last cut was taken. */
export interface ChangeLog {
  /** The revision of the last cut: requests that finished above it are in no record yet. */
  takenAt: Revision;
  /** The domains that changed. */
  readonly dirty: Map<Domain, DirtyDomain>;
  /** The key of every `finished` record that the table holds, ascending. */
  readonly batches: Fifo<Revision>;
  /** Those of them that hold nothing but forgotten requests. */
  outdated: Revision[];
  /** Estimate of the next cut's size in bytes. */
  bytes: number;
}

/** A domain that changed since the last cut. */
export interface DirtyDomain {
  /** Whether the last cut has a record of it, which a cut without its lease must remove. */
  readonly stored: boolean;
  /** What it adds to {@link ChangeLog.bytes}. */
  bytes: number;
}

/** The records of a state contradict each other or the summary: the table is damaged, or mixed from two states. */
export class CorruptState extends Error {
  override readonly name = 'CorruptState';
  constructor(fault: string) {
    super(`the state table is corrupt: ${fault}; do not start this member on it, replace the member's data directory`);
  }
}

/**
 * The state that `summary` and `records` describe, as it was when the entry at `appliedRevision` had been applied. The
 * order of the records does not matter. Finished requests at or below `summary.forgotten` are discarded, so every member
 * knows exactly the same ids however its records are cut.
 *
 * Throws {@link CorruptState} when the records cannot be those of one state.
 */
export function createState(
  summary: StateSummary,
  history: History,
  appliedRevision: Revision,
  records: Iterable<StateRecord>,
): State {
  const { limits, forgotten, holding } = summary;
  demand(
    Number.isSafeInteger(limits.finishedRequests) && limits.finishedRequests >= 1,
    () => `it is to keep ${limits.finishedRequests} finished requests; at least 1 is needed`,
  );
  demand(
    appliedRevision >= history.base,
    () => `its revision ${appliedRevision} lies before the history's base ${history.base}`,
  );
  demand(
    forgotten <= appliedRevision,
    () => `it has forgotten up to ${forgotten}, beyond its own revision ${appliedRevision}`,
  );
  const state: State = {
    revision: appliedRevision,
    history,
    limits,
    holding,
    leases: new Map(),
    requests: createRequests(forgotten),
    changes: { takenAt: appliedRevision, dirty: new Map(), batches: createFifo(), outdated: [], bytes: 0 },
  };
  const finished: FinishedRequest[] = [];
  const batches: Revision[] = [];
  for (const record of records) {
    if (record.type === 'domain') {
      loadLease(state, record.domain, record.lease);
    } else {
      loadBatch(state, record.lastRevision, record.requests, finished);
      batches.push(record.lastRevision);
    }
  }
  loadBatches(state, batches);
  loadFinished(state, finished);
  return state;
}

/** The part of the state that goes into a cut's meta record. */
export function summaryOf(state: State): StateSummary {
  return { forgotten: state.requests.forgotten, holding: state.holding, limits: state.limits };
}

function loadLease(state: State, domain: Domain, lease: Lease): void {
  const { token, requestId } = lease;
  demand(lease.domain === domain, () => `the record of domain ${domain} holds a lease of ${lease.domain}`);
  demand(!state.leases.has(domain), () => `there are two records of domain ${domain}`);
  demand(
    token > state.history.base,
    () => `domain ${domain} is held by token ${token}, not above the history's base ${state.history.base}`,
  );
  demand(
    token <= state.revision,
    () => `domain ${domain} is held by token ${token}, beyond the revision ${state.revision}`,
  );
  demand(!state.requests.known.has(requestId), () => `request ${requestId} holds two domains, ${domain} is one`);
  state.leases.set(domain, lease);
  hold(state.requests, requestId, domain);
}

/** Checks one `finished` record and gathers what of it is not forgotten. */
function loadBatch(
  state: State,
  lastRevision: Revision,
  requests: readonly FinishedRequest[],
  into: FinishedRequest[],
): void {
  let last = 0;
  for (const request of requests) {
    if (request.finishedAt > last) last = request.finishedAt;
    if (request.finishedAt > state.requests.forgotten) into.push(request);
  }
  demand(last === lastRevision, () => `the record of requests finished up to ${lastRevision} ends at ${last}`);
}

function loadBatches(state: State, keys: Revision[]): void {
  keys.sort((left, right) => left - right);
  for (const [position, key] of keys.entries()) {
    demand(key !== keys[position - 1], () => `there are two records of requests finished up to ${key}`);
    if (key > state.requests.forgotten) push(state.changes.batches, key);
    else {
      state.changes.outdated.push(key);
      state.changes.bytes += recordBytes.batchKey;
    }
  }
}

function loadFinished(state: State, requests: FinishedRequest[]): void {
  // Any order within one revision would do: such requests are evicted together, and nothing else looks at the order.
  requests.sort((left, right) => left.finishedAt - right.finishedAt);
  const liveTokens = new Set<Revision>();
  for (const { token, domain } of state.leases.values()) {
    demand(!liveTokens.has(token), () => `token ${token} holds two domains, ${domain} is one`);
    liveTokens.add(token);
  }
  for (const request of requests) {
    const { requestId, finishedAt, token } = request;
    demand(
      finishedAt <= state.revision,
      () => `request ${requestId} finished at ${finishedAt}, beyond the revision ${state.revision}`,
    );
    const known = state.requests.known.get(requestId);
    demand(typeof known !== 'string', () => `request ${requestId} holds a lease and is finished`);
    demand(known === undefined, () => `request ${requestId} is finished twice`);
    if (token !== undefined) {
      demand(token < finishedAt, () => `request ${requestId} finished at ${finishedAt}, not after its token ${token}`);
      demand(!liveTokens.has(token), () => `token ${token} is live and finished, by request ${requestId}`);
      demand(!state.requests.byToken.has(token), () => `token ${token} is finished twice, by request ${requestId} too`);
    }
    remember(state.requests, request);
  }
}

function demand(condition: boolean, fault: () => string): void {
  if (!condition) throw new CorruptState(fault());
}
