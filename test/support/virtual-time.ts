/** Tasks in the order of virtual time; tasks of one moment in the order in which they were given. */

interface Task {
  readonly at: number;
  readonly order: number;
  /** Undefined once it was cancelled. */
  run: (() => void) | undefined;
}

/** A clock that moves only when its next task is run. Milliseconds. */
export class VirtualTime {
  now = 0;
  /** Tasks that were run. */
  count = 0;
  #order = 0;
  /** A binary heap. */
  readonly #queue: Task[] = [];

  /** Runs `run` when `ms` have passed, unless the function that it returns was called before. */
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

  /** Runs the next task and moves the clock to it; false, with the clock at `end`, when there is none until then. */
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
      next.run();
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
