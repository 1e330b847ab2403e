/** Operations that a database gave up because of others at the same time are run again. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Outcome } from './types.js';

/** What one attempt came to: `again` may be tried anew at once, unless it is the `last`. */
export type Attempt<T> = Outcome<T> | { readonly status: 'again'; readonly cause: unknown; readonly last: boolean };

const ATTEMPTS = 5;
/** The longest pause before the second attempt, in milliseconds; it doubles with each. */
const PAUSE_MS = 10;

/** Attempts until one has an outcome; a bounded number of times. */
export async function repeated<T>(attempt: () => Promise<Attempt<T>>): Promise<Outcome<T>> {
  for (let attempts = 1; ; attempts++) {
    const done = await attempt();
    if (done.status !== 'again') return done;
    if (done.last || attempts === ATTEMPTS) return { status: 'retry', attempts, cause: done.cause };
    await sleep(Math.random() * PAUSE_MS * 2 ** (attempts - 1));
  }
}
