/** Waits for a moment of a run: faults that must meet what is rare come when it happens, not by the clock. */
import type { Step } from './observation.js';
import type { Scheduler } from './scheduler.js';

interface Awaited {
  readonly until: number;
  readonly test: (step: Step) => boolean;
  readonly act: () => void;
}

/** See the head of the file. One for each run. */
export class Moments {
  readonly #scheduler: Scheduler;
  readonly #awaited = new Set<Awaited>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /**
   * Calls `act` once, right behind the first step within `ms` that passes `test`: when its effects are under way. Never
   * when there is none.
   */
  when(ms: number, test: (step: Step) => boolean, act: () => void): void {
    this.#awaited.add({ until: this.#scheduler.now + ms, test, act });
  }

  /** Nobody waits any more. */
  clear(): void {
    this.#awaited.clear();
  }

  /** A member has made a step. */
  stepped(step: Step): void {
    for (const awaited of this.#awaited) {
      if (step.at > awaited.until) this.#awaited.delete(awaited);
      else if (awaited.test(step)) this.#meet(awaited);
    }
  }

  #meet(awaited: Awaited): void {
    this.#awaited.delete(awaited);
    this.#scheduler.soon(awaited.act);
  }
}
