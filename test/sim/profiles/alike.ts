import type { Parameters } from '../parameters.js';

/** Machines whose clocks go alike. */
export function sameMachines(nodes: number): Pick<Parameters, 'nodes' | 'rates' | 'wallOffsetsMs'> {
  const each = Array.from({ length: nodes });
  return { nodes, rates: each.map(() => 1), wallOffsetsMs: each.map(() => 0) };
}
