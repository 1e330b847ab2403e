/** The open watches of this node's clients: each is numbered, fed by the replica, and closed once. */
import { assert } from '../base/assert.js';
import type { Failure } from '../base/errors.js';
import type { WatchCall } from '../base/watch.js';
import type { WatchPort, WatchEffect } from '../replica/ports.js';
import type { Event, Principal, WatchId } from '../replica/types.js';
import type { WatchMessage } from '../wire/public-watch.js';

/** Where the messages of one watch go. Neither throws. */
export interface WatchSink {
  /** Sends a message and calls `sent` once it has left this process. */
  send(message: WatchMessage, sent: () => void): void;
  /** Ends the stream, behind what was sent: well, or with a failure. */
  end(failure: Failure | undefined): void;
}

/** See the head of the file. */
export class WatchTable implements WatchPort {
  readonly #open = new Map<WatchId, WatchSink>();
  #dispatch: ((event: Event) => void) | undefined;
  #last = 0;

  /** The replica runs: watches are handed to it from here on. */
  attach(dispatch: (event: Event) => void): void {
    assert(this.#dispatch === undefined, 'a watch table serves one replica');
    this.#dispatch = dispatch;
  }

  /** False until a replica is attached. */
  get attached(): boolean {
    return this.#dispatch !== undefined;
  }

  /** How many streams are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Opens a watch. Whoever calls says {@link close} when its stream is closed, however that came. */
  open(principal: Principal, call: WatchCall, sink: WatchSink): WatchId {
    assert(this.#dispatch !== undefined, 'a watch was opened before the replica runs');
    this.#last++;
    const id = this.#last;
    this.#open.set(id, sink);
    this.#dispatch({ type: 'watch', id, principal, call });
    return id;
  }

  /** The stream is closed. */
  close(id: WatchId): void {
    if (this.#open.delete(id)) this.#dispatch?.({ type: 'watchClosed', id });
  }

  perform(effect: WatchEffect): void {
    const { id } = effect;
    const sink = this.#open.get(id);
    // Its client has gone, and the replica will hear of it with its next batch.
    if (sink === undefined) return;
    if (effect.type === 'watchFailed') {
      sink.end(effect.failure);
      return;
    }
    const { header, news } = effect;
    sink.send({ header, news }, () => {
      if (this.#open.has(id)) this.#dispatch?.({ type: 'watchReady', id });
    });
    if (news.type === 'compacted') sink.end(undefined);
  }
}
