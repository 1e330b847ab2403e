/**
 * The state as records for the state table (design 6). A domain that is held is one record, and so are a waiter, a
 * cool-down and a counting name; the requests that finished
 * between two cuts are one record together, removed when all in it are forgotten. Every object in a record is immutable,
 * so a cut shares them with the state and still is the state at exactly one revision, however long it waits for the disk (S4).
 */
import type { Revision } from '../base/revision.js';
import { at, from, push } from './fifo.js';
import type { Fifo } from './fifo.js';
import { summaryOf } from './state.js';
import type { State } from './state.js';
import type { FinishedRequest, RecordKey, StateChanges, StateRecord } from './types.js';

/** Requests in one record of {@link allRecords}, unless more finished at one revision. */
const REQUESTS_PER_RECORD = 1_000;

/**
 * What changed since the last call, or since the state was created, at the revision applied now; and forgets it: the
 * caller owns the changes and must bring them to the table, in the order taken.
 */
export function takeChanges(state: State): StateChanges {
  const { changes, requests } = state;
  const put: StateRecord[] = [];
  const remove: RecordKey[] = [];
  const { dirty } = changes;
  for (const [domain, { stored }] of dirty.domain) {
    const lease = state.leases.get(domain);
    if (lease !== undefined) put.push({ type: 'domain', domain, lease });
    else if (stored) remove.push({ type: 'domain', domain });
  }
  for (const [domain, { stored }] of dirty.coolDown) {
    const coolDown = state.coolDowns.get(domain);
    if (coolDown !== undefined) put.push({ type: 'coolDown', domain, coolDown });
    else if (stored) remove.push({ type: 'coolDown', domain });
  }
  for (const [domain] of dirty.counting) {
    const counting = state.slots.get(domain)?.counting;
    if (counting !== undefined) put.push({ type: 'counting', domain, counting });
  }
  for (const [waiter, { stored }] of dirty.waiter) {
    const { queuedAt } = waiter;
    if (state.requests.known.get(waiter.requestId) === waiter) put.push({ type: 'waiter', queuedAt, waiter });
    else if (stored) remove.push({ type: 'waiter', queuedAt });
  }
  const batch = finishedAbove(requests.order, changes.takenAt);
  const last = batch.at(-1);
  if (last !== undefined) {
    put.push({ type: 'finished', lastRevision: last.finishedAt, requests: batch });
    push(changes.batches, last.finishedAt);
  }
  for (const lastRevision of changes.outdated) remove.push({ type: 'finished', lastRevision });
  for (const map of Object.values(dirty)) map.clear();
  changes.outdated = [];
  changes.bytes = 0;
  changes.takenAt = state.revision;
  return { summary: summaryOf(state), put, remove };
}

/** About how many bytes {@link takeChanges} would write now; 0 when nothing changed. */
export function changedBytes(state: State): number {
  return state.changes.bytes;
}

/** The whole state as records, grouped otherwise than the table's: for a copy of a state that has no table. */
export function* allRecords(state: State): Iterable<StateRecord> {
  for (const [domain, counting] of state.slots) yield { type: 'counting', domain, counting: counting.counting };
  for (const [domain, lease] of state.leases) yield { type: 'domain', domain, lease };
  for (const [domain, coolDown] of state.coolDowns) yield { type: 'coolDown', domain, coolDown };
  for (const queue of state.queues.values()) {
    for (const waiter of queue) yield { type: 'waiter', queuedAt: waiter.queuedAt, waiter };
  }
  let requests: FinishedRequest[] = [];
  for (const request of from(state.requests.order, 0)) {
    const last = requests.at(-1);
    // The key is a revision, so the requests of one revision stay in one record.
    if (last !== undefined && requests.length >= REQUESTS_PER_RECORD && last.finishedAt !== request.finishedAt) {
      yield { type: 'finished', lastRevision: last.finishedAt, requests };
      requests = [];
    }
    requests.push(request);
  }
  const last = requests.at(-1);
  if (last !== undefined) yield { type: 'finished', lastRevision: last.finishedAt, requests };
}

function finishedAbove(order: Fifo<FinishedRequest>, revision: Revision): FinishedRequest[] {
  let position = order.length;
  while (position > 0 && (at(order, position - 1)?.finishedAt ?? 0) > revision) position -= 1;
  return from(order, position);
}
