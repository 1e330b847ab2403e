/** Draws from a seeded stream. */
import { createRandom, nextInt, nextUint32 } from '../../src/base/random.js';
import type { Random } from '../../src/base/random.js';

/** A stream of its own for one part of a run: what another part draws does not change it. */
export function stream(seed: number, part: string): Random {
  let mixed = seed ^ 0x9e3779b9;
  for (let at = 0; at < part.length; at++) mixed = Math.imul(mixed ^ part.charCodeAt(at), 0x01000193);
  const random = createRandom(mixed);
  // Neighbouring seeds must not give neighbouring streams.
  random.state = nextUint32(random) ^ nextUint32(random);
  return random;
}

/** A number from `low` to below `high`. */
export function between(random: Random, low: number, high: number): number {
  return low + (nextUint32(random) / 2 ** 32) * (high - low);
}

/** A number from `low` to `high`, small ones far more often: each doubling is as likely as any other. `low` is above 0. */
export function skewed(random: Random, low: number, high: number): number {
  return low * (high / low) ** (nextUint32(random) / 2 ** 32);
}

/** {@link skewed}, rounded to a whole number. */
export function skewedInt(random: Random, low: number, high: number): number {
  return Math.round(skewed(random, low, high));
}

/** True in `perMille` of a thousand cases. */
export function chance(random: Random, perMille: number): boolean {
  return nextInt(random, 0, 999) < perMille;
}

/** One of `items`. */
export function pick<T>(random: Random, items: readonly T[]): T {
  const item = items[nextInt(random, 0, items.length - 1)];
  if (item === undefined) throw new Error('nothing to choose from');
  return item;
}

/** One of the keys of `weights`, each as often as its weight says. */
export function weighted<K extends string | number>(random: Random, weights: readonly (readonly [K, number])[]): K {
  let left = between(
    random,
    0,
    weights.reduce((sum, [, weight]) => sum + weight, 0),
  );
  for (const [key, weight] of weights) {
    if (left < weight) return key;
    left -= weight;
  }
  throw new Error('nothing to choose from');
}

/** 32 hex digits. */
export function hexId(random: Random): string {
  return Array.from({ length: 4 }, () => nextUint32(random).toString(16).padStart(8, '0')).join('');
}
