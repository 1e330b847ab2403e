/** The one timer that drives a replica. */
import type { Event } from '../replica/types.js';

/** A tick that is later than this comes from a loop that was busy, or a process that was stopped. */
const LATE_MS = 50;

/**
 * Dispatches a tick every `everyMs`; returns what stops it. A late one first gives the loop a poll phase, so that a
 * heartbeat which has been waiting in the socket is read before anybody campaigns (measured: a timer that is due runs
 * before waiting input).
 */
export function startTicker(everyMs: number, now: () => number, dispatch: (event: Event) => void): () => void {
  let last = now();
  const timer = setInterval(() => {
    const late = now() - last > everyMs + LATE_MS;
    last = now();
    if (late) setImmediate(dispatch, { type: 'tick' });
    else dispatch({ type: 'tick' });
  }, everyMs);
  return () => {
    clearInterval(timer);
  };
}
