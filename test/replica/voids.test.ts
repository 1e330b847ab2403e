import { describe, expect, it } from 'vitest';
import type { LeaseView } from '../../src/base/api.js';
import { MAX_INTERNAL_COMMAND_BYTES } from '../../src/base/limits.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import { callAgain, grantOf, heldScene, TTL_MS, wait } from './queue-kit.js';
import { acquireOf, answerOf, granted, others, refOf } from './helpers.js';

describe('a renewal of many leases', () => {
  it('is answered after the last of its Voids, also when one of the leases ends meanwhile (F5)', async () => {
    // One entry in an append, one append under way: entries commit one by one.
    const cluster = new MemoryCluster({ options: { maxAppendBytes: 1, maxInflightAppends: 1 } });
    const leader = await cluster.untilLeader();
    // As many as fit one Void, and one more, whose Void is an entry of its own.
    const perVoid = Math.floor(MAX_INTERNAL_COMMAND_BYTES / (255 + 40));
    const leases: LeaseView[] = [];
    for (let at = 0; at <= perVoid; at++)
      leases.push(await granted(cluster, leader, acquireOf(`${at}-`.padEnd(255, 'x'), { ttlMs: 60_000 })));
    await cluster.run(31_000);
    const [first] = leases;
    if (first === undefined) throw new Error('no leases');
    const flagged = (): number =>
      [...cluster.replica(leader).context.lease.leases.values()].filter(
        ({ checkpointLeftMs }) => checkpointLeftMs !== undefined,
      ).length;
    expect(flagged()).toBe(leases.length);
    // While leadership is being handed over, to a member that cannot take it, no Void is appended.
    const target = cluster.node(others(cluster, leader)[0] ?? '');
    target.running?.store.stall();
    const release = cluster.call(leader, { type: 'release', lease: refOf(first) });
    cluster.call(leader, { type: 'transferLeadership', to: target.member.node });
    const renew = cluster.call(leader, { type: 'renew', leases: leases.map(refOf) });
    await cluster.answered(release);
    expect(renew.result).toBeUndefined();
    const answer = answerOf(await cluster.answered(renew));
    expect(flagged()).toBe(0);
    expect(answer).toMatchObject({ results: [{ type: 'ended' }, ...leases.slice(1).map(() => ({ type: 'live' }))] });
  });
});

describe('a call that comes late for a lease which was handed over', () => {
  it('is told of the grant only after a Void, when the lease has been checkpointed meanwhile (F5, S5)', async () => {
    // Followers are patient, so that the leader can be cut off for longer than half the TTL.
    const patient = { electionMinMs: 8_000, electionMaxMs: 16_000 };
    const { cluster, leader, followers, lease } = await heldScene({ options: patient });
    const waiting = await wait(cluster, leader, 'w', { ttlMs: 4_000 });
    const early = waiting.call;
    cluster.latency = [20, 20];
    cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await cluster.run(10);
    const late = callAgain(cluster, leader, waiting);
    const { token } = await grantOf(cluster, early);
    // Its round is confirmed by nobody; and so is the Checkpoint, by which the lease is flagged from its proposal on.
    cluster.cut(leader, ...followers);
    const { leadership } = cluster.replica(leader).context;
    const proposed = (type: string): boolean =>
      [...(leadership?.pending.values() ?? [])].some(({ command }) => command.type === type);
    await cluster.until('the Checkpoint', () => proposed('checkpoint'), 2_500);
    expect(late.result).toBeUndefined();
    cluster.heal();
    await cluster.until('the Void', () => proposed('void'), 500);
    expect(late.result).toBeUndefined();
    expect((await grantOf(cluster, late)).token).toBe(token);
    const now = cluster.replica(leader).context.lease.leases.get(lease.domain);
    expect(now).toMatchObject({ token, version: 2, checkpointLeftMs: undefined });
    // Its time begins with its own call.
    await cluster.until('its expiry', () => cluster.replica(leader).context.lease.leases.size === 0);
    expect(cluster.now - late.sentAt).toBeGreaterThanOrEqual(4_000 * 1.01 + 100);
    expect(lease.ttlMs).toBe(TTL_MS);
  });
});
