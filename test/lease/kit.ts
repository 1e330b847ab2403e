/** Short ways to drive a state machine in tests: revisions are counted, fields have defaults. */
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { History, Revision } from '../../src/base/revision.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import { apply } from '../../src/lease/apply.js';
import { createState, summaryOf } from '../../src/lease/load.js';
import type { State } from '../../src/lease/state.js';
import { takeChanges } from '../../src/lease/records.js';
import type { Command } from '../../src/lease/commands.js';
import type {
  Applied,
  FinishedRequest,
  Lease,
  Result,
  RecordKey,
  StateChanges,
  StateRecord,
  StateSummary,
} from '../../src/lease/types.js';

export const BASE = 1_796_000_000_000_000 as Revision;
export const HISTORY: History = { base: BASE, start: 0 };

/** The revision `offset` entries after the beginning of the history. */
export function rev(offset: number): Revision {
  return (BASE + offset) as Revision;
}

export function domain(name: string): Domain {
  return name as Domain;
}

/** The request id with this number. */
export function id(number: number): RequestId {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}` as RequestId;
}

export function summary(more: { keep?: number; holding?: boolean; forgotten?: Revision } = {}): StateSummary {
  const { keep = 1_000, holding = false, forgotten = ZERO_REVISION } = more;
  return { forgotten, holding, limits: { finishedRequests: keep } };
}

/** An empty state at the beginning of a history. */
export function emptyState(more: { keep?: number; holding?: boolean; forgotten?: Revision } = {}): State {
  return createState(summary(more), HISTORY, BASE, []);
}

/** Applies `command` as the next entry. */
export function next(state: State, command: Command | undefined, term = 1): Applied {
  return apply(state, { revision: (state.revision + 1) as Revision, term }, command);
}

/** The result of `command` as the next entry. */
export function resultOf(state: State, command: Command | undefined, term = 1): Result {
  return next(state, command, term).result;
}

export type AcquireCommand = Extract<Command, { readonly type: 'acquire' }>;

/** An Acquire of `name` with the id numbered `request`, by a client that has just asked for the revision. */
export function acquire(
  state: State,
  name: string,
  request: number,
  more: Partial<AcquireCommand> = {},
): AcquireCommand {
  return {
    type: 'acquire',
    domain: domain(name),
    requestId: id(request),
    holder: 'worker',
    ttlMs: 15_000,
    metadata: [],
    seenRevision: state.revision,
    atUnixMs: 1_796_000_000_123,
    owner: '',
    ...more,
  };
}

/** Grants `name` to a request and returns the lease; throws when it is not granted. */
export function granted(state: State, name: string, request: number, more: Partial<AcquireCommand> = {}): Lease {
  const result = resultOf(state, acquire(state, name, request, more));
  if (result.type !== 'granted') throw new Error(`${name} was not granted: ${JSON.stringify(result)}`);
  return result.lease;
}

export function release(lease: { domain: Domain; token: Revision }, owner = ''): Command {
  return { type: 'release', domain: lease.domain, token: lease.token, owner };
}

export function withdraw(name: string, request: number, owner = ''): Command {
  return { type: 'withdraw', domain: domain(name), requestId: id(request), owner };
}

export function expire(leases: readonly Lease[], term = 1): Command {
  return { type: 'expire', term, leases: leases.map(({ domain, token, version }) => ({ domain, token, version })) };
}

/** Grants and releases `count` requests of other domains, numbered from `first`, to push older ones out of the table. */
export function others(state: State, count: number, first: number): void {
  for (let i = 0; i < count; i++) next(state, release(granted(state, `other/${i}`, first + i)));
}

/** The state as two sorted lists, for comparison with a model. */
export function contents(records: Iterable<StateRecord>): { leases: Lease[]; finished: FinishedRequest[] } {
  const leases: Lease[] = [];
  const finished: FinishedRequest[] = [];
  for (const record of records) {
    if (record.type === 'domain') leases.push(record.lease);
    else finished.push(...record.requests);
  }
  leases.sort((left, right) => left.token - right.token);
  finished.sort((left, right) => left.finishedAt - right.finishedAt || (left.requestId < right.requestId ? -1 : 1));
  return { leases, finished };
}

/** What a state store keeps: the records by key, and the meta of the last cut. */
export interface Table {
  readonly records: Map<string, StateRecord>;
  summary: StateSummary;
  revision: Revision;
}

export function createTable(state: State): Table {
  return { records: new Map(), summary: summaryOf(state), revision: state.revision };
}

/** Takes a cut of `state` into `table`, as the store does. Removing what is not there is a fault of the state. */
export function cut(table: Table, state: State): StateChanges {
  const changes = takeChanges(state);
  for (const key of changes.remove) {
    if (!table.records.delete(keyText(key))) throw new Error(`the cut removes ${keyText(key)}, which is not there`);
  }
  for (const record of changes.put) table.records.set(keyText(record), record);
  table.summary = changes.summary;
  table.revision = state.revision;
  return changes;
}

/** The state that a restart finds; its records come in the order of their keys. */
export function load(table: Table): State {
  const sorted = [...table.records].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, record]) => record);
  return createState(table.summary, HISTORY, table.revision, sorted);
}

export function keyText(key: RecordKey): string {
  return key.type === 'domain' ? `domain ${key.domain}` : `finished ${key.lastRevision}`;
}
