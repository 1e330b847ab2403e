/** Under overload acquires are refused first: what keeps and ends leases still finds room (design 7). */
import { describe, expect, it } from 'vitest';
import type { LeaseView } from '../../src/base/api.js';
import type { ClusterCall } from '../support/cluster-node.js';
import { acquireOf, answerOf, failureOf, granted, others, refOf } from './helpers.js';
import { grantOf, scene } from './queue-kit.js';

describe('a leader with too much to commit', () => {
  it('refuses acquires while it still takes releases and withdrawals, and renews as ever', async () => {
    const { cluster, leader, followers } = await scene({ options: { maxUncommittedBytes: 4_000 } });
    const leases: LeaseView[] = [];
    for (let at = 0; at < 3; at++)
      leases.push(await granted(cluster, leader, acquireOf(`held/${at}`, { ttlMs: 60_000 })));
    cluster.cut(leader, ...followers);
    const acquires = Array.from({ length: 60 }, (_, at) => cluster.call(leader, acquireOf(`d/${at}`)));
    await cluster.run(5);
    const refused = acquires.filter((call) => call.result !== undefined);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(acquires.length);
    for (const { result } of refused) {
      const failure = result === undefined ? undefined : failureOf(result);
      expect(failure).toMatchObject({ reason: 'OVERLOADED', outcome: 'not-done' });
      expect(failure?.message).toBe(
        'more than 3000 bytes wait to be committed, of 4000 at most: acquires are refused first',
      );
    }
    const renewal = cluster.call(leader, { type: 'renew', leases: leases.slice(1).map(refOf) });
    const [first] = leases;
    if (first === undefined) throw new Error('three are held');
    const ending = [
      cluster.call(leader, { type: 'release', lease: refOf(first) }),
      cluster.call(leader, { type: 'withdraw', domain: first.domain, requestId: acquireOf('x').requestId }),
    ];
    await cluster.run(5);
    expect([renewal, ...ending].map(({ result }) => result)).toEqual([undefined, undefined, undefined]);
    cluster.heal();
    expect(answerOf(await cluster.answered(renewal))).toMatchObject({ results: [{ type: 'live' }, { type: 'live' }] });
    for (const call of ending) expect((await cluster.answered(call)).type).toBe('answer');
    for (const call of acquires) if (!refused.includes(call)) await grantOf(cluster, call);
    // Nothing is left behind: there is room again.
    await granted(cluster, leader, acquireOf('later'));
  });

  it('takes one acquire at least, however small the limit is', async () => {
    const { cluster, leader } = await scene({ options: { maxUncommittedBytes: 1 } });
    await granted(cluster, leader, acquireOf('d'));
  });
});

describe('a node without a leader that holds many calls', () => {
  it('refuses acquires at three quarters, the rest at its limit', async () => {
    const { cluster, leader } = await scene({ options: { maxHeldCalls: 8 } });
    const lease = await granted(cluster, leader, acquireOf('held', { ttlMs: 60_000 }));
    const [node = '', third = ''] = others(cluster, leader);
    cluster.kill(leader);
    cluster.kill(third);
    await cluster.run(3_000);
    const refusedOf = (calls: readonly ClusterCall[]): string[] =>
      calls.flatMap(({ result }) => (result === undefined ? [] : [failureOf(result).reason]));
    const acquires = Array.from({ length: 10 }, (_, at) => cluster.call(node, acquireOf(`d/${at}`)));
    await cluster.run(5);
    expect(refusedOf(acquires)).toEqual(Array.from({ length: 4 }, () => 'TOO_MANY_HELD_CALLS'));
    const rest = Array.from({ length: 4 }, () => cluster.call(node, { type: 'renew', leases: [refOf(lease)] }));
    await cluster.run(5);
    expect(refusedOf(rest)).toEqual(['TOO_MANY_HELD_CALLS', 'TOO_MANY_HELD_CALLS']);
  });
});
