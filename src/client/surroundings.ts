/** What the client needs from its surroundings besides the network; tests and the simulator give their own. */
import { randomUUID } from 'node:crypto';
import { parseRequestId } from '../base/ids.js';
import type { RequestId } from '../base/ids.js';
import { assert } from '../base/assert.js';
import { systemClocks } from './clock.js';
import type { Clocks } from './clock.js';

/** Wakes up later. A timer is never the source of a deadline, only a reason to look at the clocks. */
export interface Timers {
  /** Calls `fire` once after `delayMs`, unless the function that it returns was called before. */
  set(delayMs: number, fire: () => void): () => void;
}

/** Everything that is not a function of the input. */
export interface Surroundings {
  readonly clocks: Clocks;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  random(): number;
  /** Never the same twice, in no two processes: a request id is one attempt of one process to own. */
  newRequestId(): RequestId;
}

/** Longer delays make Node fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** The surroundings of this process. */
export function systemSurroundings(): Surroundings {
  return {
    clocks: systemClocks(),
    timers: {
      set(delayMs, fire) {
        const timer = setTimeout(fire, Math.min(Math.max(0, delayMs), MAX_DELAY_MS));
        return () => {
          clearTimeout(timer);
        };
      },
    },
    random: Math.random,
    newRequestId() {
      const id = parseRequestId(randomUUID());
      assert(id !== undefined, 'randomUUID() gave no UUID');
      return id;
    },
  };
}
