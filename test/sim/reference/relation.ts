/**
 * The reference relation: a slow, plain statement of what a member may do, held against every step of a run. It shares
 * no logic with the product: from events and effects it rebuilds what the core, the lease tables and the leader's clock
 * must be (`raft-*.ts`, `lease-*.ts`, `leader-clock.ts`), and compares. What chance decides (an election time-out) and
 * what a leader is free to do (when to propose) is read from the member and must lie within bounds.
 */
import type { Context } from '../../../src/replica/state.js';
import type { Loaded } from '../../../src/replica/types.js';
import type { Observer, Process, Report, Step } from '../observation.js';
import { LeaseHistory } from './lease-history.js';
import type { Decided } from './lease-history.js';
import { stateOnDisk } from './lease-model.js';
import { Watched } from './watched.js';

/** As {@link Decided}, of every history. */
export type DecidedIn = (...of: [...Parameters<Decided>, incarnation: string]) => void;

/** See the head of the file. Reports the first fault only: what follows from a broken state says nothing. */
export class Relation implements Observer {
  readonly #report: Report;
  readonly #decided: DecidedIn;
  readonly #running = new Map<number, Watched>();
  readonly #histories = new Map<string, LeaseHistory>();
  #failed = false;

  constructor(report: Report, decided: DecidedIn = () => undefined) {
    this.#report = report;
    this.#decided = decided;
  }

  started(process: Process, loaded: Loaded, context: Readonly<Context>): void {
    if (this.#failed) return;
    const { incarnation } = process.genesis;
    let history = this.#histories.get(incarnation);
    if (history === undefined) {
      history = new LeaseHistory(stateOnDisk(loaded), (command, state, outcome) => {
        this.#decided(command, state, outcome, incarnation);
      });
      this.#histories.set(incarnation, history);
    }
    const fail = (text: string): void => {
      this.#fault(`${process.member.node} ${text}`);
    };
    this.#running.set(process.run, new Watched(process, loaded, context, history, fail));
  }

  stepped(step: Step): void {
    if (!this.#failed) this.#running.get(step.process.run)?.stepped(step);
  }

  ended(process: Process): void {
    this.#running.delete(process.run);
  }

  #fault(text: string): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#report({ code: 'REL', text });
  }
}

/** The relation as a judge of one run. */
export function createReference(report: Report, decided: DecidedIn): Observer {
  return new Relation(report, decided);
}
