/**
 * True time of a simulated run: everything that happens is a task of it, so one seed fixes the order of all. No simulated
 * process can read it.
 */
import { VirtualTime } from '../support/virtual-time.js';

/** See the head of the file. Whoever runs the tasks lets promises settle between two of them. */
export class Scheduler extends VirtualTime {
  /** What follows from the task that runs, at once. */
  #following: (() => void)[] = [];
  #running = false;

  /** Runs `run` right behind the task under way, before any other; between tasks, as a task of its own. */
  soon(run: () => void): void {
    if (this.#running) this.#following.push(run);
    else this.after(0, run);
  }

  override runNext(end: number): boolean {
    this.#running = true;
    const ran = super.runNext(end);
    if (this.#following.length > 0) {
      // It grows while it is run.
      for (const run of this.#following) run();
      this.#following = [];
    }
    this.#running = false;
    return ran;
  }
}
