import { describe, expect, it } from 'vitest';
import { failure } from '../../src/base/errors.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import { acquireOf, answerOf, expectEqualStates, failureOf, get, granted, others, release, renew } from './helpers.js';

describe('failover', () => {
  it('elects within 300 ms after a process is gone, not only after a time-out (S1)', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const cluster = new MemoryCluster({ seed });
      const leader = await cluster.untilLeader();
      await cluster.run(500);
      cluster.kill(leader);
      const killedAt = cluster.now;
      await cluster.until('a new leader', () => cluster.leader() !== undefined);
      expect(cluster.now - killedAt, `seed ${seed}`).toBeLessThan(500);
    }
  });

  it('a call at another node sees a leader kill as a delay', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const cluster = new MemoryCluster({ seed });
      const leader = await cluster.untilLeader();
      const [entry] = others(cluster, leader);
      if (entry === undefined) throw new Error('three nodes expected');
      const before = await granted(cluster, entry, acquireOf('before'));
      const call = cluster.call(entry, acquireOf('during'));
      await cluster.run(0.2 * seed);
      cluster.kill(leader);
      const answer = answerOf(await cluster.answered(call));
      expect(answer).toMatchObject({ type: 'acquire', outcome: { type: 'granted' } });
      expect(await renew(cluster, entry, before)).toEqual([{ type: 'live', ttlMs: 3_000 }]);
      const after = await granted(cluster, entry, acquireOf('after'));
      expect(after.token).toBeGreaterThan(before.token);
    }
  });

  it('a call at a leader that hands over is answered by the next one', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [to] = others(cluster, leader);
    const transfer = cluster.call(leader, { type: 'transferLeadership', to: undefined });
    const call = cluster.call(leader, acquireOf('d'));
    expect(answerOf(await cluster.answered(call))).toMatchObject({ outcome: { type: 'granted' } });
    const answer = answerOf(await cluster.answered(transfer));
    expect(answer.type === 'transferLeadership' && answer.leader).not.toBe(leader);
    expect(to).toBeDefined();
    expect(cluster.leader()).not.toBe(leader);
  });

  it('hands leadership to the node that is named, asked at any node', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [to, entry] = others(cluster, leader);
    const answer = answerOf(
      await cluster.answered(
        cluster.call(entry ?? '', { type: 'transferLeadership', to: cluster.node(to ?? '').member.node }),
      ),
    );
    expect(answer).toEqual({ type: 'transferLeadership', leader: to });
  });

  it('without a majority: UNAVAILABLE before the deadline, never a grant', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const lease = await granted(cluster, leader, acquireOf('d'));
    for (const other of others(cluster, leader)) cluster.kill(other);
    for (const timeoutMs of [1_000, 3_000, 10_000]) {
      const call = cluster.call(leader, acquireOf('e'), timeoutMs);
      const failure = failureOf(await cluster.answered(call));
      expect(failure.reason).toBe('NO_LEADER');
      expect((call.answeredAt ?? Infinity) - call.sentAt).toBeLessThan(timeoutMs);
    }
    const renewal = cluster.call(
      leader,
      { type: 'renew', leases: [{ domain: lease.domain, token: lease.token }] },
      2_000,
    );
    expect(failureOf(await cluster.answered(renewal)).reason).toBe('NO_LEADER');
    expect((await get(cluster, leader, 'd', 'local')).lease?.token).toBe(lease.token);
  });

  it('a paused leader does not answer from the past, and its calls go on elsewhere', async () => {
    const cluster = new MemoryCluster();
    const old = await cluster.untilLeader();
    const [entry] = others(cluster, old);
    if (entry === undefined) throw new Error('three nodes expected');
    const lease = await granted(cluster, entry, acquireOf('d'));
    cluster.pause(old);
    const waiting = cluster.call(entry, { type: 'renew', leases: [{ domain: lease.domain, token: lease.token }] });
    const lost = cluster.call(old, {
      type: 'verify',
      lease: { domain: lease.domain, token: lease.token },
      freshness: 'linearizable',
    });
    expect(answerOf(await cluster.answered(waiting))).toMatchObject({ results: [{ type: 'live' }] });
    expect((await release(cluster, entry, lease)).released).toBe(true);
    const next = await granted(cluster, entry, acquireOf('d'));
    cluster.resume(old);
    expect(answerOf(await cluster.answered(lost))).toMatchObject({
      outcome: { type: 'ended', ended: { reason: 'released', currentToken: next.token } },
    });
    await expectEqualStates(cluster);
  });

  it('answers what it took and hands over when it is asked to stop', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const call = cluster.call(leader, acquireOf('d'));
    cluster.dispatchTo(cluster.node(leader), { type: 'stop' });
    expect(answerOf(await cluster.answered(call))).toMatchObject({ outcome: { type: 'granted' } });
    await cluster.until('the node to stop', () => cluster.node(leader).running === undefined);
    const [entry] = others(cluster, leader);
    await granted(cluster, entry ?? '', acquireOf('e'));
  });

  it('a node that lost all others keeps holding calls and serves them when one is back', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [one, two] = others(cluster, leader);
    cluster.kill(one ?? '');
    cluster.kill(two ?? '');
    await cluster.run(2_000);
    const call = cluster.call(leader, acquireOf('d'));
    await cluster.run(200);
    cluster.start(one ?? '');
    expect(answerOf(await cluster.answered(call))).toMatchObject({ outcome: { type: 'granted' } });
  });
});

describe('a call that was passed to a leader twice', () => {
  it('is not said to be undone because the second time it was refused', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [entry = ''] = others(cluster, leader);
    const node = cluster.node(entry);
    // Nothing comes back from the leader by itself.
    cluster.cutLinks.add(`${leader}>${entry}`);
    const from = cluster.node(leader).member.node;
    const refusal = { type: 'failure', failure: failure('OVERLOADED', 'too much work') } as const;
    const once = cluster.call(entry, acquireOf('once'));
    await cluster.run(5);
    cluster.dispatchTo(node, { type: 'forwardResult', from, id: once.id, result: refusal });
    expect(failureOf(await cluster.answered(once)).outcome).toBe('not-done');
    const twice = cluster.call(entry, acquireOf('twice'));
    await cluster.run(5);
    cluster.dispatchTo(node, { type: 'forwardLost', node: from });
    await cluster.run(50);
    cluster.dispatchTo(node, { type: 'forwardResult', from, id: twice.id, result: refusal });
    expect(failureOf(await cluster.answered(twice)).outcome).toBe('unknown');
  });
});
