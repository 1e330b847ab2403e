/** Clocks, latencies and disks that are the same everywhere: only what is drawn by the members tells them apart (E6). */
import type { Random } from '../../../src/base/random.js';
import { between, chance, pick, skewed } from '../chance.js';
import type { FaultKind } from '../fault-kinds.js';
import type { Parameters } from '../parameters.js';
import { sameMachines } from './alike.js';

const FAULTS = ['outage', 'transfer cut short', 'leaders in turn'] as const satisfies readonly FaultKind[];

/** `drawn` as such a run. */
export function elections(random: Random, drawn: Parameters): Parameters {
  const { replica, clients } = drawn;
  const latencyMs = skewed(random, 0.5, replica.tickMs / 4);
  const nodes = chance(random, 150) ? 5 : 3;
  const durationMs = between(random, 1.5, 2.5) * clients.ttlMs[0];
  return {
    ...drawn,
    ...sameMachines(nodes),
    network: {
      ...drawn.network,
      latencyMs: [latencyMs, latencyMs],
      spikeChance: 0,
      loss: 0,
      duplicate: 0,
      replay: 0,
      reorder: false,
    },
    disk: { ...drawn.disk, syncMs: [0.5, 0.5], stepMs: [0.05, 0.05] },
    clients: { ...clients, workers: 3, raws: 4, pauseMs: [1, 20], loss: 0 },
    turnMs: 0,
    holdMs: 0,
    durationMs,
    toTheLastLease: false,
    faultEveryMs: durationMs / 4,
    // One kind for each run: a leader change heals what a lost hand-over leaves.
    faultWeights: [[pick(random, FAULTS), 1]],
  };
}
