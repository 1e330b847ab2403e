import { describe, expect, it } from 'vitest';
import type { Revision } from '../../src/base/revision.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import {
  acquire,
  acquireOf,
  answerOf,
  endedOf,
  expectEqualStates,
  failureOf,
  get,
  granted,
  others,
  refOf,
  release,
  renew,
  verify,
} from './helpers.js';

describe('leases on a healthy cluster', () => {
  it('grants a free domain with a token above the base, and refuses a held one', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const lease = await granted(cluster, leader, acquireOf('orders/eu', { holder: 'a', metadata: [['host', 'x']] }));
    expect(lease.token).toBeGreaterThan(cluster.genesis.history.base);
    expect(lease.metadata).toEqual([['host', 'x']]);
    const second = await acquire(cluster, leader, acquireOf('orders/eu', { holder: 'b' }));
    expect(second).toMatchObject({ type: 'notGranted', reason: 'held', current: { holder: 'a', token: lease.token } });
    await expectEqualStates(cluster);
  });

  it('takes calls on any node', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [one, two] = others(cluster, leader);
    if (one === undefined || two === undefined) throw new Error('three nodes expected');
    const lease = await granted(cluster, one, acquireOf('d'));
    expect(await renew(cluster, two, lease)).toEqual([{ type: 'live', ttlMs: 3_000 }]);
    expect(await verify(cluster, one, lease)).toEqual({ type: 'live', ttlMs: 3_000 });
    expect((await get(cluster, two, 'd')).lease?.token).toBe(lease.token);
    expect(await release(cluster, two, lease)).toMatchObject({ released: true });
    expect((await get(cluster, one, 'd')).lease).toBeUndefined();
  });

  it('gives a greater token with every grant of a domain', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    let last = 0;
    for (let i = 0; i < 20; i++) {
      const lease = await granted(cluster, leader, acquireOf('d'));
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      await release(cluster, leader, lease);
    }
  });

  it('answers a repeated request id with the same lease, and an ended one with how it ended', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const call = acquireOf('d');
    const first = await granted(cluster, leader, call);
    const again = await granted(cluster, others(cluster, leader)[0] ?? '', call);
    expect(again.token).toBe(first.token);
    expect((await release(cluster, leader, first)).released).toBe(true);
    expect((await release(cluster, leader, first)).released).toBe(true);
    expect(endedOf(await acquire(cluster, leader, call))).toMatchObject({ reason: 'released', lease: refOf(first) });
    const reused = failureOf(await cluster.answered(cluster.call(leader, { ...call, holder: 'another' })));
    expect(reused.reason).toBe('REQUEST_ID_REUSED');
  });

  it('withdraws a grant, and an acquire that comes after its withdrawal does nothing', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const call = acquireOf('d');
    await granted(cluster, leader, call);
    const { domain, requestId } = call;
    answerOf(await cluster.answered(cluster.call(leader, { type: 'withdraw', domain, requestId })));
    expect((await get(cluster, leader, 'd')).lease).toBeUndefined();
    const late = acquireOf('e');
    answerOf(
      await cluster.answered(
        cluster.call(leader, { type: 'withdraw', domain: late.domain, requestId: late.requestId }),
      ),
    );
    expect(endedOf(await acquire(cluster, leader, late)).reason).toBe('withdrawn');
    expect((await get(cluster, leader, 'e')).lease).toBeUndefined();
  });

  it('says of an unknown token why it is not current', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const lease = await granted(cluster, leader, acquireOf('d'));
    const never = { domain: lease.domain, token: (lease.token + 1_000) as Revision };
    const [state] = await renew(cluster, leader, never);
    expect(endedOf(state ?? { type: 'nothing' })).toMatchObject({ reason: 'never_granted', currentToken: lease.token });
    const earlier = { domain: lease.domain, token: 1 as Revision };
    expect(endedOf(await verify(cluster, leader, earlier)).reason).toBe('earlier_history');
  });

  it('force-releases by token only', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const lease = await granted(cluster, leader, acquireOf('d'));
    const wrong = cluster.call(leader, {
      type: 'forceRelease',
      domain: lease.domain,
      token: (lease.token - 1) as Revision,
      note: 'n',
    });
    expect(answerOf(await cluster.answered(wrong))).toMatchObject({ released: false, currentToken: lease.token });
    const right = cluster.call(leader, {
      type: 'forceRelease',
      domain: lease.domain,
      token: lease.token,
      note: 'host is gone',
    });
    expect(answerOf(await cluster.answered(right))).toMatchObject({ released: true });
    const [state] = await renew(cluster, leader, lease);
    expect(endedOf(state ?? { type: 'nothing' })).toMatchObject({
      reason: 'force_released',
      note: 'host is gone',
      by: 'addr:test',
    });
  });

  it('writes nothing for a renewal', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const lease = await granted(cluster, leader, acquireOf('d'));
    const before = cluster.replica(leader).context.applied;
    for (let i = 0; i < 10; i++) {
      await cluster.run(500);
      expect(await renew(cluster, leader, lease)).toEqual([{ type: 'live', ttlMs: 3_000 }]);
    }
    expect(cluster.replica(leader).context.applied).toBe(before);
  });
});

describe('time', () => {
  it('expires a lease after TTL × 1.01 + 100 ms, and not before its holder must have stopped', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const call = cluster.call(leader, acquireOf('d', { ttlMs: 5_000 }));
    await cluster.answered(call);
    await cluster.until('expiry', () => cluster.replica(leader).context.lease.leases.size === 0);
    const lived = cluster.now - call.sentAt;
    expect(lived).toBeGreaterThan(5_000 * 1.01 + 100);
    expect(lived).toBeLessThan(5_000 * 1.03 + 1_000);
    const audit = cluster.node(leader).logs.filter(({ level }) => level === 'audit');
    expect(audit.map(({ message }) => message)).toEqual(['lease expired']);
  });

  it('keeps a renewed lease for ever, over a change of leader too', async () => {
    const cluster = new MemoryCluster();
    let leader = await cluster.untilLeader();
    const lease = await granted(cluster, leader, acquireOf('d', { ttlMs: 3_000 }));
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 6; i++) {
        await cluster.run(900);
        expect(await renew(cluster, leader, lease)).toEqual([{ type: 'live', ttlMs: 3_000 }]);
      }
      cluster.kill(leader);
      const killed = leader;
      leader = await cluster.untilLeader();
      expect(await renew(cluster, leader, lease)).toEqual([{ type: 'live', ttlMs: 3_000 }]);
      cluster.start(killed);
    }
    await expectEqualStates(cluster);
  });

  it('checkpoints a silent lease at half its time, so that a new leader does not give it all again', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const call = cluster.call(leader, acquireOf('d', { ttlMs: 10_000 }));
    await cluster.answered(call);
    await cluster.run(6_000);
    expect([...cluster.replica(leader).context.lease.leases.values()][0]?.checkpointLeftMs).toBeGreaterThan(5_000);
    cluster.kill(leader);
    const next = await cluster.untilLeader();
    const leaderless = cluster.now - call.sentAt - 6_000;
    await cluster.until('expiry', () => cluster.replica(next).context.lease.leases.size === 0);
    const took = cluster.now - call.sentAt;
    expect(took).toBeGreaterThan(10_000);
    expect(took).toBeLessThan(1.03 * 10_000 + 1_000 + 0.52 * 10_000 + 1_000 + leaderless);
  });

  it('a renewal cancels the checkpoint before it is answered: the next leader gives the full time (F5)', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const lease = await granted(cluster, leader, acquireOf('d', { ttlMs: 10_000 }));
    await cluster.run(6_000);
    const sentAt = cluster.now;
    expect(await renew(cluster, leader, lease)).toEqual([{ type: 'live', ttlMs: 10_000 }]);
    cluster.kill(leader);
    const next = await cluster.untilLeader();
    await cluster.until('expiry', () => cluster.replica(next).context.lease.leases.size === 0);
    expect(cluster.now - sentAt).toBeGreaterThan(10_000);
  });

  it('holds grants back after forming with a hold', async () => {
    const cluster = new MemoryCluster({ holdMs: 4_000 });
    const leader = await cluster.untilLeader();
    expect(await acquire(cluster, leader, acquireOf('d'))).toMatchObject({ type: 'notGranted', reason: 'recovering' });
    await cluster.run(4_500);
    await granted(cluster, leader, acquireOf('d'));
  });
});
