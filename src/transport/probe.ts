/** One plain TCP connect: is anybody listening at a peer's address? Condition 2 of `peerDown` (design 5, S1). */
import { connect } from 'node:net';
import { placeOf } from './address.js';

/** After this long without an answer a probe counts as `other`, in milliseconds. */
const PROBE_TIMEOUT_MS = 300;

/** A probe under way. */
export interface Probe {
  /** Ends it; `done` is not called any more. */
  cancel(): void;
}

/**
 * Connects to `address`, beginning now, and tells `done` once. Only ECONNREFUSED of every address that the name stands
 * for is `refused`: a time-out, a reset, a failed look-up and an accepted connection say nothing about the process.
 */
export function probe(address: string, done: (outcome: 'refused' | 'other') => void): Probe {
  const socket = connect(placeOf(address));
  let over = false;
  const finish = (outcome: 'refused' | 'other' | undefined): void => {
    if (over) return;
    over = true;
    clearTimeout(timer);
    socket.destroy();
    if (outcome !== undefined) done(outcome);
  };
  const timer = setTimeout(() => {
    finish('other');
  }, PROBE_TIMEOUT_MS);
  socket.on('connect', () => {
    finish('other');
  });
  // Stays attached after the end: destroying a socket that is connecting may still report an error.
  socket.on('error', (error) => {
    finish(isRefusal(error) ? 'refused' : 'other');
  });
  return {
    cancel: () => {
      finish(undefined);
    },
  };
}

function isRefusal(error: Error & { code?: string }): boolean {
  // A name with several addresses fails with one error for each.
  if (error instanceof AggregateError)
    return error.errors.length > 0 && error.errors.every((each: unknown) => each instanceof Error && isRefusal(each));
  return error.code === 'ECONNREFUSED';
}
