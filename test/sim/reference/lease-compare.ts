/** Holds a member's lease tables, and what it saves of them, against the model. */
import type { Domain, RequestId } from '../../../src/base/ids.js';
import type { State } from '../../../src/lease/state.js';
import type {
  CoolDown,
  CountingName,
  FinishedRequest,
  Lease,
  RecordKey,
  StateLimits,
  StateRecord,
  Waiter,
} from '../../../src/lease/types.js';
import type { Cut } from '../../../src/replica/types.js';
import type { LeaseModel } from './lease-model.js';
import { limitsText } from './limits.js';
import type { Known, Live, Over } from './lease-state.js';

/** Compares what changed since the last time; with `all`, everything. */
export function compareLeases(model: LeaseModel, state: State, all: boolean, fail: (text: string) => void): void {
  compareLimits(model, state.limits, fail);
  if (state.revision !== model.revision) fail(`its tables are at ${state.revision}, ${model.revision} is applied`);
  const names = all
    ? new Set([...model.live.keys(), ...model.closed.keys(), ...model.waiting.map(({ domain }) => domain)])
    : new Set([...model.touched, ...model.touchedNames]);
  for (const name of names) compareDomain(model, state, name, fail);
  for (const id of all ? model.ids.keys() : model.touchedIds) {
    const known = state.requests.known.get(id as RequestId);
    const own = model.ids.get(id);
    if (!sameKnown(own, known)) fail(`request ${id} is ${idText(known)} and should be ${idText(own)}`);
  }
  model.touchedIds.clear();
  model.touchedNames.clear();
  if (state.leases.size !== model.live.size) fail(`${state.leases.size} leases live, not ${model.live.size}`);
  if (state.coolDowns.size !== model.closed.size) {
    fail(`${state.coolDowns.size} domains are closed, not ${model.closed.size}`);
  }
  if (state.slots.size !== model.counting.size) fail(`${state.slots.size} names count, not ${model.counting.size}`);
  if (state.queues.size !== new Set(model.waiting.map(({ domain }) => domain)).size) {
    fail(`there are ${state.queues.size} queues`);
  }
  if (state.requests.order.length !== model.over.length) {
    fail(`${state.requests.order.length} finished requests are known, not ${model.over.length}`);
  }
  if (state.requests.forgotten !== model.forgotten) {
    fail(`has forgotten up to ${state.requests.forgotten}, not ${model.forgotten}`);
  }
  if (state.holding !== model.holding) fail(state.holding ? 'still holds grants back' : 'grants during the hold');
}

/** The limits in force, or those in a cut. */
export function compareLimits(model: LeaseModel, limits: StateLimits, fail: (text: string) => void): void {
  const [has, wanted] = [limitsText(limits), limitsText(model.limits)];
  if (has !== wanted) fail(`has the limits ${has}, not ${wanted}`);
}

/** Who holds it, who waits for it in which order, whether it is closed, how many slots it has. */
function compareDomain(model: LeaseModel, state: State, name: string, fail: (text: string) => void): void {
  const domain = name as Domain;
  const lease = state.leases.get(domain);
  const live = model.live.get(name);
  if (!sameLease(live, lease)) fail(`${name} is ${leaseText(lease)} and should be ${leaseText(live)}`);
  const queue = (state.queues.get(domain) ?? []).map(({ requestId }) => requestId).join(', ');
  const own = model
    .queueOf(name)
    .map(({ requestId }) => requestId)
    .join(', ');
  if (queue !== own) fail(`${name} is waited for by ${queue}, not ${own}`);
  const closed = state.coolDowns.get(domain);
  if (!sameCoolDown(model.closed.get(name), closed)) fail(`${name} is ${closed === undefined ? 'open' : 'closed'}`);
  const counting = state.slots.get(domain)?.counting;
  if (!sameName(model.counting.get(name), counting)) fail(`${name} has ${counting?.slots ?? 'no'} slots`);
}

/** The table of a member as its cuts make it: which records it has, and up to where it knows what is over. */
export interface Table {
  /** Kind and key of each record but those of what is over. */
  readonly records: Set<string>;
  /** Domains, slots and names that changed since the last cut. */
  readonly changed: Set<string>;
  revision: number;
}

/** The records of a state but those of what is over. */
export function recordsOf(model: LeaseModel): Set<string> {
  return new Set([
    ...[...model.live.keys()].map((domain) => `domain ${domain}`),
    ...[...model.closed.keys()].map((domain) => `coolDown ${domain}`),
    ...[...model.counting.keys()].map((name) => `counting ${name}`),
    ...model.waiting.map(({ queuedAt }) => `waiter ${queuedAt}`),
  ]);
}

/** A cut is the state at its index: every change since the one before is in it. */
export function checkCut(model: LeaseModel, table: Table, { changes }: Cut, fail: (text: string) => void): void {
  const { summary, put, remove } = changes;
  if (summary.forgotten !== model.forgotten || summary.holding !== model.holding) fail('a cut has another summary');
  compareLimits(model, summary.limits, fail);
  const over = new Set<Known>();
  const fresh = new Set<string>();
  for (const record of put) {
    if (record.type === 'finished') {
      for (const request of record.requests) {
        const own = model.ids.get(request.requestId);
        if (own === undefined || !sameKnown(own, request)) fail(`a cut has another end of ${request.requestId}`);
        else over.add(own);
      }
      continue;
    }
    const key = keyOf(record);
    table.records.add(key);
    fresh.add(key);
    if (!sameRecord(model, record)) fail(`a cut has another ${key}`);
  }
  for (const key of remove) if (key.type !== 'finished') table.records.delete(keyOf(key));
  for (const domain of table.changed) {
    for (const [kind, own] of [
      ['domain', model.live],
      ['coolDown', model.closed],
    ] as const) {
      if (own.has(domain) && !fresh.has(`${kind} ${domain}`)) fail(`a cut lacks the changed ${kind} ${domain}`);
    }
  }
  const wanted = recordsOf(model);
  for (const key of table.records) if (!wanted.has(key)) fail(`the table has a ${key}, which is over`);
  for (const key of wanted) if (!table.records.has(key)) fail(`the table lacks ${key}`);
  for (const request of model.over) {
    if (request.finishedAt > table.revision && !over.has(request)) fail(`a cut lacks the end of ${request.requestId}`);
  }
  table.changed.clear();
  table.revision = model.revision;
}

function keyOf(key: Exclude<StateRecord | RecordKey, { readonly type: 'finished' }>): string {
  return key.type === 'waiter' ? `waiter ${key.queuedAt}` : `${key.type} ${key.domain}`;
}

function sameRecord(model: LeaseModel, record: Exclude<StateRecord, { readonly type: 'finished' }>): boolean {
  switch (record.type) {
    case 'domain':
      return sameLease(model.live.get(record.domain), record.lease);
    case 'coolDown':
      return sameCoolDown(model.closed.get(record.domain), record.coolDown);
    case 'counting':
      return sameName(model.counting.get(record.domain), record.counting);
    case 'waiter':
      return sameKnown(model.ids.get(record.waiter.requestId), record.waiter);
  }
}

function sameName(own: CountingName | undefined, other: CountingName | undefined): boolean {
  return own?.name === other?.name && own?.slots === other?.slots && own?.principal === other?.principal;
}

function sameCoolDown(own: CoolDown | undefined, other: CoolDown | undefined): boolean {
  return own?.since === other?.since && own?.ms === other?.ms && own?.domain === other?.domain;
}

/** A member knows a holder's id by its domain, the others by what they are. */
function sameKnown(own: Known | undefined, known: string | Waiter | FinishedRequest | undefined): boolean {
  if (own === undefined || known === undefined) return own === known;
  if ('version' in own) return known === own.domain;
  if (typeof known === 'string') return false;
  if ('finishedAt' in own) return 'finishedAt' in known && sameOver(own, known);
  return !('finishedAt' in known) && sameWaiter(own, known);
}

function sameWaiter(own: Waiter, other: Waiter): boolean {
  return (
    sameAsked(own, other) &&
    own.queuedAt === other.queuedAt &&
    own.slots === other.slots &&
    own.waitMs === other.waitMs &&
    own.queuedAtUnixMs === other.queuedAtUnixMs
  );
}

function sameAsked(own: Waiter | Live, other: Waiter | Lease): boolean {
  return (
    own.domain === other.domain &&
    own.requestId === other.requestId &&
    own.holder === other.holder &&
    own.ttlMs === other.ttlMs &&
    own.coolDownMs === other.coolDownMs &&
    own.owner === other.owner &&
    own.principal === other.principal &&
    own.metadata.length === other.metadata.length
  );
}

function sameLease(own: Live | undefined, lease: Lease | undefined): boolean {
  if (own === undefined || lease === undefined) return own === lease;
  return (
    sameAsked(own, lease) &&
    own.token === lease.token &&
    own.grantedAtUnixMs === lease.grantedAtUnixMs &&
    own.version === lease.version &&
    own.leftMs === lease.checkpointLeftMs
  );
}

function sameOver(own: Over, request: FinishedRequest): boolean {
  return (
    own.requestId === request.requestId &&
    own.domain === request.domain &&
    own.finishedAt === request.finishedAt &&
    own.token === request.token &&
    own.reason === request.reason &&
    own.by === request.by &&
    own.note === request.note &&
    own.owner === request.owner &&
    own.asked?.ttlMs === request.asked?.ttlMs &&
    own.asked?.holder === request.asked?.holder &&
    own.asked?.coolDownMs === request.asked?.coolDownMs &&
    own.asked?.slots === request.asked?.slots
  );
}

function leaseText(lease: Live | Lease | undefined): string {
  if (lease === undefined) return 'free';
  const left = 'leftMs' in lease ? lease.leftMs : lease.checkpointLeftMs;
  return `held by token ${lease.token} of ${lease.requestId}, version ${lease.version}, ${left ?? 'no'} ms left`;
}

function idText(known: string | Known | undefined): string {
  if (known === undefined) return 'unknown';
  if (typeof known === 'string') return `live in ${known}`;
  if ('version' in known) return `live in ${known.domain}`;
  return 'finishedAt' in known ? `over at ${known.finishedAt} (${known.reason})` : `waiting since ${known.queuedAt}`;
}
