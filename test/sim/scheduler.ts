/**
 * True time of a simulated run: everything that happens is a task of it, so one seed fixes the order of all. No simulated
 * process can read it.
 */
import { VirtualTime } from '../support/virtual-time.js';

/** See the head of the file. Whoever runs the tasks lets promises settle between two of them. */
export class Scheduler extends VirtualTime {
  /** What follows from the task that runs, at once; undefined between tasks. */
  #following: (() => void)[] | undefined;

  /** Runs `run` right behind the task under way, before any other; between tasks, as a task of its own. */
  soon(run: () => void): void {
    if (this.#following === undefined) this.after(0, run);
    else this.#following.push(run);
  }

  override runNext(end: number): boolean {
    const following: (() => void)[] = [];
    this.#following = following;
    const ran = super.runNext(end);
    // It grows while it is run.
    for (const run of following) run();
    this.#following = undefined;
    return ran;
  }
}
