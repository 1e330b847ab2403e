/**
 * Runs that are about one thing: swarm testing once more, for rules that matter for a few milliseconds only. A profile
 * changes what {@link drawParameters} drew; what it leaves alone is as in any other run.
 */
import { nextInt } from '../../src/base/random.js';
import type { Random } from '../../src/base/random.js';
import { between, chance, skewed, skewedInt, stream, weighted } from './chance.js';
import type { FaultKind } from './fault-kinds.js';
import type { Parameters } from './parameters.js';

/** In 16 seeds; the rest are runs about everything. */
const PROFILES = [
  ['everything', 12],
  ['forming', 2],
  ['transfer', 2],
] as const;

/**
 * Forming, several times in one run: power is lost at every step of it, disks are new again, clocks are as far apart as
 * they may just be, or further.
 */
const FORMING_WEIGHTS: readonly (readonly [FaultKind, number])[] = [
  ['power at an operation', 14],
  ['form again', 5],
  ['wipe while new', 3],
  ['wipe', 2],
  ['one way', 1],
  ['halves', 1],
  ['kill', 1],
  ['pause', 1],
  ['disk stall', 1],
  ['wall jump', 0.3],
];

/** Members that fall behind, conflict and get snapshots, and lose power in the midst of a switch. */
const TRANSFER_WEIGHTS: readonly (readonly [FaultKind, number])[] = [
  ['power at a switch', 8],
  ['leave behind', 26],
  ['power at an operation', 2],
  ['isolate leader', 4],
  ['isolate', 3],
  ['one way', 2],
  ['kill', 2],
  ['pause', 2],
  ['refuse', 1],
  ['transfer', 1],
  ['disk stall', 2],
];

/** `drawn`, or what the profile of its seed makes of it. */
export function concentrated(drawn: Parameters): Parameters {
  const random = stream(drawn.seed, 'profile');
  switch (weighted(random, PROFILES)) {
    case 'everything':
      return drawn;
    case 'forming':
      return forming(drawn, random);
    case 'transfer':
      return transfer(drawn, random);
  }
}

function forming(drawn: Parameters, random: Random): Parameters {
  const { electionMinMs } = drawn.replica;
  const apart = chance(random, 400);
  return {
    ...drawn,
    codecs: chance(random, 900),
    wallOffsetsMs: apart ? aroundTheFirst(random, drawn.nodes) : drawn.wallOffsetsMs,
    // One after another, or all as the power comes back.
    startsMs: chance(random, 600) ? 10 : drawn.startsMs,
    // Long ways: what one is told of another may be over by then.
    network: { ...drawn.network, latencyMs: [electionMinMs / 100, electionMinMs / 12] },
    durationMs: between(random, 2_000, 5_000) + drawn.replica.electionMaxMs,
    faultEveryMs: between(random, 80, 300),
    faultMs: [20, 1_000],
    faultWeights: apart ? [...FORMING_WEIGHTS, ['star', 20]] : FORMING_WEIGHTS,
  };
}

/** Nobody is too far from the first one, who writes the record; the others may be from each other. */
function aroundTheFirst(random: Random, nodes: number): readonly number[] {
  return Array.from({ length: nodes }, (_, at) =>
    at === 0 ? 8_000 : chance(random, 500) ? between(random, 0, 3_500) : between(random, 10_500, 16_000),
  );
}

function transfer(drawn: Parameters, random: Random): Parameters {
  const { electionMaxMs } = drawn.replica;
  return {
    ...drawn,
    codecs: chance(random, 900),
    replica: {
      ...drawn.replica,
      cutBytes: skewedInt(random, 50, 500),
      cutMs: skewedInt(random, 2, 40),
      logKeepBytes: skewedInt(random, 1, 100),
      maxUncommittedBytes: 16 * 1024 * 1024,
      maxUnappliedEntries: 50_000,
    },
    network: { ...drawn.network, chunkBytes: skewedInt(random, 1, 500) },
    clients: {
      ...drawn.clients,
      workers: 1,
      raws: nextInt(random, 5, 10),
      domains: 8,
      pauseMs: [1, skewed(random, 8, 30)],
    },
    durationMs: between(random, 2.5, 4) * drawn.clients.ttlMs[0],
    faultEveryMs: between(random, 0.5, 1.5) * electionMaxMs,
    faultMs: [0.3 * electionMaxMs, 3 * electionMaxMs],
    faultWeights: TRANSFER_WEIGHTS,
  };
}
