/** Limits that an operator changes: by any node, on every node, told by audit lines and to whoever is configured otherwise. */
import { describe, expect, it } from 'vitest';
import { STATE_LIMITS } from '../../src/base/limits.js';
import type { LimitsChange } from '../../src/base/shared-limits.js';
import { limitsAlarm, sharedLimits, stateChange } from '../../src/replica/limits.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import { acquire, acquireOf, answerOf, expectEqualStates, failureOf, granted, others } from './helpers.js';

const BEFORE = sharedLimits(STATE_LIMITS);

async function change(cluster: MemoryCluster, node: string, limits: LimitsChange) {
  return answerOf(await cluster.answered(cluster.call(node, { type: 'changeLimits', change: limits })));
}

async function started(): Promise<{ cluster: MemoryCluster; leader: string; follower: string }> {
  const cluster = new MemoryCluster();
  const leader = await cluster.untilLeader();
  const [follower = ''] = others(cluster, leader);
  return { cluster, leader, follower };
}

describe('a change of limits', () => {
  it('asked of any node is answered with the limits before and after, and holds on all', async () => {
    const { cluster, leader, follower } = await started();
    const after = { ...BEFORE, queueLimit: 0 };
    expect(await change(cluster, follower, { queueLimit: 0 })).toEqual({ type: 'changeLimits', before: BEFORE, after });
    expect(await change(cluster, leader, { queueLimit: 0 })).toMatchObject({ before: after, after });
    await granted(cluster, leader, acquireOf('d'));
    expect(await acquire(cluster, follower, acquireOf('d', { waitMs: 500 }))).toMatchObject({ reason: 'queue_full' });
    await cluster.run(500);
    await expectEqualStates(cluster);
    for (const node of cluster.nodes.keys()) {
      expect(answerOf(await cluster.answered(cluster.call(node, { type: 'getStatus' })))).toMatchObject({
        limits: after,
        alarms: [expect.stringContaining('queueLimit 1000, not 0. Correct')],
      });
    }
  });

  it('is told of: who did it, by the leader; that a node is configured otherwise, by each, once', async () => {
    const { cluster, leader, follower } = await started();
    await change(cluster, follower, { waitersPerPrincipal: 7, prefixQuotas: [{ prefix: 'a', leases: 1, waiters: 2 }] });
    await change(cluster, follower, { waitersPerPrincipal: 7 });
    await change(cluster, leader, { waitersPerPrincipal: BEFORE.waitersPerPrincipal, prefixQuotas: [] });
    await cluster.run(500);
    const lines = (level: string) =>
      [...cluster.nodes].flatMap(([node, { logs }]) =>
        logs.filter((line) => line.level === level).map(({ message, fields }) => ({ node, message, fields })),
      );
    const audit = lines('audit');
    expect(audit.map(({ node, message }) => [node, message])).toEqual(
      Array.from({ length: 3 }, () => [leader, 'limits changed']),
    );
    expect(audit.map(({ fields }) => fields)).toMatchObject([
      { queueLimit: '1000', waitersPerPrincipal: '100000 -> 7', prefixQuotas: 'none -> a=1/2', by: 'addr:test' },
      { waitersPerPrincipal: '7', prefixQuotas: 'a=1/2' },
      { waitersPerPrincipal: '7 -> 100000', prefixQuotas: 'a=1/2 -> none' },
    ]);
    const warnings = lines('warn').filter(({ message }) => message.includes('other limits'));
    expect(warnings.map(({ node }) => node).sort()).toEqual([...cluster.nodes.keys()]);
    for (const { message } of warnings)
      expect(message).toContain('waitersPerPrincipal 100000, not 7; prefixQuotas none');
  });

  it('is not repeated by a node when the leader changes: it ends as unknown', async () => {
    const { cluster, leader, follower } = await started();
    await granted(cluster, follower, acquireOf('d'));
    cluster.pause(leader);
    const call = cluster.call(follower, { type: 'changeLimits', change: { queueLimit: 3 } });
    expect(failureOf(await cluster.answered(call))).toMatchObject({ reason: 'LEADER_CHANGED', outcome: 'unknown' });
  });
});

it('the names of operators and of the state stand for the same limits', () => {
  const prefixQuotas = [{ prefix: 'a', leases: 1, waiters: 2 }];
  const limits = { queueLimit: 1, leasesPerPrincipal: 2, waitersPerPrincipal: 3, prefixQuotas };
  const state = { queue: 1, leasesPerPrincipal: 2, waitersPerPrincipal: 3, prefixes: prefixQuotas };
  expect(stateChange(limits)).toEqual(state);
  expect(sharedLimits(state)).toEqual(limits);
  expect(stateChange({ leasesPerPrincipal: 4 })).toEqual({ leasesPerPrincipal: 4 });
  expect(limitsAlarm(state, { ...state, prefixes: [...prefixQuotas] })).toBeUndefined();
  const other = [{ prefix: 'b', leases: 0, waiters: 0 }, ...prefixQuotas];
  expect(limitsAlarm({ ...state, prefixes: other }, { ...state, prefixes: other.toReversed() })).toBeUndefined();
});
