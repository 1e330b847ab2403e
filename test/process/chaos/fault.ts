import { nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import type { Stage } from './stage.js';

/** The longest TTL that clients ask for, in milliseconds. */
export const LONGEST_TTL_MS = 4_000;

/** What a fault does its work with. */
export interface FaultPorts {
  readonly stage: Stage;
  readonly random: Random;
  /** Waits for a time between the two, in milliseconds; for no longer than the run's faults last. */
  readonly pause: (lowMs: number, highMs: number) => Promise<void>;
}

/** Something that is done to the run, and undone. */
export interface Fault {
  readonly name: string;
  /** Ends when everything is as before. False: there was no occasion, and nothing was done. */
  readonly strike: (ports: FaultPorts) => Promise<boolean>;
}

/** One of `items`. */
export function pick<T>(random: Random, items: readonly T[]): T {
  const item = items[nextInt(random, 0, items.length - 1)];
  if (item === undefined) throw new Error('nothing to choose from');
  return item;
}

/** `count` of `items`. */
export function pickSome<T>(random: Random, items: readonly T[], count: number): T[] {
  const left = [...items];
  return Array.from({ length: count }, () => {
    const item = pick(random, left);
    left.splice(left.indexOf(item), 1);
    return item;
  });
}
