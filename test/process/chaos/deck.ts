import { nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';

/** Deals items in a random order, each once before any comes again. */
export class Deck<T> {
  readonly #items: readonly T[];
  readonly #random: Random;
  #left: T[] = [];

  constructor(items: readonly T[], random: Random) {
    this.#items = items;
    this.#random = random;
  }

  next(): T {
    if (this.#left.length === 0) this.#left = [...this.#items];
    const [item] = this.#left.splice(nextInt(this.#random, 0, this.#left.length - 1), 1);
    if (item === undefined) throw new Error('an empty deck');
    return item;
  }
}
