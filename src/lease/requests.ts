/**
 * What the state knows of request ids: those that hold a lease, for as long as it lives, and those that are over and still
 * remembered (design 7, F6). A request is remembered from the entry that ends it until at least
 * `limits.finishedRequests` younger ones exist; `forgotten` says how far back the memory reaches, and that is what makes
 * once-only hold however late a copy arrives: an id takes effect above the revision its client had seen when it made the
 * id, hence ends above it too; so if `seen >= forgotten`, its record is still here.
 *
 * Eviction follows `finishedAt`, a field of the record, so a member that loaded its table in key order evicts the same
 * ids as its peers (S4). Requests that ended at one revision leave together: `forgotten` could not tell them apart.
 */
import { AssertionFailed } from '../base/assert.js';
import type { Domain, RequestId } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import { at, createFifo, push, shift } from './fifo.js';
import type { Fifo } from './fifo.js';
import type { FinishedRequest } from './types.js';

/** Changed only by the functions of this file. */
export interface RequestTable {
  /** By id: the domain that the request holds, or how it ended. One map, because every Acquire asks both. */
  readonly known: Map<RequestId, Domain | FinishedRequest>;
  /** The finished requests, ascending by `finishedAt`. */
  readonly order: Fifo<FinishedRequest>;
  /** The finished requests that had a lease, by its token alone: an entry grants at most one lease. */
  readonly byToken: Map<Revision, FinishedRequest>;
  /** The greatest `finishedAt` evicted. */
  forgotten: Revision;
}

/** A table that knows nothing and has forgotten everything up to `forgotten`. */
export function createRequests(forgotten: Revision): RequestTable {
  return { known: new Map(), order: createFifo(), byToken: new Map(), forgotten };
}

/** Notes that `requestId`, which must be unknown, holds `domain`. */
export function hold(table: RequestTable, requestId: RequestId, domain: Domain): void {
  if (table.known.has(requestId)) {
    throw new AssertionFailed(`request ${requestId} is granted a second time, in ${domain}`);
  }
  table.known.set(requestId, domain);
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
  if (typeof table.known.get(requestId) === 'object') {
    throw new AssertionFailed(`request ${requestId} finishes a second time at ${finishedAt}`);
  }
  if (token !== undefined) table.byToken.set(token, request);
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
      if (next.token !== undefined) table.byToken.delete(next.token);
      evicted(next);
    }
    table.forgotten = oldest.finishedAt;
  }
}
