/**
 * Forming, several times in one run: power is lost at every step of it, disks are new again, clocks are as far apart as
 * they may just be, or further.
 */
import type { Random } from '../../../src/base/random.js';
import { between, chance } from '../chance.js';
import type { FaultKind } from '../fault-kinds.js';
import type { Parameters } from '../parameters.js';

const FAULTS: readonly (readonly [FaultKind, number])[] = [
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

/** `drawn` as such a run. */
export function forming(random: Random, drawn: Parameters): Parameters {
  const { electionMinMs } = drawn.replica;
  const apart = chance(random, 400);
  return {
    ...drawn,
    codecs: chance(random, 900),
    wallOffsetsMs: apart ? aroundTheFirst(random, drawn.nodes) : drawn.wallOffsetsMs,
    // One after another, or all as the power comes back.
    startsMs: chance(random, 600) ? 10 : 2 * drawn.replica.electionMaxMs,
    firstStartsLast: false,
    // Long ways: what one is told of another may be over by then.
    network: { ...drawn.network, latencyMs: [electionMinMs / 100, electionMinMs / 12] },
    durationMs: between(random, 1_400, 3_500) + drawn.replica.electionMaxMs,
    faultEveryMs: between(random, 80, 300),
    faultMs: [20, 1_000],
    faultWeights: apart ? [...FAULTS, ['star', 20]] : FAULTS,
  };
}

/** Nobody is too far from the first one, who writes the record; the others may be from each other. */
function aroundTheFirst(random: Random, nodes: number): readonly number[] {
  return Array.from({ length: nodes }, (_, at) =>
    at === 0 ? 8_000 : chance(random, 500) ? between(random, 0, 3_500) : between(random, 10_500, 16_000),
  );
}
