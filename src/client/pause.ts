/** Waiting on the client's own timers. */
import type { Timers } from './surroundings.js';

/** Resolves after `delayMs`, or at once when a signal aborts or has aborted; says nothing of which it was. */
export function pause(
  timers: Timers,
  delayMs: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some((signal) => signal?.aborted === true)) {
      resolve();
      return;
    }
    const end = (): void => {
      cancel();
      for (const signal of signals) signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = timers.set(delayMs, end);
    for (const signal of signals) signal?.addEventListener('abort', end, { once: true });
  });
}
