/**
 * What the state knows of request ids: those that hold a lease or wait, for as long as they do, and those that are over
 * and still remembered (design 7, F6). A request is remembered from the entry that ends it until at least
 * `limits.finishedRequests` younger ones exist; `forgotten` says how far back the memory reaches, and that is what makes
 * once-only hold however late a copy arrives: an id takes effect above the revision its client had seen when it made the
 * id, hence ends above it too; so if `seen >= forgotten`, its record is still here.
 *
 * Eviction follows `finishedAt`, a field of the record, so a member that loaded its table in key order evicts the same
 * ids as its peers (S4). Requests that ended at one revision leave together: `forgotten` could not tell them apart.
 */
import { AssertionFailed } from '../base/assert.js';
import { BigMap } from '../base/big-map.js';
import type { Domain, RequestId } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import { addByLease, findByLease, removeByLease } from './by-lease.js';
import type { ByLease } from './by-lease.js';
import { at, createFifo, push, shift } from './fifo.js';
import type { Fifo } from './fifo.js';
import type { FinishedRequest, Waiter } from './types.js';

/** Changed only by the functions of this file. */
export interface RequestTable {
  /** By id: the domain that the request holds, itself as a waiter, or how it ended. One map, because every Acquire asks. */
  readonly known: BigMap<RequestId, Domain | Waiter | FinishedRequest>;
  /** The finished requests, ascending by `finishedAt`. */
  readonly order: Fifo<FinishedRequest>;
  /** The finished requests that had a lease. */
  readonly byLease: ByLease;
  /** The greatest `finishedAt` evicted. */
  forgotten: Revision;
}

/** A table that knows nothing and has forgotten everything up to `forgotten`. */
export function createRequests(forgotten: Revision): RequestTable {
  return { known: new BigMap(), order: createFifo(), byLease: new Map(), forgotten };
}

/** True for what is over. */
export function isFinished(known: Domain | Waiter | FinishedRequest | undefined): known is FinishedRequest {
  return typeof known === 'object' && 'finishedAt' in known;
}

/** The request that held (domain, token), if that is over and not forgotten. */
export function ended(table: RequestTable, domain: Domain, token: Revision): FinishedRequest | undefined {
  return findByLease(table.byLease, domain, token);
}

/** Notes that `requestId`, which must be unknown or wait, holds `domain`. */
export function hold(table: RequestTable, requestId: RequestId, domain: Domain): void {
  const known = table.known.get(requestId);
  if (typeof known === 'string' || isFinished(known)) {
    throw new AssertionFailed(`request ${requestId} is granted a second time, in ${domain}`);
  }
  table.known.set(requestId, domain);
}

/** Notes that `waiter`, whose id must be unknown, waits. */
export function wait(table: RequestTable, waiter: Waiter): void {
  if (table.known.has(waiter.requestId)) {
    throw new AssertionFailed(`request ${waiter.requestId} is known and queued again, for ${waiter.domain}`);
  }
  table.known.set(waiter.requestId, waiter);
}

/** Remembers the end of `request`, which must be its only one and not lie before any in the table. */
export function remember(table: RequestTable, request: FinishedRequest): void {
  const { requestId, finishedAt, token } = request;
  const newest = at(table.order, table.order.length - 1);
  if (newest !== undefined && newest.finishedAt > finishedAt) {
    throw new AssertionFailed(
      `request ${requestId} finished at ${finishedAt}, before the newest at ${newest.finishedAt}`,
    );
  }
  if (isFinished(table.known.get(requestId))) {
    throw new AssertionFailed(`request ${requestId} finishes a second time at ${finishedAt}`);
  }
  if (token !== undefined) addByLease(table.byLease, token, request);
  table.known.set(requestId, request);
  push(table.order, request);
}

/**
 * Forgets the oldest requests, all of one revision together, while at least `keep` (1 or more) remain. `evicted` gets
 * each of them. Amortised constant time.
 */
export function evict(table: RequestTable, keep: number, evicted: (request: FinishedRequest) => void): void {
  for (;;) {
    const oldest = at(table.order, 0);
    // The requests of the oldest revision are at most `excess` exactly if the one behind that many is younger.
    const behind = at(table.order, table.order.length - keep);
    if (oldest === undefined || behind === undefined || behind.finishedAt === oldest.finishedAt) return;
    for (
      let next: FinishedRequest | undefined = oldest;
      next?.finishedAt === oldest.finishedAt;
      next = at(table.order, 0)
    ) {
      shift(table.order);
      table.known.delete(next.requestId);
      if (next.token !== undefined) removeByLease(table.byLease, next.domain, next.token);
      evicted(next);
    }
    table.forgotten = oldest.finishedAt;
  }
}
