import { describe, expect, it } from 'vitest';
import { STATE_LIMITS, TICK_MS } from '../../../src/base/limits.js';
import type { Fault } from '../observation.js';
import { ObservedCluster } from './observed-cluster.js';
import { Relation } from './relation.js';

describe('the clock of the relation', () => {
  // A time-out drawn and over within one step is not to be seen in the core after it: another was drawn since.
  it('accepts a lone leader that stands still, and campaigns with the first tick', async () => {
    const faults: Fault[] = [];
    const relation = new Relation((fault) => faults.push(fault));
    const options = { heartbeatMs: TICK_MS, electionMinMs: 3 * TICK_MS, electionMaxMs: 6 * TICK_MS };
    const cluster = new ObservedCluster(relation, { seed: 7, nodes: 1, limits: STATE_LIMITS, options });
    let attempt = 0;
    for (let round = 0; round < 20; round++) {
      await cluster.run(1_000);
      const { raft, leadership } = cluster.replica('n1').context;
      expect(leadership?.ready).toBeDefined();
      expect(raft.attempt).toBeGreaterThan(attempt);
      ({ attempt } = raft);
      cluster.pause('n1');
      await cluster.run(8 * TICK_MS + round);
      cluster.resume('n1');
    }
    expect(faults).toEqual([]);
  });
});
