/** Short ways to drive a state machine in tests: revisions are counted, fields have defaults. */
import type { Domain, RequestId } from '../../src/base/ids.js';
import { STATE_LIMITS } from '../../src/base/limits.js';
import type { History, Revision } from '../../src/base/revision.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import { apply } from '../../src/lease/apply.js';
import type { Command, CommandOf, LeaseKey } from '../../src/lease/commands.js';
import { createState } from '../../src/lease/load.js';
import { takeChanges } from '../../src/lease/records.js';
import { summaryOf } from '../../src/lease/state.js';
import type { State } from '../../src/lease/state.js';
import type {
  Applied,
  CoolDown,
  CountingName,
  FinishedRequest,
  Lease,
  RecordKey,
  Result,
  StateChanges,
  StateLimits,
  StateRecord,
  StateSummary,
  Waiter,
} from '../../src/lease/types.js';

export const BASE = 1_796_000_000_000_000 as Revision;
export const HISTORY: History = { base: BASE, start: 0 };
/** What {@link acquire} asks for. */
export const ASKED = { ttlMs: 15_000, holder: 'worker', coolDownMs: 0, slots: 1 } as const;
/** The leader's wall clock in commands that free something. */
export const FREED_AT = 1_796_000_000_456;
/** What an entry changed that changed nothing. */
export const NOTHING: Omit<Applied, 'result'> = {
  granted: [],
  ended: [],
  queued: undefined,
  left: [],
  closed: [],
  opened: [],
};

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

export interface SummaryOptions {
  readonly keep?: number;
  readonly holding?: boolean;
  readonly forgotten?: Revision;
  readonly limits?: Partial<StateLimits>;
}

export function summary({
  keep = 1_000,
  holding = false,
  forgotten = ZERO_REVISION,
  limits,
}: SummaryOptions = {}): StateSummary {
  return { forgotten, holding, limits: { ...STATE_LIMITS, finishedRequests: keep, ...limits } };
}

/** An empty state at the beginning of a history. */
export function emptyState(more: SummaryOptions = {}): State {
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

export type AcquireCommand = CommandOf<'acquire'>;

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
    ...ASKED,
    waitMs: 0,
    metadata: [],
    seenRevision: state.revision,
    atUnixMs: 1_796_000_000_123,
    owner: '',
    principal: 'client',
    ...more,
  };
}

/** Grants `name` to a request and returns the lease; throws when it is not granted. */
export function granted(state: State, name: string, request: number, more: Partial<AcquireCommand> = {}): Lease {
  const result = resultOf(state, acquire(state, name, request, more));
  if (result.type !== 'granted') throw new Error(`${name} was not granted: ${JSON.stringify(result)}`);
  return result.lease;
}

/** Queues a request for `name` and returns the waiter; throws when it is not queued. */
export function queued(state: State, name: string, request: number, more: Partial<AcquireCommand> = {}): Waiter {
  const result = resultOf(state, acquire(state, name, request, { waitMs: 60_000, ...more }));
  if (result.type !== 'queued') throw new Error(`${name} was not queued for: ${JSON.stringify(result)}`);
  return result.waiter;
}

/** What a command that frees something carries; `detached` are numbers of requests. */
function freeing(detached: readonly number[]): { readonly detached: readonly RequestId[]; readonly atUnixMs: number } {
  return { detached: detached.map(id), atUnixMs: FREED_AT };
}

export function release({ domain: of, token }: LeaseKey, owner = '', detached: readonly number[] = []): Command {
  return { type: 'release', domain: of, token, owner, ...freeing(detached) };
}

export function withdraw(name: string, request: number, owner = '', detached: readonly number[] = []): Command {
  return { type: 'withdraw', domain: domain(name), requestId: id(request), owner, ...freeing(detached) };
}

export function forceRelease({ domain: of, token }: LeaseKey, detached: readonly number[] = []): Command {
  return { type: 'forceRelease', domain: of, token, by: 'ann', note: 'stuck', ...freeing(detached) };
}

export function expire(
  leases: readonly Pick<Lease, 'domain' | 'token' | 'version'>[],
  term = 1,
  detached: readonly number[] = [],
): Command {
  const { atUnixMs, detached: passed } = freeing(detached);
  const ends = leases.map(({ domain: of, token, version }) => ({ domain: of, token, version, detached: passed }));
  return { type: 'expire', term, leases: ends, atUnixMs };
}

export function endWait(requests: readonly number[], term = 1, detached: readonly number[] = []): Command {
  const { atUnixMs, detached: passed } = freeing(detached);
  const waits = requests.map((request) => ({ requestId: id(request), detached: passed }));
  return { type: 'endWait', term, waits, atUnixMs };
}

export function endCoolDown(
  closed: readonly Pick<CoolDown, 'domain' | 'since'>[],
  term = 1,
  detached: readonly number[] = [],
): Command {
  const { atUnixMs, detached: passed } = freeing(detached);
  const domains = closed.map(({ domain: of, since }) => ({ domain: of, since, detached: passed }));
  return { type: 'endCoolDown', term, domains, atUnixMs };
}

export const END_HOLD: Command = { type: 'endHold', term: 1 };

/** Grants and releases `count` requests of other domains, numbered from `first`, to push older ones out of the table. */
export function others(state: State, count: number, first: number): void {
  for (let i = 0; i < count; i++) next(state, release(granted(state, `other/${i}`, first + i)));
}

/** Everything in a state, sorted, for comparison with a model. */
export interface Contents {
  readonly leases: Lease[];
  readonly waiters: Waiter[];
  readonly coolDowns: CoolDown[];
  readonly counting: CountingName[];
  readonly finished: FinishedRequest[];
}

/** The contents of records. */
export function contents(records: Iterable<StateRecord>): Contents {
  const found: Contents = { leases: [], waiters: [], coolDowns: [], counting: [], finished: [] };
  for (const record of records) {
    switch (record.type) {
      case 'domain':
        found.leases.push(record.lease);
        break;
      case 'waiter':
        found.waiters.push(record.waiter);
        break;
      case 'coolDown':
        found.coolDowns.push(record.coolDown);
        break;
      case 'counting':
        found.counting.push(record.counting);
        break;
      case 'finished':
        found.finished.push(...record.requests);
    }
  }
  return inOrder(found);
}

/** Sorts each list by what is unique in it. */
export function inOrder({ leases, waiters, coolDowns, counting, finished }: Contents): Contents {
  return {
    leases: leases.toSorted((left, right) => left.token - right.token || byText(left.domain, right.domain)),
    waiters: waiters.toSorted((left, right) => left.queuedAt - right.queuedAt),
    coolDowns: coolDowns.toSorted((left, right) => byText(left.domain, right.domain)),
    counting: counting.toSorted((left, right) => byText(left.name, right.name)),
    finished: finished.toSorted(
      (left, right) => left.finishedAt - right.finishedAt || byText(left.requestId, right.requestId),
    ),
  };
}

function byText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
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
  const sorted = [...table.records].sort(([left], [right]) => byText(left, right)).map(([, record]) => record);
  return createState(table.summary, HISTORY, table.revision, sorted);
}

export function keyText(key: RecordKey): string {
  switch (key.type) {
    case 'domain':
    case 'coolDown':
    case 'counting':
      return `${key.type} ${key.domain}`;
    case 'waiter':
      return `waiter ${key.queuedAt}`;
    case 'finished':
      return `finished ${key.lastRevision}`;
  }
}
