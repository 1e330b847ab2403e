/**
 * Who waits, as one leader sees it (design 7 Hand-over and 8; F7): for whom a call is held, who is detached, whose wait is
 * over. Rebuilt from calls, answers and entries. A call is *surely held* when it came while its request was known to wait,
 * or was the request's only one; what may be held besides is left open.
 */
import type { Command } from '../../../src/lease/commands.js';
import type { Waiter } from '../../../src/lease/types.js';
import type { OpenCall } from './calls.js';
import type { LeaseModel } from './lease-model.js';
import { nameOf } from './lease-state.js';

/** Rounding of doubles. */
const EPSILON_MS = 1e-6;
/** What is due is looked at in steps of so many milliseconds, at a tick, and what was refused is tried again after so many. */
const LATE_MS = 50;

/** An EndWait on its way. */
export interface Ending {
  readonly index: number;
  readonly step: number;
  /** The wait was over when it was proposed; else nobody called for it. */
  readonly over: boolean;
}

/** How a request left its queue, in this leader's own term. */
export interface Leaving {
  readonly index: number;
  /** The step in which that entry was appended. */
  readonly step: number;
  readonly how: 'granted' | 'waitOver' | 'ended';
}

interface Place {
  readonly waiter: Waiter;
  /** This leader saw it join, in this step. */
  readonly joinedIn: number;
  readonly waitUntil: number;
  /** Calls that are surely held. */
  readonly held: Set<OpenCall>;
  /** Since when none is, at the earliest. */
  silentSince: number;
  /** This leader may have seen a call for it … */
  maySeen: boolean;
  /** … and has surely seen one end, or saw it join. */
  seen: boolean;
  /** When some call of it was last here. */
  calledAt: number;
  /** The step at whose end it was found to have stayed too long. */
  overdueIn: number | undefined;
}

/** What the rules are judged by at the end of a step. */
export interface Moment {
  readonly step: number;
  readonly nowMs: number;
  readonly ticked: boolean;
  /** Leadership is being handed over: nothing can be proposed. */
  readonly handover: boolean;
  /** The leader may have refused work for its load. */
  readonly loaded: boolean;
  /** Requests of which some acquire is, or was in this step, here. */
  readonly called: ReadonlySet<string>;
}

/** See the head of the file. One for each leadership, from the apply of its no-op. */
export class Waits {
  readonly endings = new Map<string, Ending>();
  readonly leavings = new Map<string, Leaving>();
  readonly #places = new Map<string, Place>();
  readonly #term: number;
  readonly #readyAt: number;
  readonly #graceMs: number;
  /** Own acquires of waiters that were proposed, by request: their last entry. */
  readonly #offered = new Map<string, number>();
  /** Entries of this leader that are not applied: the step of their append, by index. */
  readonly #appendedIn = new Map<number, number>();
  /** Names that are free though a call for a waiter of theirs is held: the step and the time since when. */
  readonly #free = new Map<string, { readonly step: number; readonly at: number }>();
  #quietAt = -Infinity;

  /** Everybody who waits is attached for the grace. */
  constructor(term: number, leases: LeaseModel, nowMs: number, graceMs: number, step: number) {
    this.#term = term;
    this.#readyAt = nowMs;
    this.#graceMs = graceMs;
    for (const waiter of leases.waiting) this.#join(waiter, nowMs, step, false);
  }

  #join(waiter: Waiter, nowMs: number, step: number, seen: boolean): Place {
    const { requestId, waitMs } = waiter;
    const about = { waiter, joinedIn: step, waitUntil: nowMs + waitMs, silentSince: nowMs, maySeen: seen, seen };
    const place: Place = { ...about, held: new Set(), calledAt: nowMs, overdueIn: undefined };
    this.#places.set(requestId, place);
    return place;
  }

  /** A call came, or begins to be served here. */
  came(call: OpenCall): void {
    if (call.call.type !== 'acquire') return;
    const place = this.#places.get(call.call.requestId);
    if (place === undefined) return;
    place.maySeen = true;
    if (!this.endings.has(call.call.requestId)) place.held.add(call);
  }

  /** An entry of this term was applied. `calls`: those that are here, with how many ever came of each request. */
  applied(
    leases: LeaseModel,
    command: Command,
    calls: Iterable<OpenCall>,
    taken: (requestId: string) => number,
    { step, nowMs }: Pick<Moment, 'step' | 'nowMs'>,
  ): void {
    const { index } = leases;
    const appendedIn = this.#appendedIn.get(index) ?? step;
    this.#appendedIn.delete(index);
    if (command.type === 'acquire') {
      const { requestId } = command;
      const known = leases.ids.get(requestId);
      if (known !== undefined && 'waitMs' in known) {
        const place = this.#places.get(requestId) ?? this.#join(known, nowMs, step, true);
        for (const call of calls) {
          if (call.call.type !== 'acquire' || call.call.requestId !== requestId) continue;
          if (taken(requestId) === 1 && !call.over && !this.endings.has(requestId)) place.held.add(call);
        }
      }
    }
    for (const { requestId } of leases.left) {
      const granted = leases.granted.some((lease) => lease.requestId === requestId);
      this.leavings.set(requestId, { index, step: appendedIn, how: granted ? 'granted' : 'ended' });
    }
    // A request is over by its EndWait, which takes back what it was granted in between, or by a Withdraw that came before.
    for (const [requestId, { over }] of this.endings) {
      const known = leases.ids.get(requestId);
      if (known !== undefined && !('finishedAt' in known)) continue;
      this.endings.delete(requestId);
      const waitOver = over && known?.reason === 'left_queue';
      this.leavings.set(requestId, { index, step: appendedIn, how: waitOver ? 'waitOver' : 'ended' });
    }
  }

  /** An entry that this leader appended in this step at `index`. */
  proposed(command: Command, index: number, leases: LeaseModel, moment: Moment, fail: (text: string) => void): void {
    this.#appendedIn.set(index, moment.step);
    switch (command.type) {
      case 'acquire':
        this.#offers(command.requestId, index, moment, fail);
        return;
      case 'release':
      case 'withdraw':
      case 'forceRelease':
        this.#checkPassed(command.detached, moment, fail);
        this.#checkOthers(command.domain, command.detached, leases, moment, fail);
        return;
      case 'expire':
      case 'endCoolDown': {
        const ends = command.type === 'expire' ? command.leases : command.domains;
        const all = ends.flatMap(({ detached }) => detached);
        this.#checkPassed(all, moment, fail);
        for (const { domain } of ends) this.#checkOthers(domain, all, leases, moment, fail);
        return;
      }
      case 'endWait':
        if (command.term !== this.#term) fail(`proposes an EndWait of term ${command.term} in term ${this.#term}`);
        for (const { requestId } of command.waits) this.#endsWait(requestId, index, moment, fail);
        // From here they are detached.
        for (const { detached } of command.waits) this.#checkPassed(detached, moment, fail);
        return;
      case 'checkpoint':
      case 'void':
      case 'endHold':
      case 'limits':
    }
  }

  /** A waiter that finds its domain free: in the order of the queue. */
  #offers(requestId: string, index: number, { step }: Moment, fail: (text: string) => void): void {
    const place = this.#places.get(requestId);
    if (place === undefined) return;
    this.#offered.set(requestId, index);
    // A call that came in this step may have come before it was known to wait.
    if (!this.#isHeld(place, step)) return;
    for (const before of this.#inFrontOf(place.waiter)) {
      if (this.#isHeld(before, step)) {
        fail(`proposes the call of ${requestId}, before that of ${before.waiter.requestId}, who came first`);
      }
    }
  }

  *#inFrontOf({ domain, queuedAt }: Waiter): Iterable<Place> {
    for (const place of this.#places.values()) {
      if (place.waiter.domain === domain && place.waiter.queuedAt < queuedAt) yield place;
    }
  }

  /** A call for it was held before this step and still is; nothing ends its wait. */
  #isHeld({ waiter, held }: Place, step: number): boolean {
    if (this.endings.has(waiter.requestId)) return false;
    for (const call of held) if (!call.over && call.since.step < step) return true;
    return false;
  }

  /** Whether nobody can be there who would hear of a grant to it. */
  #isSurelyDetached({ waiter, joinedIn, seen, held }: Place, { step, nowMs, called }: Moment): boolean {
    if (joinedIn === step || held.size > 0 || called.has(waiter.requestId)) return false;
    return seen || nowMs - this.#readyAt >= this.#graceMs + EPSILON_MS;
  }

  /** Nobody is passed over for whom a call is held, or may still come to a new leader. */
  #checkPassed(detached: readonly string[], { step, nowMs }: Moment, fail: (text: string) => void): void {
    for (const requestId of detached) {
      const place = this.#places.get(requestId);
      if (place === undefined) continue;
      if (this.#isHeld(place, step)) fail(`passes over ${requestId}, for whom a call is held`);
      const unseen = !place.maySeen && nowMs - this.#readyAt < this.#graceMs - EPSILON_MS;
      if (unseen && !this.endings.has(requestId)) fail(`passes over ${requestId}, of whom it has seen no call yet`);
    }
  }

  /** Those in front of the first waiter who is not detached are passed over. */
  #checkOthers(
    domain: string,
    detached: readonly string[],
    leases: LeaseModel,
    moment: Moment,
    fail: (text: string) => void,
  ): void {
    for (const { requestId } of leases.queueOf(nameOf(domain))) {
      if (detached.includes(requestId) || this.endings.has(requestId)) continue;
      const place = this.#places.get(requestId);
      if (place === undefined || !this.#isSurelyDetached(place, moment)) return;
      fail(`does not pass over ${requestId}, for whom nobody calls`);
    }
  }

  #endsWait(requestId: string, index: number, { step, nowMs }: Moment, fail: (text: string) => void): void {
    const place = this.#places.get(requestId);
    if (place === undefined) {
      fail(`ends the wait of ${requestId}, which does not wait`);
      return;
    }
    if (this.endings.has(requestId)) fail(`ends the wait of ${requestId} twice`);
    const over = nowMs >= place.waitUntil;
    const silent = !this.#isHeld(place, step) && nowMs - place.silentSince >= this.#graceMs - EPSILON_MS;
    if (!over && !silent) {
      fail(`ends the wait of ${requestId}, which is not over, and it has not been silent for long`);
    }
    if (!place.maySeen && nowMs - this.#readyAt < this.#graceMs - EPSILON_MS) {
      fail(`ends the wait of ${requestId}, of whom it has seen no call yet, within the grace`);
    }
    this.endings.set(requestId, { index, step, over });
  }

  /** What the step left: calls that ended, waits that should have, and places that nobody was offered. */
  settle(leases: LeaseModel, moment: Moment, fail: (text: string) => void): void {
    const { nowMs, called } = moment;
    for (const [requestId, place] of this.#places) {
      if (called.has(requestId)) place.calledAt = nowMs;
      const waits = leases.ids.get(requestId) === place.waiter;
      this.#drop(place, waits, leases.index, moment, fail);
      if (!waits) this.#places.delete(requestId);
    }
    for (const [requestId, index] of this.#offered) if (index <= leases.index) this.#offered.delete(requestId);
    if (moment.handover || moment.loaded) {
      this.#quietAt = nowMs;
      this.#free.clear();
    }
    for (const place of this.#places.values()) this.#checkOverdue(place, moment, fail);
    this.#checkFree(leases, moment, fail);
    if (this.leavings.size > 200) {
      for (const [requestId, { index }] of this.leavings) {
        if (index < leases.index - 500 && !called.has(requestId)) this.leavings.delete(requestId);
      }
    }
  }

  /** Calls that have ended are held no more. Who left is told at once, a call that was offered its place by its own entry. */
  #drop(
    place: Place,
    waits: boolean,
    applied: number,
    { nowMs }: Pick<Moment, 'nowMs'>,
    fail: (text: string) => void,
  ): void {
    const { requestId } = place.waiter;
    let isOffered = (this.#offered.get(requestId) ?? 0) > applied;
    for (const call of place.held) {
      if (call.over) {
        place.held.delete(call);
        place.silentSince = nowMs;
        place.seen = true;
        continue;
      }
      const leaving = this.leavings.get(requestId);
      if (waits || leaving === undefined || this.endings.has(requestId)) continue;
      // What was appended in the step in which the call came may have been appended before it: then a round is due first.
      if (leaving.step <= call.since.step) continue;
      if (isOffered) {
        isOffered = false;
        continue;
      }
      fail(`does not answer call ${call.id}, though ${requestId} left its queue at ${leaving.index}`);
    }
  }

  /** Nobody stays in a queue for whom nobody calls, or whose wait is over, and no call is held for longer than it may be. */
  #checkOverdue(place: Place, { step, nowMs, ticked, called }: Moment, fail: (text: string) => void): void {
    const { waiter, held, waitUntil, silentSince, calledAt, seen } = place;
    const { requestId } = waiter;
    const free = this.#offered.has(requestId) || this.endings.has(requestId);
    const alone = held.size === 0 && !called.has(requestId);
    const silent = alone && nowMs - Math.max(silentSince, calledAt) > this.#graceMs + LATE_MS;
    const over = nowMs > waitUntil + LATE_MS && (held.size > 0 || (seen && alone));
    const holds = [...held].some((call) => nowMs > call.holdUntil + LATE_MS);
    const late = !free && nowMs > this.#quietAt + LATE_MS && (silent || over || holds);
    const since = place.overdueIn;
    place.overdueIn = late ? (since ?? step) : undefined;
    if (!late || !ticked || since === undefined || since >= step) return;
    if (holds) fail(`still holds a call for ${requestId}, longer than it may`);
    else fail(`keeps ${requestId} in its queue, ${over ? 'whose wait is over' : 'for whom nobody calls'}`);
  }

  /** No domain stays free while a call for one of its waiters is held. */
  #checkFree(
    leases: LeaseModel,
    { step, nowMs, ticked, loaded, handover }: Moment,
    fail: (text: string) => void,
  ): void {
    const names = new Set<string>();
    for (const place of this.#places.values()) {
      const { requestId, domain } = place.waiter;
      if (leases.holding || leases.isTaken(domain)) continue;
      if (this.#isHeld(place, step) && !this.#offered.has(requestId)) names.add(domain);
    }
    for (const { requestId, domain } of leases.waiting) if (this.#offered.has(requestId)) names.delete(domain);
    for (const name of this.#free.keys()) if (!names.has(name)) this.#free.delete(name);
    if (loaded || handover) return;
    for (const name of names) {
      const since = this.#free.get(name);
      if (since === undefined) this.#free.set(name, { step, at: nowMs });
      else if (ticked && since.step < step && nowMs - since.at > LATE_MS) {
        fail(`leaves ${name} free, for one of whose waiters a call is held`);
      }
    }
  }

  /**
   * Why a call that was held is told what it is told; undefined when there is no ground. Who was granted, and is told after
   * a round only, may find that it has ended by then.
   */
  groundFor(requestId: string, how: Leaving['how']): Leaving | undefined {
    const leaving = this.leavings.get(requestId);
    return leaving?.how === how || (how === 'ended' && leaving?.how === 'granted') ? leaving : undefined;
  }

  /** An EndWait of it was open before this step, and its outcome is not known at `index`. */
  isEnding(requestId: string, step: number, index: number): boolean {
    const ending = this.endings.get(requestId);
    return ending !== undefined && ending.step < step && ending.index > index;
  }
}
