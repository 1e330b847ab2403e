/** Waiting on the client's own timers. */
import type { Timers } from './surroundings.js';

/** Resolves after `delayMs`, or at once when the signal aborts or has aborted; says nothing of which it was. */
export function pause(timers: Timers, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve();
      return;
    }
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = timers.set(delayMs, end);
    signal?.addEventListener('abort', end, { once: true });
  });
}
