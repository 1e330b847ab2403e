/** The replicated limits, set by an operator while the cluster runs. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { ChangeLimitsAnswer } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { LimitsChange, SharedLimits } from '../../src/base/shared-limits.js';
import { ProcessCluster, type ProcessNode, until } from './cluster.js';

const FIRST = { queueLimit: 2, leasesPerPrincipal: 2, waitersPerPrincipal: 9 };
const NONE: SharedLimits = { ...FIRST, prefixQuotas: [] };
const ALARM = 'this node is configured with other limits than the cluster has, which count';

/** What an acquire of a lease of a minute comes to, or why it was refused. */
async function acquire(cluster: ProcessCluster, node: ProcessNode, domain: string, waitMs = 0): Promise<string> {
  const call = {
    type: 'acquire',
    domain: domain as Domain,
    requestId: randomUUID() as string as RequestId,
    holder: 'test',
    ttlMs: 60_000,
    waitMs,
    metadata: [],
    coolDownMs: 0,
    slots: 1,
    seenRevision: ZERO_REVISION,
  } as const;
  try {
    const { outcome } = (await cluster.call(node, call, 1_000)).answer;
    return outcome.type === 'notGranted' ? outcome.reason : outcome.type;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function change(cluster: ProcessCluster, node: ProcessNode, limits: LimitsChange): Promise<ChangeLimitsAnswer> {
  return (await cluster.call(node, { type: 'changeLimits', change: limits })).answer;
}

async function limitsOf(cluster: ProcessCluster, node: ProcessNode): Promise<SharedLimits | undefined> {
  return (await cluster.status(node)).limits;
}

it('are raised, lowered below use and repeated at any node, and outlive restarts and a change of leader', async () => {
  await using cluster = await ProcessCluster.started({ config: FIRST });
  await cluster.untilAllServe();
  const leader = await cluster.untilLeader();
  const [follower] = cluster.others(leader);
  if (follower === undefined) throw new Error('two nodes follow');
  expect(await limitsOf(cluster, follower)).toEqual(NONE);
  for (const domain of ['a', 'b']) expect(await acquire(cluster, leader, domain)).toBe('granted');
  expect(await acquire(cluster, leader, 'c')).toContain('as many leases and waiters as it may: 2');

  // Raised, through a follower: what was refused is granted.
  const raised = { ...NONE, leasesPerPrincipal: 3 };
  expect(await change(cluster, follower, { leasesPerPrincipal: 3 })).toMatchObject({ before: NONE, after: raised });
  expect(await acquire(cluster, leader, 'c')).toBe('granted');
  // Lowered below what is held: all of it lives, nothing is added.
  const lowered = { ...raised, leasesPerPrincipal: 1, prefixQuotas: [{ prefix: 'x/', leases: 0, waiters: 0 }] };
  const lower = { leasesPerPrincipal: 1, prefixQuotas: lowered.prefixQuotas };
  expect(await change(cluster, leader, lower)).toMatchObject({ before: raised, after: lowered });
  expect(await change(cluster, follower, lower)).toMatchObject({ before: lowered, after: lowered });
  for (const domain of ['a', 'b', 'c']) expect(await acquire(cluster, leader, domain)).toBe('held');
  expect(await acquire(cluster, leader, 'd')).toContain('as many leases and waiters as it may: 1');
  await expect(change(cluster, follower, { leasesPerPrincipal: 0, queueLimit: 1_000_000_001 })).rejects.toThrow(
    /queue_limit is 1000000001; .*leases_per_principal is 0; it must be from 1/,
  );

  // All say that they are configured otherwise; the leader says who did it.
  for (const node of cluster.nodes) {
    await until('the new limits everywhere', async () => (await limitsOf(cluster, node))?.leasesPerPrincipal === 1);
    const [alarm] = (await cluster.status(node)).alarms;
    expect(alarm).toContain(`${ALARM}: leasesPerPrincipal 2, not 1; prefixQuotas none, not x/=0/0. Correct`);
    await until('a log line', () => node.log.includes(`${ALARM}: leasesPerPrincipal 2, not 1`));
  }
  await until('an audit line', () => leader.log.includes('"limits changed"'));
  const [line] = leader.log.split('\n').filter((each) => each.includes('"limits changed"'));
  expect(JSON.parse(line ?? '')).toMatchObject({
    level: 'audit',
    leasesPerPrincipal: '2 -> 3',
    queueLimit: '2',
    prefixQuotas: 'none',
    by: 'addr:127.0.0.1',
  });

  // The next leader has them, and so have all after a restart.
  await cluster.kill(leader);
  const next = await cluster.untilLeader();
  expect(await limitsOf(cluster, next)).toEqual(lowered);
  expect(await acquire(cluster, next, 'd')).toContain('as many leases and waiters as it may: 1');
  await cluster.kill(...cluster.others(leader));
  for (const node of cluster.nodes) cluster.start(node);
  await cluster.untilAllServe();
  for (const node of cluster.nodes) {
    await until('the limits after a restart', async () => (await limitsOf(cluster, node))?.leasesPerPrincipal === 1);
    expect(await limitsOf(cluster, node)).toEqual(lowered);
  }
  expect(await acquire(cluster, next, 'd')).toContain('as many leases and waiters as it may: 1');
  // Back to what is configured: nobody complains any more.
  expect(await change(cluster, next, { leasesPerPrincipal: 2, prefixQuotas: [] })).toMatchObject({ after: NONE });
  for (const node of cluster.nodes) {
    await until('no alarm', async () => (await cluster.status(node)).alarms.length === 0);
  }
});
