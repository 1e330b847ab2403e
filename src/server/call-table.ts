/** The open calls of this node's clients: each is answered once, or cancelled by its client. */
import type { Call, Header } from '../base/api.js';
import { assert } from '../base/assert.js';
import type { ClientPort } from '../replica/ports.js';
import type { CallId, CallResult, Event, Principal } from '../replica/types.js';

/** What becomes of a call. */
export type Answered = (header: Header, result: CallResult) => void;

/** Numbers calls, hands them to the replica and brings the answers back. */
export class CallTable implements ClientPort {
  readonly #open = new Map<CallId, Answered>();
  #dispatch: ((event: Event) => void) | undefined;
  #last = 0;

  /** The replica runs: calls are handed to it from here on. */
  attach(dispatch: (event: Event) => void): void {
    assert(this.#dispatch === undefined, 'a call table serves one replica');
    this.#dispatch = dispatch;
  }

  /** False until a replica is attached. */
  get attached(): boolean {
    return this.#dispatch !== undefined;
  }

  /** How many calls wait for their answer. */
  get size(): number {
    return this.#open.size;
  }

  /** Opens a call; `answered` is called at most once, and not after {@link cancel}, nor when this throws. */
  open(principal: Principal, timeoutMs: number, call: Call, answered: Answered): CallId {
    assert(this.#dispatch !== undefined, 'a call was opened before the replica runs');
    this.#last++;
    const id = this.#last;
    this.#open.set(id, answered);
    try {
      this.#dispatch({ type: 'call', id, principal, timeoutMs, call });
    } catch (error) {
      this.#open.delete(id);
      throw error;
    }
    return id;
  }

  /** The client has gone. */
  cancel(id: CallId): void {
    if (this.#open.delete(id)) this.#dispatch?.({ type: 'cancel', id });
  }

  answer(id: CallId, header: Header, result: CallResult): void {
    const answered = this.#open.get(id);
    if (answered === undefined) return;
    this.#open.delete(id);
    answered(header, result);
  }
}
