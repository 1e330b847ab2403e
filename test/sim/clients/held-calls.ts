/** The acquires that a {@link SingleCopy} holds, by whom they are for, and the time that each may wait. */
import type { AcquireCall } from '../../../src/base/api.js';
import type { RequestId } from '../../../src/base/ids.js';
import type { CallResult } from '../../../src/replica/types.js';
import type { Scheduler } from '../scheduler.js';

/** Whoever nobody calls for during this leaves the queue, in milliseconds. */
const GRACE_MS = 1_000;

type Respond = (result: CallResult) => void;

interface Waiting {
  readonly calls: Set<Respond>;
  silentSince: number;
}

/** See the head of the file. */
export class HeldCalls {
  readonly #scheduler: Scheduler;
  readonly #endWait: (requestId: RequestId) => void;
  readonly #waiting = new Map<RequestId, Waiting>();

  /** `endWait`: nobody calls for it any more, or its wait is over. */
  constructor(scheduler: Scheduler, endWait: (requestId: RequestId) => void) {
    this.#scheduler = scheduler;
    this.#endWait = endWait;
  }

  /** True when a call for it is held. */
  has(requestId: RequestId): boolean {
    return (this.#waiting.get(requestId)?.calls.size ?? 0) > 0;
  }

  /** Holds a call for `holdMs`; then it is answered by what `queued` says. */
  hold({ requestId, waitMs }: AcquireCall, holdMs: number, respond: Respond, queued: () => CallResult): void {
    let waiting = this.#waiting.get(requestId);
    if (waiting === undefined) {
      this.#waiting.set(requestId, (waiting = { calls: new Set(), silentSince: 0 }));
      this.#scheduler.after(waitMs, () => {
        if (this.#waiting.has(requestId)) this.#endWait(requestId);
      });
    }
    waiting.calls.add(respond);
    this.#scheduler.after(holdMs, () => {
      if (this.#waiting.get(requestId)?.calls.has(respond) !== true) return;
      this.drop(respond);
      respond(queued());
    });
  }

  /** Its client has gone, or it is answered. */
  drop(respond: Respond): void {
    for (const [requestId, waiting] of this.#waiting) {
      if (!waiting.calls.delete(respond) || waiting.calls.size > 0) continue;
      const { now } = this.#scheduler;
      waiting.silentSince = now;
      this.#scheduler.after(GRACE_MS, () => {
        const still = this.#waiting.get(requestId);
        if (still === waiting && still.calls.size === 0 && still.silentSince === now) this.#endWait(requestId);
      });
    }
  }

  /** It waits no more: all its calls are answered so. */
  answer(requestId: RequestId, result: () => CallResult): void {
    const calls = this.#waiting.get(requestId)?.calls ?? [];
    this.#waiting.delete(requestId);
    for (const respond of calls) respond(result());
  }
}
