/** The one committed log of an incarnation, as all members that applied it showed it, and the state at each of its indexes. */
import type { Command } from '../../../src/lease/commands.js';
import type { Entry } from '../../../src/raft/types.js';
import { LeaseModel } from './lease-model.js';
import type { Outcome } from './lease-model.js';
import { sameEntry } from './log.js';

/** Copies of the state are kept so many entries apart. */
const EVERY = 64;

interface Recorded {
  readonly entry: Entry;
  readonly command: Command | undefined;
}

/** Told of each entry once, in order, of the state that it made and of what it came to; a no-op and a configuration are no command. */
export type Decided = (command: Command | undefined, state: LeaseModel, outcome: Outcome) => void;

/** See the head of the file. */
export class LeaseHistory {
  readonly #entries = new Map<number, Recorded>();
  readonly #states = new Map<number, LeaseModel>();
  readonly #frontier: LeaseModel;
  readonly #first: number;
  readonly #decided: Decided;

  /** Begins with the state at the start of the history. */
  constructor(state: LeaseModel, decided: Decided) {
    this.#decided = decided;
    this.#first = state.index;
    this.#frontier = state;
    this.#states.set(state.index, state.copy());
  }

  /** A member applies `entry`: what it says. Every member applies the same (state machine safety). */
  applied(entry: Entry, decode: (payload: Uint8Array) => Command, fail: (text: string) => void): Command | undefined {
    const known = this.#entries.get(entry.index);
    if (known !== undefined) {
      if (!sameEntry(known.entry, entry)) {
        fail(
          `applies entry ${entry.index} of term ${entry.term}; another member applied one of term ${known.entry.term}`,
        );
      }
      return known.command;
    }
    const command = entry.kind === 'command' ? decode(entry.payload) : undefined;
    this.#entries.set(entry.index, { entry, command });
    const frontier = this.#frontier;
    for (let next = this.#entries.get(frontier.index + 1); next !== undefined;) {
      const outcome = frontier.apply(next.entry.term, next.command);
      this.#decided(next.command, frontier, outcome);
      if (frontier.index % EVERY === 0) this.#states.set(frontier.index, frontier.copy());
      next = this.#entries.get(frontier.index + 1);
    }
    return command;
  }

  /** The state at `index`, built from the log; undefined where some of the log was never seen. */
  stateAt(index: number): LeaseModel | undefined {
    if (index < this.#first || index > this.#frontier.index) return undefined;
    let from = index - (index % EVERY);
    while (!this.#states.has(from) && from > this.#first) from -= EVERY;
    const state = (this.#states.get(from) ?? this.#states.get(this.#first))?.copy();
    if (state === undefined) return undefined;
    while (state.index < index) {
      const next = this.#entries.get(state.index + 1);
      if (next === undefined) return undefined;
      state.apply(next.entry.term, next.command);
    }
    state.touched.clear();
    state.touchedIds.clear();
    state.touchedNames.clear();
    return state;
  }
}
