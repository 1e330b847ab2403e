import { describe, expect, it } from 'vitest';
import { MemoryCluster } from '../support/memory-cluster.js';
import { acquireOf, answerOf, failureOf, granted, others, renew } from './helpers.js';

/** A hand-over to a member that cannot take it: proposals are refused until it is given up, an election time-out later. */
async function stuckTransfer(
  before: (cluster: MemoryCluster, leader: string) => Promise<void>,
): Promise<{ cluster: MemoryCluster; leader: string; transfer: ReturnType<MemoryCluster['call']> }> {
  const cluster = new MemoryCluster();
  const leader = await cluster.untilLeader();
  await before(cluster, leader);
  const [to] = others(cluster, leader);
  const target = cluster.node(to ?? '');
  // It still answers heartbeats now and then, but its log cannot catch up.
  target.running?.store.stall();
  cluster.call(leader, acquireOf('behind'));
  await cluster.run(5);
  const transfer = cluster.call(leader, { type: 'transferLeadership', to: target.member.node });
  await cluster.run(5);
  return { cluster, leader, transfer };
}

describe('a hand-over that is given up', () => {
  it('fails, and the calls that waited are served', async () => {
    const { cluster, leader, transfer } = await stuckTransfer(() => Promise.resolve());
    const call = cluster.call(leader, acquireOf('waits'));
    await cluster.run(300);
    expect(call.result).toBeUndefined();
    expect(failureOf(await cluster.answered(transfer)).reason).toBe('TRANSFER_FAILED');
    expect(answerOf(await cluster.answered(call))).toMatchObject({ outcome: { type: 'granted' } });
    expect(cluster.leader()).toBe(leader);
  });

  it('delays an expiry that falls into it, and does not forget it', async () => {
    let expiresAt = 0;
    const { cluster, leader } = await stuckTransfer(async (early, node) => {
      await granted(early, node, acquireOf('d', { ttlMs: 3_000 }));
      expiresAt = early.now + 3_000 * 1.01 + 100;
      await early.run(3_000 * 1.01 + 100 - 50);
    });
    await cluster.run(expiresAt - cluster.now + 100);
    const { lease } = cluster.replica(leader).context;
    expect([...lease.leases.keys()]).toContain('d');
    await cluster.until('expiry', () => ![...lease.leases.keys()].some((domain) => domain === 'd'), 1_000);
  });

  it('delays a renewal that needs a Void, and answers it then', async () => {
    const { cluster, leader } = await stuckTransfer(async (early, node) => {
      await granted(early, node, acquireOf('d', { ttlMs: 10_000 }));
      await early.run(6_000);
    });
    const lease = [...cluster.replica(leader).context.lease.leases.values()].find(({ domain }) => domain === 'd');
    if (lease === undefined) throw new Error('the lease is gone');
    expect(lease.checkpointLeftMs).toBeDefined();
    expect(await renew(cluster, leader, lease)).toEqual([{ type: 'live', ttlMs: 10_000 }]);
    expect(
      [...cluster.replica(leader).context.lease.leases.values()].find(({ domain }) => domain === 'd')?.checkpointLeftMs,
    ).toBeUndefined();
  });
});

describe('a leader that is told to stop while it hands over', () => {
  it('waits for that hand-over', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [to] = others(cluster, leader);
    const target = cluster.node(to ?? '').member.node;
    const node = cluster.node(leader);
    const forwarded = {
      type: 'forwarded',
      from: target,
      term: cluster.replica(leader).context.raft.hard.term,
      principal: { name: 'addr:test', authenticated: false },
      timeoutMs: 1_000,
      holdMs: 0,
    } as const;
    // The target lacks an entry, so the hand-over takes a while.
    cluster.dispatchTo(node, { ...forwarded, id: 1_001, call: acquireOf('d') });
    cluster.dispatchTo(node, { ...forwarded, id: 1_002, call: { type: 'transferLeadership', to: target } });
    cluster.dispatchTo(node, { type: 'stop' });
    await cluster.until('the end of the leader', () => node.running === undefined);
    expect(cluster.replica(target).context.raft.role.type).toBe('leader');
  });
});
