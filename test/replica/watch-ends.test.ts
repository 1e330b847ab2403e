import { describe, expect, it } from 'vitest';
import { WATCH_LIMITS } from '../../src/base/limits.js';
import { acquireOf, granted } from './helpers.js';
import { scene, TTL_MS } from './queue-kit.js';

const LONG = { ttlMs: TTL_MS } as const;

describe('the end of a watch', () => {
  it('comes when its node has known no leader for an election time-out, and a new one is refused until it has one', async () => {
    const { cluster, leader, followers } = await scene();
    const [cutOff, other] = followers;
    const watch = cluster.watches.open(cutOff, '', 0);
    const fine = cluster.watches.open(other, '', 0);
    cluster.cut(cutOff, leader, other);
    await cluster.until('the end', () => watch.failure !== undefined, 4_000);
    expect(watch.failure).toMatchObject({ reason: 'NO_LEADER', outcome: 'not-done' });
    const refused = cluster.watches.open(cutOff, '', 0);
    await cluster.until('a refusal', () => refused.failure !== undefined, 100);
    expect(refused.failure?.reason).toBe('NO_LEADER');
    expect(fine.failure).toBeUndefined();
    cluster.heal();
    await cluster.until('it to follow', () => cluster.replica(cutOff).context.raft.leader !== undefined);
    await cluster.run(50);
    const again = cluster.watches.open(cutOff, '', 0);
    await cluster.until('a mark', () => again.messages.length === 1);
    expect(again.failure).toBeUndefined();
  });

  it('comes at a leader that is cut off, too; a short time without a leader ends nothing', async () => {
    const { cluster, leader, followers } = await scene();
    const cutOff = cluster.watches.open(leader, '', 0);
    const there = followers.map((node) => cluster.watches.open(node, '', 0));
    cluster.cut(leader, ...followers);
    await cluster.until('the end', () => cutOff.failure !== undefined, 6_000);
    expect(cutOff.failure?.reason).toBe('NO_LEADER');
    // The others have elected a new one.
    expect(there.map(({ failure }) => failure)).toEqual([undefined, undefined]);
  });

  it('comes at once when its node stops, and says that another one can be asked', async () => {
    const { cluster, leader, followers } = await scene();
    const [node] = followers;
    const watch = cluster.watches.open(node, '', 0);
    await cluster.run(50);
    cluster.dispatchTo(cluster.node(node), { type: 'stop' });
    await cluster.until('the end', () => watch.failure !== undefined, 100);
    expect(watch.failure).toMatchObject({ reason: 'SHUTTING_DOWN', outcome: 'not-done' });
    await cluster.until('the stop', () => cluster.node(node).running === undefined);
    expect(cluster.leader()).toBe(leader);
  });
});

describe('quotas', () => {
  const LIMITED = { options: { watch: { ...WATCH_LIMITS, watchers: 5, watchersPerPrincipal: 3 } } };

  it('are of one principal and of the node, and count until the streams are closed', async () => {
    const { cluster, leader } = await scene(LIMITED);
    const mine = [1, 2, 3].map(() => cluster.watches.open(leader, '', 0, 'addr:a'));
    const fourth = cluster.watches.open(leader, '', 0, 'addr:a');
    const theirs = [1, 2].map(() => cluster.watches.open(leader, '', 0, 'addr:b'));
    const sixth = cluster.watches.open(leader, '', 0, 'addr:c');
    await cluster.run(100);
    expect(fourth.failure).toMatchObject({ reason: 'QUOTA_EXCEEDED', outcome: 'not-done' });
    expect(fourth.failure?.message).toBe('addr:a has as many watchers as it may: 3');
    expect(sixth.failure?.message).toBe(`node ${leader} has as many watchers as it may: 5`);
    expect([...mine, ...theirs].every(({ failure, messages }) => failure === undefined && messages.length > 0)).toBe(
      true,
    );
    for (const each of mine) cluster.watches.close(each);
    const again = cluster.watches.open(leader, '', 0, 'addr:a');
    await cluster.run(100);
    expect(again.failure).toBeUndefined();
    for (const each of [again, ...theirs]) cluster.watches.close(each);
    await cluster.run(100);
    const { streams, principals, watchers, byPrefix, prefixLengths, due } = cluster.replica(leader).context.watching;
    expect([streams, principals, watchers, byPrefix, prefixLengths, due].map(({ size }) => size)).toEqual([
      0, 0, 0, 0, 0, 0,
    ]);
  });

  it('a watch that is over counts while its stream is not closed', async () => {
    const { cluster, leader } = await scene({
      options: { watch: { ...WATCH_LIMITS, ringBytes: 500, watchersPerPrincipal: 1 } },
    });
    const start = cluster.replica(leader).context.lease.revision + 1;
    for (let i = 0; i < 10; i++) await granted(cluster, leader, acquireOf(`d${i}`, LONG));
    const principal = { name: 'addr:x', authenticated: false };
    const call = { prefix: '', startRevision: start as never };
    const node = cluster.node(leader);
    cluster.dispatchTo(node, { type: 'watch', id: 9_001, principal, call });
    await cluster.run(50);
    const { watching } = cluster.replica(leader).context;
    expect(watching.watchers.size).toBe(0);
    const second = cluster.watches.open(leader, '', 0, 'addr:x');
    await cluster.run(50);
    expect(second.failure?.reason).toBe('QUOTA_EXCEEDED');
    cluster.dispatchTo(node, { type: 'watchClosed', id: 9_001 });
    const third = cluster.watches.open(leader, '', 0, 'addr:x');
    await cluster.run(50);
    expect(third.failure).toBeUndefined();
  });
});
