/** Counts the writing operations that begin on a disk, so that a machine may lose power at a certain one. */
import type { Scheduler } from '../scheduler.js';

/** See the head of the file. It outlives processes, as the disk does. */
export class Countdown {
  readonly #scheduler: Scheduler;
  #left = 0;
  #run: (() => void) | undefined;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Runs `run` once the `count`th operation from now has begun and not ended; takes the place of what was asked before. */
  set(count: number, run: () => void): void {
    this.#left = count;
    this.#run = run;
  }

  /** Forgets what was asked. */
  clear(): void {
    this.#run = undefined;
  }

  /** An operation begins. */
  began(): void {
    const run = this.#run;
    if (run === undefined || --this.#left > 0) return;
    this.#run = undefined;
    // A task of its own: whoever began the operation goes on first. No operation takes as little as no time.
    this.#scheduler.after(0, run);
  }
}
