/**
 * A small seeded generator (splitmix32). Its whole state is one number, so it can be part of a pure state, and equal
 * seeds give equal runs. Not for secrets.
 */
export interface Random {
  state: number;
}

/** A generator whose stream is fixed by `seed` (32 bits are used). */
export function createRandom(seed: number): Random {
  return { state: seed >>> 0 };
}

/** The next 32 bits, as an unsigned integer. */
export function nextUint32(random: Random): number {
  random.state = (random.state + 0x9e3779b9) >>> 0;
  let z = random.state;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return (z ^ (z >>> 15)) >>> 0;
}

/** A uniform integer from `low` to `high`, both included. */
export function nextInt(random: Random, low: number, high: number): number {
  return low + Math.floor((nextUint32(random) / 2 ** 32) * (high - low + 1));
}
