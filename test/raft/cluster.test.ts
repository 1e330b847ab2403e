import { describe, expect, it } from 'vitest';
import { Cluster } from './cluster.js';
import type { Coverage } from './cluster.js';

/** Runs a seed; whatever goes wrong names it. */
function run(size: number, seed: number, hashed = false): Cluster {
  const cluster = new Cluster(size, seed, hashed);
  try {
    cluster.disturb(1_500);
    cluster.recover();
    cluster.disturb(500);
    cluster.recover();
  } catch (error) {
    throw new Error(`${size} members, seed ${seed}: ${String(error)}`, { cause: error });
  }
  return cluster;
}

function runAll(size: number, seeds: number): Coverage {
  const sum: Coverage = { leaders: 0, commits: 0, crashes: 0, cuts: 0, installs: 0, confirmed: 0, handovers: 0 };
  for (let seed = 1; seed <= seeds; seed++) {
    const { coverage } = run(size, seed);
    for (const name of Object.keys(sum) as (keyof Coverage)[]) sum[name] += coverage[name];
  }
  return sum;
}

describe('a cluster under lost, doubled and reordered messages and crashes', () => {
  it.each([
    [1, 20],
    [3, 100],
    [5, 60],
  ])(
    'of %i members keeps every rule and recovers',
    (size, seeds) => {
      const met = runAll(size, seeds);
      // Each kind of event at least as often as there were seeds: a run that meets nothing proves nothing.
      for (const [name, times] of Object.entries(met)) {
        const alone = size === 1 && ['installs', 'handovers'].includes(name);
        expect(times, name).toBeGreaterThanOrEqual(alone ? 0 : seeds);
      }
    },
    120_000,
  );

  it('gives equal runs for equal seeds', () => {
    const [one, other] = [run(3, 7, true), run(3, 7, true)];
    expect(one.hashes).toEqual(other.hashes);
    expect(run(3, 8, true).hashes).not.toEqual(one.hashes);
  });
});
