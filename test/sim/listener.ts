/** A process's client listener: the calls and the watches that it has taken, each of which is told when the process ends. */
import type { Header } from '../../src/base/api.js';
import type { ClientPort, WatchPort } from '../../src/replica/ports.js';
import type { CallId, CallResult, Event, WatchId } from '../../src/replica/types.js';
import { WatchTable } from '../../src/server/watch-table.js';
import type { Server } from './ports.js';

/** A client's call that the process has not answered. */
interface Pending {
  readonly done: (header: Header, result: CallResult) => void;
  readonly lost: () => void;
}

/** See the head of the file. One for each process, from the start of its replica on. */
export class Listener implements ClientPort {
  readonly #dispatch: (event: Event) => void;
  readonly #calls = new Map<CallId, Pending>();
  readonly #table = new WatchTable();
  /** By watch: tells its client that the process is gone. */
  readonly #lost = new Map<WatchId, () => void>();
  #last = 0;

  /** `dispatch` does nothing once the process is gone. */
  constructor(dispatch: (event: Event) => void) {
    this.#dispatch = dispatch;
    this.#table.attach(dispatch);
  }

  /** Where the replica's news of watches go. */
  get watchers(): WatchPort {
    return this.#table;
  }

  /** How many streams of watches are open. */
  get watched(): number {
    return this.#table.size;
  }

  /** As {@link Server.call}. */
  readonly call: Server['call'] = (principal, timeoutMs, call, done, lost) => {
    const id = ++this.#last;
    this.#calls.set(id, { done, lost });
    this.#dispatch({ type: 'call', id, principal, timeoutMs, call });
    return () => {
      if (this.#calls.delete(id)) this.#dispatch({ type: 'cancel', id });
    };
  };

  answer(id: CallId, header: Header, result: CallResult): void {
    const pending = this.#calls.get(id);
    this.#calls.delete(id);
    pending?.done(header, result);
  }

  /** As {@link Server.watch}. */
  readonly watch: Server['watch'] = (principal, call, sink, lost) => {
    const id = this.#table.open(principal, call, sink);
    this.#lost.set(id, lost);
    return () => {
      if (this.#lost.delete(id)) this.#table.close(id);
    };
  };

  /** The process is gone. */
  end(): void {
    const all = [...[...this.#calls.values()].map(({ lost }) => lost), ...this.#lost.values()];
    this.#calls.clear();
    this.#lost.clear();
    for (const lost of all) lost();
  }
}
