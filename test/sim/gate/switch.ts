/** One protective rule that can be taken out of the production code, to see whether the simulator notices. */
import type { Patch } from '../runner/patch.js';

/** Removes one condition or one effect; what is left compiles. */
export interface Switch extends Patch {
  /** Short, in words with hyphens. */
  readonly name: string;
  readonly area: 'raft' | 'lease' | 'client' | 'storage' | 'forming';
  /** The rule that is gone, as a sentence. */
  readonly rule: string;
  /** Where the rule comes from: a scenario of the catalogue, a paper's section, a design mark (F, S). */
  readonly source: string;
  /** The same effect is ensured at a second place too, which has to go with it. */
  readonly also?: readonly Patch[];
  /** Caught within a few seeds: part of `npm test`. */
  readonly quick?: true;
  /**
   * Nobody has noticed it yet: why, as far as is known. A blind spot that is to be opened; it is run for a few seeds and
   * shown with the others, and does not fail the gate.
   */
  readonly blind?: string;
}

/** Everything that a switch changes. */
export function patchesOf(each: Switch): readonly Patch[] {
  return [{ file: each.file, text: each.text, replacement: each.replacement }, ...(each.also ?? [])];
}
