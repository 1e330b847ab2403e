/** A state from its records, as a start or a received snapshot brings them. What contradicts itself is refused. */
import { BigMap } from '../base/big-map.js';
import { leasedDomainFault, MAX_SLOTS, prefixFault, slotOf } from '../base/domain.js';
import type { History, Revision } from '../base/revision.js';
import { createFifo, push } from './fifo.js';
import { addName } from './names.js';
import { enqueue } from './queue.js';
import { count, countName, createCounts } from './quotas.js';
import { createRequests, ended, hold, remember, wait } from './requests.js';
import { recordBytes } from './size.js';
import { createSlots, setTaken } from './slots.js';
import type { State } from './state.js';
import type {
  CoolDown,
  CountingName,
  FinishedRequest,
  Lease,
  StateLimits,
  StateRecord,
  StateSummary,
  Waiter,
} from './types.js';

/** The records of a state contradict each other or the summary: the table is damaged, or mixed from two states. */
export class CorruptState extends Error {
  override readonly name = 'CorruptState';
  constructor(fault: string) {
    super(`the state table is corrupt: ${fault}; do not start this member on it, replace the member's data directory`);
  }
}

/** The records of one state, by kind. */
interface Sorted {
  readonly leases: (readonly [key: string, lease: Lease])[];
  readonly waiters: (readonly [key: Revision, waiter: Waiter])[];
  readonly coolDowns: (readonly [key: string, coolDown: CoolDown])[];
  readonly counting: (readonly [key: string, counting: CountingName])[];
  readonly finished: FinishedRequest[];
  readonly batches: Revision[];
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
  checkLimits(limits);
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
    leases: new BigMap(),
    queues: new Map(),
    coolDowns: new Map(),
    slots: new Map(),
    names: [],
    requests: createRequests(forgotten),
    counts: createCounts(limits),
    changes: {
      takenAt: appliedRevision,
      dirty: { domain: new Map(), waiter: new Map(), coolDown: new Map(), counting: new Map() },
      batches: createFifo(),
      outdated: [],
      bytes: 0,
    },
  };
  const sorted = sort(state, records);
  // Slots are checked against their names, so the names come first.
  for (const [key, counting] of sorted.counting) loadCounting(state, key, counting);
  for (const [key, lease] of sorted.leases) loadLease(state, key, lease);
  for (const [key, coolDown] of sorted.coolDowns) loadCoolDown(state, key, coolDown);
  loadWaiters(state, sorted.waiters);
  for (const names of [state.leases, state.coolDowns, state.queues]) {
    for (const name of names.keys()) addName(state.names, name);
  }
  loadBatches(state, sorted.batches);
  loadFinished(state, sorted.finished);
  return state;
}

function checkLimits(limits: StateLimits): void {
  const { finishedRequests, queue, leasesPerPrincipal, waitersPerPrincipal, countingNames, prefixes } = limits;
  demand(
    Number.isSafeInteger(finishedRequests) && finishedRequests >= 1,
    () => `it is to keep ${finishedRequests} finished requests; at least 1 is needed`,
  );
  const numbers = { queue, leasesPerPrincipal, waitersPerPrincipal, countingNames };
  for (const [name, limit] of Object.entries(numbers)) {
    demand(Number.isSafeInteger(limit) && limit >= 0, () => `its limit ${name} is ${limit}`);
  }
  for (const { prefix, ...quota } of prefixes) {
    const fault = prefixFault(prefix);
    demand(fault === undefined, () => `its quota below ${prefix} ${fault ?? ''}`);
    for (const [name, limit] of Object.entries(quota)) {
      demand(Number.isSafeInteger(limit) && limit >= 0, () => `its limit of ${name} below ${prefix} is ${limit}`);
    }
  }
  demand(new Set(prefixes.map(({ prefix }) => prefix)).size === prefixes.length, () => 'two quotas have one prefix');
}

function sort(state: State, records: Iterable<StateRecord>): Sorted {
  const sorted: Sorted = { leases: [], waiters: [], coolDowns: [], counting: [], finished: [], batches: [] };
  for (const record of records) {
    switch (record.type) {
      case 'domain':
        sorted.leases.push([record.domain, record.lease]);
        break;
      case 'waiter':
        sorted.waiters.push([record.queuedAt, record.waiter]);
        break;
      case 'coolDown':
        sorted.coolDowns.push([record.domain, record.coolDown]);
        break;
      case 'counting':
        sorted.counting.push([record.domain, record.counting]);
        break;
      case 'finished':
        loadBatch(state, record.lastRevision, record.requests, sorted.finished);
        sorted.batches.push(record.lastRevision);
    }
  }
  return sorted;
}

function loadCounting(state: State, key: string, counting: CountingName): void {
  const { name, slots } = counting;
  demand(name === key, () => `the record of counting name ${key} is of ${name}`);
  demand(slotOf(name) === undefined, () => `counting name ${name} is a slot`);
  demand(!state.slots.has(name), () => `there are two records of counting name ${name}`);
  demand(Number.isInteger(slots) && slots >= 2 && slots <= MAX_SLOTS, () => `counting name ${name} has ${slots} slots`);
  state.slots.set(name, createSlots(counting));
  countName(state, counting);
}

function loadLease(state: State, key: string, lease: Lease): void {
  const { domain, token, requestId } = lease;
  demand(domain === key, () => `the record of domain ${key} holds a lease of ${domain}`);
  demand(!state.leases.has(domain), () => `there are two records of domain ${domain}`);
  demandPlace(state, domain);
  demandRevision(state, token, () => `domain ${domain} is held by token ${token}`);
  demand(!state.requests.known.has(requestId), () => `request ${requestId} holds two domains, ${domain} is one`);
  state.leases.set(domain, lease);
  hold(state.requests, requestId, domain);
  setTaken(state, domain, true);
  count(state, 'leases', lease, 1);
}

function loadCoolDown(state: State, key: string, coolDown: CoolDown): void {
  const { domain, since } = coolDown;
  demand(domain === key, () => `the cool-down of domain ${key} is of ${domain}`);
  demand(!state.coolDowns.has(domain), () => `there are two cool-downs of domain ${domain}`);
  demand(!state.leases.has(domain), () => `domain ${domain} is held and closed`);
  demandPlace(state, domain);
  demandRevision(state, since, () => `domain ${domain} is closed since ${since}`);
  state.coolDowns.set(domain, coolDown);
  setTaken(state, domain, true);
}

/** Slots have a name that counts so far; what is no slot is no counting name. */
function demandPlace(state: State, domain: Lease['domain']): void {
  const slot = slotOf(domain);
  if (slot === undefined) demand(!state.slots.has(domain), () => `counting name ${domain} is held as a whole`);
  else {
    const slots = state.slots.get(slot.name)?.counting.slots ?? 0;
    demand(leasedDomainFault(domain) === undefined && slot.number < slots, () => `${domain} is no slot of its name`);
  }
}

function loadWaiters(state: State, waiters: Sorted['waiters'][number][]): void {
  waiters.sort(([left], [right]) => left - right);
  for (const [position, [key, waiter]] of waiters.entries()) {
    const { domain, queuedAt, requestId, slots } = waiter;
    demand(queuedAt === key, () => `the record of the waiter of ${key} is of ${queuedAt}`);
    demand(key !== waiters[position - 1]?.[0], () => `there are two waiters of ${key}`);
    demandRevision(state, queuedAt, () => `request ${requestId} waits since ${queuedAt}`);
    demand(!state.requests.known.has(requestId), () => `request ${requestId}, which waits, is there twice`);
    demand(
      slotOf(domain) === undefined && slots === (state.slots.get(domain)?.counting.slots ?? 1),
      () => `request ${requestId} waits for one of ${slots} slots of ${domain}, which has not so many`,
    );
    wait(state.requests, waiter);
    const queue = state.queues.get(domain);
    if (queue === undefined) state.queues.set(domain, [waiter]);
    else enqueue(queue, waiter);
    count(state, 'waiters', waiter, 1);
  }
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
  for (const request of requests) {
    const { requestId, domain, finishedAt, token } = request;
    // It may lie at or below the base: a restored history keeps the ends of the one before it.
    demand(
      finishedAt <= state.revision,
      () => `request ${requestId} finished at ${finishedAt}, beyond the revision ${state.revision}`,
    );
    demand(!state.requests.known.has(requestId), () => `request ${requestId} is finished, and there twice`);
    if (token !== undefined) {
      demand(token < finishedAt, () => `request ${requestId} finished at ${finishedAt}, not after its token ${token}`);
      demand(
        state.leases.get(domain)?.token !== token && ended(state.requests, domain, token) === undefined,
        () => `token ${token} of ${domain} was granted twice, to request ${requestId} too`,
      );
    }
    remember(state.requests, request);
  }
}

/** No revision lies before this history or after what is applied. `what` begins the sentence. */
function demandRevision(state: State, revision: Revision, what: () => string): void {
  demand(revision > state.history.base, () => `${what()}, not above the history's base ${state.history.base}`);
  demand(revision <= state.revision, () => `${what()}, beyond the revision ${state.revision}`);
}

function demand(condition: boolean, fault: () => string): void {
  if (!condition) throw new CorruptState(fault());
}
