/**
 * The messages of one watch, one at a time, for whoever waits for the next. While nobody waits the stream is paused, so what
 * an observer has not taken stays at the server, within its bounds.
 */
import type { Revision } from '../base/revision.js';
import type { WatchCall } from '../base/watch.js';
import type { ReadWatchMessage } from '../wire/public-watch.js';
import { errorOf, UnexpectedAnswerError, UnreachableError } from './errors.js';
import type { FencepostError } from './errors.js';
import type { Surroundings } from './surroundings.js';
import type { OpenedWatch, OpenWatch, WatchEnd } from './watch-channel.js';

/** Why a watch gives no further message. */
export type Ending =
  | { readonly type: 'failed'; readonly error: FencepostError }
  | { readonly type: 'compacted'; readonly oldest: Revision }
  /** The caller's signal, or the client was closed. */
  | { readonly type: 'aborted' };

/** What the next message is, or why there is none. */
export type Next = { readonly type: 'message'; readonly message: ReadWatchMessage } | Ending;

/** A node says something every ten seconds; one that is silent for so long has gone without a word. */
const SILENCE_MS = 15_000;

/** See the head of the file. */
export class WatchReader {
  readonly #ports: { readonly surroundings: Surroundings; readonly closed: AbortSignal };
  readonly #endpoint: string;
  readonly #signals: readonly AbortSignal[];
  readonly #queue: ReadWatchMessage[] = [];
  readonly #watch: OpenedWatch;
  #ending: Ending | undefined;
  #waiting: ((next: Next) => void) | undefined;

  constructor(
    ports: { readonly open: OpenWatch; readonly surroundings: Surroundings; readonly closed: AbortSignal },
    endpoint: string,
    call: WatchCall,
    signal: AbortSignal | undefined,
  ) {
    this.#ports = ports;
    this.#endpoint = endpoint;
    this.#signals = signal === undefined ? [ports.closed] : [ports.closed, signal];
    this.#watch = ports.open(endpoint, call, {
      message: (message) => {
        if (this.#waiting === undefined) {
          this.#queue.push(message);
          this.#watch.pause();
        } else this.#tell({ type: 'message', message });
      },
      end: (end) => {
        this.#end({ type: 'failed', error: errorFor(end, endpoint) });
      },
    });
    for (const each of this.#signals) each.addEventListener('abort', this.#abort, { once: true });
    if (this.#signals.some(({ aborted }) => aborted)) this.#abort();
  }

  /** The next message, once it is there. What came before an end is told before it. */
  next(): Promise<Next> {
    const message = this.#queue.shift();
    if (this.#ending?.type === 'aborted') return Promise.resolve(this.#ending);
    if (message !== undefined) return Promise.resolve({ type: 'message', message });
    if (this.#ending !== undefined) return Promise.resolve(this.#ending);
    return new Promise((resolve) => {
      const cancel = this.#ports.surroundings.timers.set(SILENCE_MS, () => {
        const message = `${this.#endpoint}: nothing was heard for ${SILENCE_MS} ms`;
        this.#end({ type: 'failed', error: new UnreachableError(message, { outcome: 'not-done' }) });
      });
      this.#waiting = (next) => {
        cancel();
        resolve(next);
      };
      this.#watch.resume();
    });
  }

  /** Ends the watch. */
  close(): void {
    for (const each of this.#signals) each.removeEventListener('abort', this.#abort);
    this.#watch.close();
  }

  readonly #abort = (): void => {
    this.#end({ type: 'aborted' });
  };

  #end(ending: Ending): void {
    this.#ending ??= ending;
    if (ending.type === 'aborted') this.#ending = ending;
    this.#tell(this.#ending);
  }

  #tell(next: Next): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(next);
  }
}

function errorFor(end: WatchEnd, endpoint: string): FencepostError {
  const notDone = { outcome: 'not-done' } as const;
  switch (end.type) {
    case 'failure':
      return errorOf(end.failure, endpoint);
    case 'silent':
      return new UnreachableError(`${endpoint}: ${end.why}`, notDone);
    case 'foreign':
      return new UnexpectedAnswerError(`${endpoint}: ${end.why}.`, notDone);
    case 'ended':
      return new UnreachableError(`${endpoint}: the watch was ended without a reason`, notDone);
  }
}
