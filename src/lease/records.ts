/**
 * The state as records for the state table (design 6). A domain that is held is one record; the requests that finished
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
  for (const [domain, { stored }] of changes.dirty) {
    const lease = state.leases.get(domain);
    if (lease !== undefined) put.push({ type: 'domain', domain, lease });
    else if (stored) remove.push({ type: 'domain', domain });
  }
  const batch = finishedAbove(requests.order, changes.takenAt);
  const last = batch.at(-1);
  if (last !== undefined) {
    put.push({ type: 'finished', lastRevision: last.finishedAt, requests: batch });
    push(changes.batches, last.finishedAt);
  }
  for (const lastRevision of changes.outdated) remove.push({ type: 'finished', lastRevision });
  changes.dirty.clear();
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
  for (const [domain, lease] of state.leases) yield { type: 'domain', domain, lease };
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
