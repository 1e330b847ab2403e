/** Cool-downs: timed by leaders, in full again after a leader change; the end of one hands over. */
import { describe, expect, it } from 'vitest';
import { acquire, acquireOf, expectEqualStates, get, granted, release } from './helpers.js';
import { callAgain, grantOf, holderOf, scene, wait, waiters } from './queue-kit.js';
import type { Scene } from './queue-kit.js';

const COOL_MS = 4_000;

/** `d` has just expired and is closed. */
async function closed(): Promise<Scene & { readonly token: number; readonly at: number }> {
  const made = await scene();
  const { cluster, leader } = made;
  const { token } = await granted(cluster, leader, acquireOf('d', { ttlMs: 3_000, coolDownMs: COOL_MS }));
  await cluster.until('the expiry', () => holderOf(cluster) === undefined);
  return { ...made, token, at: cluster.now };
}

describe('a domain whose lease expired with a cool-down', () => {
  it('stays closed for that long, as everybody is told, then is free', async () => {
    const { cluster, leader, followers, token, at } = await closed();
    await cluster.run(1_000);
    const refused = await acquire(cluster, followers[0], acquireOf('d'));
    expect(refused).toMatchObject({ type: 'notGranted', reason: 'cool_down', current: undefined });
    const left = refused.type === 'notGranted' ? refused.coolDownLeftMs : 0;
    expect(left).toBeLessThanOrEqual(3_000);
    expect(left).toBeGreaterThan(2_900);
    expect((await get(cluster, followers[0], 'd')).coolDownLeftMs).toBeGreaterThan(2_900);
    expect((await get(cluster, followers[0], 'd', 'local')).coolDownLeftMs).toBe(0);
    await cluster.run(at + COOL_MS - 20 - cluster.now);
    expect(await acquire(cluster, leader, acquireOf('d'))).toMatchObject({ reason: 'cool_down' });
    await cluster.run(50);
    expect((await granted(cluster, leader, acquireOf('d'))).token).toBeGreaterThan(token);
    await expectEqualStates(cluster);
  });

  it('is handed over in the entry that ends it, past those who are gone', async () => {
    const { cluster, leader, followers, at } = await closed();
    const gone = await wait(cluster, leader, 'gone');
    const first = await wait(cluster, followers[0], 'w');
    cluster.cancel(gone.call);
    await cluster.run(5);
    const { applied } = cluster.replica(leader).context;
    await grantOf(cluster, first.call);
    expect(cluster.now - at).toBeGreaterThanOrEqual(COOL_MS);
    expect(cluster.now - at).toBeLessThan(COOL_MS + 50);
    expect(cluster.replica(leader).context.applied).toBe(applied + 1);
    expect(waiters(cluster)).toEqual(['gone']);
  });

  it('stays free when nobody is there, and goes to the next call', async () => {
    const { cluster, leader } = await closed();
    const waiting = await wait(cluster, leader, 'w');
    await cluster.run(COOL_MS - 100);
    cluster.cancel(waiting.call);
    await cluster.run(200);
    expect(holderOf(cluster)).toBeUndefined();
    expect(waiters(cluster)).toEqual(['w']);
    await grantOf(cluster, callAgain(cluster, leader, waiting));
  });

  it('is closed in full again by a new leader', async () => {
    const { cluster, leader, followers } = await closed();
    const waiting = await wait(cluster, followers[0], 'w');
    await cluster.run(3_000);
    cluster.kill(leader);
    await cluster.untilLeader();
    const readyAt = cluster.now;
    await grantOf(cluster, waiting.call);
    expect(cluster.now - readyAt).toBeGreaterThanOrEqual(COOL_MS - 10);
    expect(cluster.now - readyAt).toBeLessThan(COOL_MS + 50);
  });

  it('is not opened twice while the end is under way, and not by a leader that is deposed meanwhile', async () => {
    const { cluster, leader, followers, at } = await closed();
    await cluster.run(at + COOL_MS - 20 - cluster.now);
    cluster.cut(leader, ...followers);
    const { applied } = cluster.replica(leader).context;
    await cluster.run(100);
    cluster.heal();
    await cluster.until('the domain to be open', () => cluster.replica(leader).context.leadership?.cooling.size === 0);
    await cluster.run(200);
    expect(cluster.replica(leader).context.applied).toBe(applied + 1);
    await granted(cluster, followers[1], acquireOf('d'));
  });
});

describe('a name all of whose slots are closed', () => {
  it('says so, and when the first of them opens', async () => {
    const { cluster, leader, followers } = await scene();
    const slots = { slots: 2, ttlMs: 3_000, coolDownMs: COOL_MS };
    await granted(cluster, leader, acquireOf('d', slots));
    await cluster.run(500);
    await granted(cluster, leader, acquireOf('d', slots));
    const cooling = (): number => cluster.replica(leader).context.leadership?.cooling.size ?? 0;
    await cluster.until('one slot to be closed', () => cooling() === 1);
    // While somebody holds the other one, that is what is in the way.
    const held = await acquire(cluster, followers[0], acquireOf('d', { slots: 2 }));
    expect(held).toMatchObject({ reason: 'held', current: { domain: 'd#1' } });
    await cluster.until('both to be closed', () => cooling() === 2);
    const refused = await acquire(cluster, followers[0], acquireOf('d', { slots: 2 }));
    expect(refused).toMatchObject({ type: 'notGranted', reason: 'cool_down', current: undefined });
    const left = refused.type === 'notGranted' ? refused.coolDownLeftMs : 0;
    expect(left).toBeGreaterThan(COOL_MS - 600);
    expect(left).toBeLessThan(COOL_MS - 400);
    expect((await get(cluster, leader, 'd')).coolDownLeftMs).toBeGreaterThan(COOL_MS - 600);
    await cluster.until('one slot to be open', () => cooling() === 1);
    expect((await get(cluster, leader, 'd')).coolDownLeftMs).toBe(0);
    expect((await granted(cluster, leader, acquireOf('d', { slots: 2 }))).domain).toBe('d#0');
  });
});

it('a release closes nothing', async () => {
  const { cluster, leader } = await scene();
  const lease = await granted(cluster, leader, acquireOf('d', { coolDownMs: COOL_MS }));
  await release(cluster, leader, lease);
  await granted(cluster, leader, acquireOf('d'));
});
