/** Members that fall behind, conflict and get snapshots, and lose power in the midst of a switch. */
import { nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import { between, chance, skewed, skewedInt } from '../chance.js';
import type { FaultKind } from '../fault-kinds.js';
import type { Parameters } from '../parameters.js';

const FAULTS: readonly (readonly [FaultKind, number])[] = [
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

/** `drawn` as such a run. */
export function transfer(random: Random, drawn: Parameters): Parameters {
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
      domains: 12,
      pauseMs: [1, skewed(random, 8, 30)],
    },
    durationMs: between(random, 1.4, 2.4) * drawn.clients.ttlMs[0],
    faultEveryMs: between(random, 0.5, 1.5) * electionMaxMs,
    faultMs: [0.3 * electionMaxMs, 3 * electionMaxMs],
    faultWeights: FAULTS,
  };
}
