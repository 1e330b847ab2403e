/**
 * FAIR: of two who wait for one domain, both called for all along, the one queued first is granted first. FREE: no domain
 * stays free while a call for one of its waiters is held at the leader. SLOTS: of a counting name at most as many slots
 * are held as it has, each of its own, and their number never changes. Judged from the calls that a process was handed and
 * from its tables, not from what it notes of those who call.
 */
import type { Domain } from '../../../src/base/ids.js';
import { nameOf, slotOf } from '../../../src/base/domain.js';
import type { State } from '../../../src/lease/state.js';
import type { Waiter } from '../../../src/lease/types.js';
import type { Context } from '../../../src/replica/state.js';
import type { Event } from '../../../src/replica/types.js';
import type { Coverage } from '../coverage.js';
import type { Observer, Process, Report, Step } from '../observation.js';

/** A domain is offered at the next tick at the latest; in true milliseconds, on top of some ticks. */
const OFFER_MS = 400;
const OFFER_TICKS = 5;

/** An acquire at a process. */
interface Held {
  readonly requestId: string;
  /** The step since when it is surely held for a waiter; undefined while it may still be on its way into the queue. */
  since: number | undefined;
}

/** One life of a process. */
interface Seen {
  step: number;
  /** Index of the state that was looked at last. */
  applied: number | undefined;
  term: number | undefined;
  readonly calls: Map<string, Held>;
  /** How many calls of each request ever came. */
  readonly came: Map<string, number>;
  waiting: readonly Waiter[];
  /** Where the log ended at the end of which step, as far as it is not applied. */
  appended: { readonly end: number; readonly step: number }[];
  /** Free domains that somebody waits for, who is called for: since when. */
  readonly free: Map<Domain, number>;
}

/** See the head of the file. */
export class Queues implements Observer {
  readonly #report: Report;
  readonly #coverage: Coverage;
  readonly #seen = new Map<number, Seen>();
  /** By incarnation and name. */
  readonly #slots = new Map<string, number>();

  constructor(report: Report, coverage: Coverage) {
    this.#report = report;
    this.#coverage = coverage;
  }

  started({ run }: Process): void {
    const lists = { calls: new Map(), came: new Map(), waiting: [], appended: [], free: new Map() };
    this.#seen.set(run, { step: 0, applied: undefined, term: undefined, ...lists });
  }

  ended({ run }: Process): void {
    this.#seen.delete(run);
  }

  stepped({ process, at, events, effects, context }: Step): void {
    const seen = this.#seen.get(process.run);
    if (seen === undefined) return;
    seen.step++;
    const { lease, leadership } = context;
    const changed = context.applied !== seen.applied;
    seen.applied = context.applied;
    if (changed) this.#checkSlots(process, lease, at);
    const began = leadership?.ready !== undefined && leadership.term !== seen.term;
    for (const event of events) take(seen, event, !began && leadership?.ready !== undefined);
    if (leadership?.ready === undefined) {
      seen.term = undefined;
      seen.appended = [];
      seen.free.clear();
    } else {
      if (began) begin(seen, leadership.term, lease);
      const { log } = context.raft;
      seen.appended.push({ end: log.anchor.index + log.entries.length, step: seen.step });
    }
    for (const effect of effects) {
      if (effect.type === 'answer') seen.calls.delete(`own ${effect.id}`);
      else if (effect.type === 'forwardResult') seen.calls.delete(`${effect.to} ${effect.id}`);
    }
    if (leadership?.ready !== undefined) {
      if (!began) this.#checkGrants(process, seen, context, at);
      this.#checkFree(seen, context, at);
      seen.appended = seen.appended.filter(({ end }) => end > context.applied);
    }
    if (changed) seen.waiting = [...lease.queues.values()].flat();
    for (const held of seen.calls.values()) {
      // The only call of a request that has got into the queue.
      const waits = seen.waiting.some(({ requestId }) => requestId === held.requestId);
      if (held.since === undefined && waits && seen.came.get(held.requestId) === 1) held.since = seen.step;
    }
  }

  /** Who was in front of somebody that was granted, and still waits. */
  #checkGrants({ genesis }: Process, seen: Seen, { lease, leadership }: Readonly<Context>, at: number): void {
    for (const waiter of seen.waiting) {
      const place = lease.requests.known.get(waiter.requestId);
      if (typeof place !== 'string') continue;
      this.#coverage.count('waiter granted');
      const token = lease.leases.get(place)?.token ?? 0;
      const index = token - genesis.history.base + genesis.history.start;
      const proposed = seen.appended.find(({ end }) => end >= index)?.step;
      if (proposed === undefined) continue;
      for (const other of seen.waiting) {
        if (other.domain !== waiter.domain || other.queuedAt >= waiter.queuedAt) continue;
        const waits = lease.requests.known.get(other.requestId) === other;
        if (!waits || !isCalledFor(seen, other.requestId, proposed) || isEnding(leadership, other.requestId)) continue;
        const who = `${waiter.requestId}, queued at ${waiter.queuedAt}, is granted ${place} at ${token}`;
        this.#fault('FAIR', at, `${who}, and ${other.requestId} waits since ${other.queuedAt}, with a call held`);
      }
    }
  }

  #checkFree(seen: Seen, context: Readonly<Context>, at: number): void {
    const { lease, leadership, raft, options } = context;
    const { role, log, commit } = raft;
    const quiet = log.anchor.index + log.entries.length === commit;
    const busy = role.type !== 'leader' || role.handover !== undefined || lease.holding || !quiet;
    const names = new Set<Domain>();
    for (const { requestId, domain } of busy ? [] : [...lease.queues.values()].flat()) {
      if (!isFree(lease, domain) || isEnding(leadership, requestId)) continue;
      if (isCalledFor(seen, requestId, seen.step)) names.add(domain);
    }
    for (const name of seen.free.keys()) if (!names.has(name)) seen.free.delete(name);
    for (const name of names) {
      const since = seen.free.get(name);
      if (since === undefined) seen.free.set(name, at);
      else if (at - since > OFFER_MS + OFFER_TICKS * options.tickMs) {
        this.#fault('FREE', at, `${name} is free since ${since.toFixed(2)}, and a call for one of its waiters is held`);
      }
    }
  }

  #checkSlots({ genesis }: Process, lease: State, at: number): void {
    for (const [name, { counting }] of lease.slots) {
      const key = `${genesis.incarnation} ${name}`;
      const known = this.#slots.get(key);
      if (known === undefined) this.#slots.set(key, counting.slots);
      else if (known !== counting.slots)
        this.#fault('SLOTS', at, `${name} has ${counting.slots} slots, and had ${known}`);
      if (lease.leases.has(name)) this.#fault('SLOTS', at, `${name} counts and is held as a whole`);
    }
    const held = new Map<Domain, number>();
    for (const domain of lease.leases.keys()) {
      const slot = slotOf(domain);
      if (slot === undefined) continue;
      const slots = lease.slots.get(slot.name)?.counting.slots ?? 0;
      held.set(slot.name, (held.get(slot.name) ?? 0) + 1);
      if (
        !Number.isInteger(slot.number) ||
        slot.number < 0 ||
        slot.number >= slots ||
        (held.get(nameOf(domain)) ?? 0) > slots
      ) {
        this.#fault('SLOTS', at, `${domain} is held, and ${slot.name} has ${slots} slots`);
      }
    }
  }

  #fault(code: string, at: number, text: string): void {
    this.#report({ code, text: `${at.toFixed(2)}: ${text}` });
  }
}

/** Notes calls that come and go; `leads`: what comes for somebody who waits is held from here. */
function take(seen: Seen, event: Event, leads: boolean): void {
  switch (event.type) {
    case 'call':
    case 'forwarded': {
      const { call } = event;
      if (call.type !== 'acquire') return;
      const { requestId } = call;
      seen.came.set(requestId, (seen.came.get(requestId) ?? 0) + 1);
      const waits = leads && seen.waiting.some((waiter) => waiter.requestId === requestId);
      const origin = event.type === 'call' ? 'own' : event.from;
      seen.calls.set(`${origin} ${event.id}`, { requestId, since: waits ? seen.step : undefined });
      return;
    }
    case 'cancel':
      seen.calls.delete(`own ${event.id}`);
      return;
    case 'forwardCancelled':
      seen.calls.delete(`${event.from} ${event.id}`);
      return;
    case 'forwarderLost':
      for (const origin of seen.calls.keys()) if (origin.startsWith(`${event.node} `)) seen.calls.delete(origin);
      return;
    case 'chunk':
    case 'chunksEnded':
    case 'cutWritten':
    case 'diskFree':
    case 'forwardLost':
    case 'forwardResult':
    case 'hello':
    case 'message':
    case 'probed':
    case 'snapshotSent':
    case 'staged':
    case 'stop':
    case 'streamEnded':
    case 'tick':
    case 'unreachable':
    case 'watch':
    case 'watchClosed':
    case 'watchReady':
    case 'written':
  }
}

/** A leadership begins to serve: the calls that waited for it are held from here, where their request waits. */
function begin(seen: Seen, term: number, lease: State): void {
  seen.term = term;
  seen.appended = [];
  seen.free.clear();
  for (const held of seen.calls.values()) {
    const known = lease.requests.known.get(held.requestId as Waiter['requestId']);
    held.since = typeof known === 'object' && !('finishedAt' in known) ? seen.step : undefined;
  }
}

/** A call for it is held since before `step`. */
function isCalledFor(seen: Seen, requestId: string, step: number): boolean {
  for (const held of seen.calls.values()) {
    if (held.requestId === requestId && held.since !== undefined && held.since < step) return true;
  }
  return false;
}

/** An EndWait of it is on its way: it is to leave the queue. */
function isEnding(leadership: Context['leadership'], requestId: string): boolean {
  for (const { command } of leadership?.pending.values() ?? []) {
    if (command.type === 'endWait' && command.waits.some((wait) => wait.requestId === requestId)) return true;
  }
  return false;
}

function isFree({ slots, leases, coolDowns }: State, name: Domain): boolean {
  const counting = slots.get(name);
  if (counting === undefined) return !leases.has(name) && !coolDowns.has(name);
  return Array.from({ length: counting.counting.slots }, (_, at) => `${name}#${at}` as Domain).some(
    (slot) => !leases.has(slot) && !coolDowns.has(slot),
  );
}
