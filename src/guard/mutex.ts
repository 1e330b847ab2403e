/** Runs one piece of work after another. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` when all that came before has ended, well or not. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
