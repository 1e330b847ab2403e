/**
 * The safe deadline: how long a client may act as holder (rule 1 in `lease.proto`; contract 3). The server ends a lease
 * at TTL + 1 % + 100 ms after the call arrived; the client stops TTL − 1 % − max(50 ms, 2 %) after it *sent* that call.
 */
import { CLOCK_DRIFT } from '../base/limits.js';
import { elapsedMs } from './clock.js';
import type { Moment } from './clock.js';

/** The least margin, in milliseconds: what the holder's own code needs between its look at the clocks and its act. */
const MIN_MARGIN_MS = 50;
/** The margin as a fraction of the TTL. */
const MARGIN = 0.02;

/** How long one confirmed call carries a lease of this TTL, in milliseconds from before the call was sent. */
export function safeMs(ttlMs: number): number {
  return ttlMs - ttlMs * CLOCK_DRIFT - Math.max(MIN_MARGIN_MS, ttlMs * MARGIN);
}

/**
 * Milliseconds left until the safe deadline of a lease whose last confirmed call was sent at `sentAt`; not positive
 * when it has passed. `sentAt` belongs to the call that was *answered*: the server's `granted` and `live` are
 * confirmed anew for each call (design 8), an earlier send of the same request gives nothing more.
 */
export function leftMs(sentAt: Moment, ttlMs: number, now: Moment): number {
  return safeMs(ttlMs) - elapsedMs(sentAt, now);
}
