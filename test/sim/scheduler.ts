/**
 * True time of a simulated run: everything that happens is a task of this heap, so one seed fixes the order of all.
 * Tasks of one moment run in the order in which they were given.
 */

interface Task {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/** A clock that moves only when its next task is run. Milliseconds since the start of the run, with a fraction. */
export class Scheduler {
  /** True time, which no simulated process can read. */
  now = 0;
  /** Tasks that were run. */
  count = 0;
  #order = 0;
  /** What follows from the task that runs, at once; undefined between tasks. */
  #following: (() => void)[] | undefined;
  /** A binary heap. */
  readonly #queue: Task[] = [];

  /** Runs `run` when `ms` of true time have passed, unless the function that it returns was called before. */
  after(ms: number, run: () => void): () => void {
    const task: Task = { at: this.now + Math.max(0, ms), order: this.#order++, run };
    const queue = this.#queue;
    let place = queue.length;
    queue.push(task);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = queue[parent];
      if (above === undefined || !isLater(above, task)) break;
      queue[place] = above;
      place = parent;
    }
    queue[place] = task;
    return () => {
      task.run = undefined;
    };
  }

  /** Runs `run` right behind the task under way, before any other; between tasks, as a task of its own. */
  soon(run: () => void): void {
    if (this.#following === undefined) this.after(0, run);
    else this.#following.push(run);
  }

  /**
   * Runs the next task and moves the clock to it; false, with the clock at `end`, when there is none until then. Whoever
   * calls lets promises settle before the next one.
   */
  runNext(end: number): boolean {
    for (;;) {
      const next = this.#queue[0];
      if (next === undefined || next.at > end) {
        this.now = Math.max(this.now, end);
        return false;
      }
      this.#removeFirst();
      if (next.run === undefined) continue;
      this.now = next.at;
      this.count++;
      const following: (() => void)[] = [];
      this.#following = following;
      next.run();
      // It grows while it is run.
      for (const run of following) run();
      this.#following = undefined;
      return true;
    }
  }

  #removeFirst(): void {
    const queue = this.#queue;
    const last = queue.pop();
    if (last === undefined || queue.length === 0) return;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      const left = queue[child];
      if (left === undefined) break;
      const right = queue[child + 1];
      if (right !== undefined && isLater(left, right)) child++;
      const smaller = queue[child];
      if (smaller === undefined || !isLater(last, smaller)) break;
      queue[place] = smaller;
      place = child;
    }
    queue[place] = last;
  }
}

function isLater(left: Task, right: Task): boolean {
  return left.at > right.at || (left.at === right.at && left.order > right.order);
}
