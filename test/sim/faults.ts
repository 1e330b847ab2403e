/**
 * What is done to a run, and when: a list that is drawn before the run begins, so that a failure can be reduced by
 * leaving some of it out while everything else stays as it was. What a fault meets (who leads, what is under way) is
 * looked at when it comes.
 */
import { nextInt, nextUint32 } from '../../src/base/random.js';
import { skewed, stream, weighted } from './chance.js';
import type { FaultKind } from './fault-kinds.js';
import type { Parameters } from './parameters.js';

/** One fault. `chance` are raw draws, for whatever it needs to choose. */
export interface PlannedFault {
  readonly number: number;
  readonly at: number;
  readonly kind: FaultKind;
  /** How long it lasts, in true milliseconds. */
  readonly ms: number;
  readonly chance: readonly number[];
}

/** The faults of a run, in order of time. */
export function planFaults(parameters: Parameters): readonly PlannedFault[] {
  const random = stream(parameters.seed, 'faults');
  const { durationMs, faultEveryMs, faultMs, faultWeights } = parameters;
  const plan: PlannedFault[] = [];
  if (faultWeights.every(([, weight]) => weight === 0)) return plan;
  for (let at = 0; ;) {
    at += skewed(random, faultEveryMs / 4, faultEveryMs * 3);
    if (at >= durationMs) return plan;
    const kind = weighted(random, faultWeights);
    const ms = skewed(random, ...faultMs);
    plan.push({
      number: plan.length + 1,
      at,
      kind,
      ms,
      chance: [nextUint32(random), nextUint32(random), nextUint32(random), nextInt(random, 0, 999)],
    });
  }
}
