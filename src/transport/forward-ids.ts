/**
 * The numbers under which calls are forwarded to one peer: a new one for each attempt. A call that is passed to a peer a
 * second time, over a new stream or the same, is another call there, and the result of the first attempt can never be
 * taken for that of the second, which has its effect later. Nor can that of a call of an earlier process of this node: the
 * numbers of a process begin where its boot id says.
 */
import type { BootId } from '../base/ids.js';
import type { CallId } from '../replica/types.js';

/** See the head of the file. */
export class ForwardIds {
  readonly #wire = new Map<CallId, number>();
  readonly #calls = new Map<number, CallId>();
  #last: number;

  constructor(boot: BootId) {
    // Below 2^52 for any number of calls.
    this.#last = Number.parseInt(boot.slice(0, 8), 16) * 2 ** 19;
  }

  /** The number of a new attempt of `call`; an earlier one counts no more. */
  issue(call: CallId): number {
    this.take(call);
    this.#last++;
    this.#wire.set(call, this.#last);
    this.#calls.set(this.#last, call);
    return this.#last;
  }

  /** Ends the attempt of `call` and returns its number; undefined when there is none. */
  take(call: CallId): number | undefined {
    const wire = this.#wire.get(call);
    if (wire === undefined) return undefined;
    this.#wire.delete(call);
    this.#calls.delete(wire);
    return wire;
  }

  /** Ends the attempt with this number and returns its call; undefined when it counts no more. */
  returned(wire: number): CallId | undefined {
    const call = this.#calls.get(wire);
    if (call !== undefined) this.take(call);
    return call;
  }

  /** The way to the peer broke: no attempt counts any more. */
  clear(): void {
    this.#wire.clear();
    this.#calls.clear();
  }
}
