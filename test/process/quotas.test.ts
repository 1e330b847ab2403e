/** Quotas from the configuration file to the client, and a node that is configured otherwise than its cluster. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Domain, RequestId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import { ProcessCluster, type ProcessNode, until } from './cluster.js';

const QUOTAS = {
  queueLimit: 1,
  leasesPerPrincipal: 5,
  waitersPerPrincipal: 1,
  prefixQuotas: [{ prefix: 'small/', leases: 1, waiters: 0 }],
};

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

it('Genesis takes them; all members apply them, after a restart too, and one that is configured otherwise says so', async () => {
  await using cluster = await ProcessCluster.started({ config: QUOTAS });
  let node = await cluster.untilLeader();
  const check = async (): Promise<void> => {
    expect(await acquire(cluster, node, 'e')).toContain('addr:127.0.0.1 has as many leases and waiters as it may: 5');
  };
  expect(await acquire(cluster, node, 'small/a')).toBe('granted');
  expect(await acquire(cluster, node, 'small/b')).toContain('prefix small/ has as many leases as it may: 1');
  expect(await acquire(cluster, node, 'small/a', 60_000)).toContain('prefix small/ has as many waiters as it may: 0');
  for (const domain of ['a', 'b']) expect(await acquire(cluster, node, domain)).toBe('granted');
  expect(await acquire(cluster, node, 'a', 60_000)).toBe('queued');
  expect(await acquire(cluster, node, 'a', 60_000)).toBe('queue_full');
  expect(await acquire(cluster, node, 'c')).toBe('granted');
  await check();
  // The waiter takes the place of a lease for as long as it waits; nobody calls for it, so it leaves.
  await until('room for another lease', async () => (await acquire(cluster, node, 'd')) === 'granted');
  await check();
  expect((await cluster.status(node)).alarms).toEqual([]);

  const [first] = cluster.nodes;
  if (first === undefined) throw new Error('a cluster has nodes');
  await cluster.kill(...cluster.nodes);
  await cluster.configure(first, { queueLimit: 7, prefixQuotas: [] });
  for (const each of cluster.nodes) cluster.start(each);
  node = await cluster.untilLeader();
  await check();
  const alarm =
    'this node is configured with other limits than the cluster has, which count: queueLimit 7, not 1; ' +
    'prefixQuotas none, not small/=1/0. ' +
    "Correct its configuration, or the cluster's limits by fencepost limits set";
  await until('a log line', () => first.log.includes(alarm));
  expect((await cluster.status(first)).alarms).toEqual([alarm]);
  for (const other of cluster.others(first)) expect((await cluster.status(other)).alarms).toEqual([]);
});
