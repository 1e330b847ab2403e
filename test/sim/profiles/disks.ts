/**
 * Runs that are hard on disks: of bytes, with small blocks, and with leaders that write for a while what nobody else
 * gets, and come back to other entries. Elsewhere a log is cut in the middle of a block in one run of a hundred.
 */
import type { Random } from '../../../src/base/random.js';
import { between, skewed, skewedInt } from '../chance.js';
import type { FaultKind } from '../fault-kinds.js';
import type { Parameters } from '../parameters.js';

/** What happens in such a run. */
const FAULTS: readonly (readonly [FaultKind, number])[] = [
  ['isolate busy leader', 12],
  ['isolate', 3],
  ['disk stall', 2],
  ['EIO', 1],
  ['ENOSPC', 1],
  ['power at a write', 1],
  ['kill', 1],
];

/** `parameters` as such a run; as they are when there are too few members. */
export function hardOnDisks(random: Random, parameters: Parameters): Parameters {
  const { nodes, replica, network, disk, clients } = parameters;
  if (nodes < 3) return parameters;
  const { electionMinMs, electionMaxMs } = replica;
  return {
    ...parameters,
    codecs: true,
    replica: {
      ...replica,
      // Blocks that end elsewhere at each member.
      maxAppendBytes: skewedInt(random, 1, 200),
      maxInflightAppends: skewedInt(random, 1, 4),
      maxUnappliedEntries: 50_000,
      maxUncommittedBytes: 16 * 1024 * 1024,
      cutMs: skewedInt(random, 50, 500),
      cutBytes: skewedInt(random, 500, 5_000),
      logKeepBytes: skewedInt(random, 100, 4_000),
    },
    // A round takes long enough for a leader to write much that is not committed, a write for much to be one block.
    network: { ...network, latencyMs: [0.05, between(random, 1 / 60, 1 / 20) * electionMinMs] },
    disk: { ...disk, syncMs: [0.1, between(random, 1 / 40, 1 / 12) * electionMinMs] },
    clients: { ...clients, workers: 3, raws: 3, domains: 12, pauseMs: [1, skewed(random, 8, 30)] },
    durationMs: between(random, 5, 8) * electionMaxMs,
    faultEveryMs: between(random, 0.8, 2) * electionMaxMs,
    faultWeights: FAULTS,
  };
}
