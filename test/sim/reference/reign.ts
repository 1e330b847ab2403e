/** What the relation knows of one leadership, from the apply of its no-op: its clock, who waits, what is closed. */
import type { Command } from '../../../src/lease/commands.js';
import type { Calls, OpenCall } from './calls.js';
import { subjectOf } from './calls.js';
import { CoolDowns } from './cool-downs.js';
import { LeaderClock } from './leader-clock.js';
import type { LeaseModel, Outcome } from './lease-model.js';
import { asksFor } from './matching.js';
import { Waits } from './waits.js';
import type { Moment } from './waits.js';

/** When a leadership began to serve, and what its member is configured with. */
interface Begun {
  readonly nowMs: number;
  readonly step: number;
  readonly graceMs: number;
  readonly timedPerTick: number;
}

/** See the head of the file. */
export class Reign {
  readonly term: number;
  readonly clock: LeaderClock;
  readonly waits: Waits;
  readonly coolDowns: CoolDowns;
  readonly #calls: Calls;
  readonly #fail: (text: string) => void;

  constructor(
    term: number,
    leases: LeaseModel,
    calls: Calls,
    { nowMs, step, graceMs, timedPerTick }: Begun,
    fail: (text: string) => void,
  ) {
    this.term = term;
    this.#calls = calls;
    this.#fail = fail;
    this.clock = new LeaderClock(term, leases, nowMs, timedPerTick);
    this.waits = new Waits(term, leases, nowMs, graceMs, step);
    this.coolDowns = new CoolDowns(term, leases, nowMs);
  }

  /** An entry of this term was applied, and came to `outcome`. */
  applied(leases: LeaseModel, command: Command, outcome: Outcome, at: Pick<Moment, 'step' | 'nowMs'>): void {
    const { nowMs } = at;
    const subject = subjectOf(command);
    if (subject !== undefined) {
      const decided = { index: leases.index, term: this.term, outcome };
      const known = this.#calls.decided.get(subject);
      if (known === undefined) this.#calls.decided.set(subject, [decided]);
      else known.push(decided);
    }
    this.clock.applied(leases, command, (id) => this.#calls.firstSeen.get(id) ?? nowMs, nowMs);
    const here = [...this.#calls.all()].filter((call) => this.#isHere(call));
    this.waits.applied(leases, command, here, (id) => this.#calls.taken.get(`acquire ${id}`) ?? 0, at);
    this.coolDowns.follow(leases, nowMs);
  }

  /** A call came that this leader serves. */
  came(call: OpenCall): void {
    this.waits.came(call);
  }

  /** An entry that this leader appended by itself at `index`: a call asked for it, or its clock did. */
  proposed(command: Command, index: number, leases: LeaseModel, moment: Moment, holdMs: number): void {
    const subject = subjectOf(command);
    const { step, nowMs } = moment;
    this.waits.proposed(command, index, leases, moment, this.#fail);
    if (command.type === 'endCoolDown') this.coolDowns.proposed(command, index, nowMs, this.#fail);
    if (subject === undefined) {
      this.clock.proposed(command, index, step, leases, nowMs, holdMs, this.#fail);
      return;
    }
    for (const call of this.#calls.all()) if (asksFor(call, command, subject)) return;
    this.#fail(`proposes a ${subject}, which nobody asked for`);
  }

  /** The step is over. */
  settle(leases: LeaseModel, moment: Moment): void {
    const { step, nowMs, ticked, handover } = moment;
    if (handover) this.clock.handoverAt = nowMs;
    this.clock.checkOverdue(step, nowMs, ticked, this.#fail);
    this.waits.settle(leases, moment, this.#fail);
    this.coolDowns.checkOverdue(step, nowMs, this.clock.handoverAt, ticked, this.#fail);
  }

  /** Requests of which some acquire is here, or was in the step under way. */
  called(): Set<string> {
    const ids = new Set<string>();
    for (const each of this.#calls.all()) {
      if (each.call.type === 'acquire' && this.#isHere(each)) ids.add(each.call.requestId);
    }
    return ids;
  }

  #isHere({ from, forwardedTo, meantFor }: OpenCall): boolean {
    return from === '' ? forwardedTo === undefined : meantFor === this.term;
  }
}
