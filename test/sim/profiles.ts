/**
 * The parameters of one run, as they are used: most runs are of every kind of world, and some concentrate on a corner
 * that such a world reaches too seldom. A corner is a short run with few kinds of faults.
 */
import type { Random } from '../../src/base/random.js';
import { between, chance, pick, skewed, skewedInt, stream, weighted } from './chance.js';
import type { FaultKind } from './fault-kinds.js';
import { drawParameters } from './parameters.js';
import type { Parameters } from './parameters.js';

/** `all`: everything, as drawn. */
type Profile = 'all' | 'elections' | 'snapshots';

const PROFILES = [
  ['all', 8],
  ['elections', 1],
  ['snapshots', 1],
] as const satisfies readonly (readonly [Profile, number])[];

const ELECTION_FAULTS = ['outage', 'transfer cut short', 'leaders in turn'] as const satisfies readonly FaultKind[];
const SNAPSHOT_FAULTS = [
  ['stall at an install', 2],
  ['transfer behind a stall', 5],
  ['isolate', 1],
  ['refuse', 1],
  ['kill', 1],
] as const satisfies readonly (readonly [FaultKind, number])[];

/** Which kind of run `seed` is. */
function profileOf(seed: number): Profile {
  return weighted(stream(seed, 'profile'), PROFILES);
}

/** The parameters of `seed`. */
export function parametersOf(seed: number): Parameters {
  const drawn = drawParameters(seed);
  const random = stream(seed, 'corner');
  switch (profileOf(seed)) {
    case 'all':
      return drawn;
    case 'elections':
      return elections(drawn, random);
    case 'snapshots':
      return snapshots(drawn, random);
  }
}

/** Clocks, latencies and disks that are the same everywhere: only what is drawn by the members tells them apart (E6). */
function elections(drawn: Parameters, random: Random): Parameters {
  const { replica, clients } = drawn;
  const latencyMs = skewed(random, 0.5, replica.tickMs / 4);
  const nodes = chance(random, 150) ? 5 : 3;
  const durationMs = between(random, 2, 3.5) * clients.ttlMs[0];
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
    disk: { syncMs: [0.5, 0.5], stepMs: [0.05, 0.05] },
    clients: { ...clients, workers: 3, raws: 4, pauseMs: [1, 10], loss: 0 },
    turnMs: 0,
    holdMs: 0,
    durationMs,
    toTheLastLease: false,
    faultEveryMs: durationMs / 4,
    // One kind for each run: a leader change heals what a lost hand-over leaves.
    faultWeights: [[pick(random, ELECTION_FAULTS), 1]],
  };
}

/** Next to no log is kept behind a cut: whoever falls behind needs a snapshot. */
function snapshots(drawn: Parameters, random: Random): Parameters {
  const { replica, clients } = drawn;
  const durationMs = between(random, 2, 4) * clients.ttlMs[0];
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
    disk: { syncMs: [0.1, skewed(random, 0.3, 5)], stepMs: [0.01, 0.1] },
    clients: { ...clients, workers: 2, raws: 3, pauseMs: [1, skewed(random, 8, 80)], loss: 0 },
    turnMs: 0,
    holdMs: 0,
    durationMs,
    toTheLastLease: false,
    faultEveryMs: durationMs / 8,
    faultWeights: SNAPSHOT_FAULTS,
  };
}

/** Machines whose clocks go alike. */
function sameMachines(nodes: number): Pick<Parameters, 'nodes' | 'rates' | 'wallOffsetsMs'> {
  const each = Array.from({ length: nodes });
  return { nodes, rates: each.map(() => 1), wallOffsetsMs: each.map(() => 0) };
}
