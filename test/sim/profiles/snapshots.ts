/** Next to no log is kept behind a cut: whoever falls behind needs a snapshot. */
import type { Random } from '../../../src/base/random.js';
import { between, chance, skewed, skewedInt } from '../chance.js';
import type { FaultKind } from '../fault-kinds.js';
import type { Parameters } from '../parameters.js';
import { sameMachines } from './alike.js';

const FAULTS = [
  ['stall at an install', 2],
  ['transfer behind a stall', 5],
  ['isolate', 1],
  ['refuse', 1],
  ['kill', 1],
] as const satisfies readonly (readonly [FaultKind, number])[];

/** `drawn` as such a run. */
export function snapshots(random: Random, drawn: Parameters): Parameters {
  const { replica, clients } = drawn;
  const durationMs = between(random, 1.5, 2.6) * clients.ttlMs[0];
  return {
    ...drawn,
    ...sameMachines(3),
    replica: {
      ...replica,
      maxInflightAppends: 64,
      maxInflightBytes: 1_000_000,
      cutBytes: 5_000,
      cutMs: skewedInt(random, 2, 30),
      logKeepBytes: 20,
      logKeepTransferBytes: 1_000_000,
    },
    network: {
      ...drawn.network,
      latencyMs: [0.1, skewed(random, 0.5, 5)],
      spikeChance: 0,
      loss: 0,
      chunkBytes: chance(random, 700) ? 100_000 : skewedInt(random, 50, 1_000),
      chunkTwice: skewedInt(random, 100, 500),
      room: 1_000,
    },
    disk: { ...drawn.disk, syncMs: [0.1, skewed(random, 0.3, 5)], stepMs: [0.01, 0.1] },
    clients: { ...clients, workers: 2, raws: 3, pauseMs: [1, skewed(random, 8, 80)], loss: 0 },
    turnMs: 0,
    holdMs: 0,
    durationMs,
    toTheLastLease: false,
    faultEveryMs: durationMs / 8,
    faultWeights: FAULTS,
  };
}
