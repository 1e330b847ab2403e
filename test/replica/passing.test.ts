/** Who is passed over by what frees several places, or by entries that are on their way together (design 7, Hand-over). */
import { describe, expect, it } from 'vitest';
import type { LeaseView } from '../../src/base/api.js';
import type { RequestId } from '../../src/base/ids.js';
import { acquireOf, granted, refOf } from './helpers.js';
import { grantOf, heldScene, scene, TTL_MS, wait, waiters } from './queue-kit.js';
import type { Scene, Waiting } from './queue-kit.js';

/**
 * `d` with as many slots as `held`, all held; `gone1` `here1` `gone2` `here2` … wait, nobody calls for the gone ones.
 * `ttlMs` is that of the leases that are held.
 */
async function mixed(
  slots: number,
  ttlMs = TTL_MS,
  coolDownMs = 0,
): Promise<Scene & { held: LeaseView[]; gone: Waiting[]; here: Waiting[] }> {
  const made = await scene({ options: { waiterGraceMs: 60_000 } });
  const { cluster, leader, followers } = made;
  const held = [];
  for (let at = 0; at < slots; at++) {
    held.push(await granted(cluster, leader, acquireOf('d', { slots, ttlMs, coolDownMs })));
  }
  const gone: Waiting[] = [];
  const here: Waiting[] = [];
  for (let at = 1; at <= slots; at++) {
    gone.push(await wait(cluster, leader, `gone${at}`, { slots }));
    here.push(await wait(cluster, followers[0], `here${at}`, { slots }));
  }
  for (const { call } of gone) cluster.cancel(call);
  await cluster.run(5);
  return { ...made, held, gone, here };
}

/** The ids that the entries on their way pass over. */
function passedOver({ cluster, leader }: Scene): RequestId[][] {
  return [...(cluster.replica(leader).context.leadership?.pending.values() ?? [])].map(({ command }) => {
    if (!('detached' in command)) throw new Error(`a ${command.type} passes over nobody`);
    return [...command.detached];
  });
}

const idsOf = (waiting: readonly Waiting[]): RequestId[] => waiting.map(({ acquire }) => acquire.requestId);

describe('several slots that come free in one entry go to who is called for', () => {
  it('by an expiry', async () => {
    const { cluster, leader, gone, here } = await mixed(3, 3_000);
    const { applied } = cluster.replica(leader).context;
    const tokens = [];
    for (const { call } of here) tokens.push((await grantOf(cluster, call)).token);
    expect(new Set(tokens).size).toBeLessThan(3);
    expect(waiters(cluster)).toEqual(gone.map(({ acquire }) => acquire.holder));
    expect(cluster.replica(leader).context.applied).toBeGreaterThan(applied);
  });

  it('by the end of a cool-down', async () => {
    const { cluster, gone, here } = await mixed(3, 3_000, 1_000);
    for (const { call } of here) await grantOf(cluster, call);
    expect(waiters(cluster)).toEqual(gone.map(({ acquire }) => acquire.holder));
  });
});

describe('entries that are on their way together', () => {
  it('pass over those behind whom the earlier ones grant', async () => {
    const made = await mixed(3);
    const { cluster, leader, followers, held, gone, here } = made;
    cluster.cut(leader, ...followers);
    for (const lease of held) cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await cluster.run(5);
    const ids = idsOf(gone);
    // Each as many as are in front of the last waiter whom it, or one before it, may come to.
    expect(passedOver(made)).toEqual([ids.slice(0, 1), ids.slice(0, 2), ids]);
    cluster.heal();
    for (const { call } of here) await grantOf(cluster, call);
    expect(waiters(cluster)).toEqual(gone.map(({ acquire }) => acquire.holder));
  });

  it('list the same again once nothing is on its way', async () => {
    const made = await mixed(2);
    const { cluster, leader, followers, held, gone, here } = made;
    const [first, second] = held;
    const [next] = here;
    if (first === undefined || second === undefined || next === undefined) throw new Error('two are held');
    cluster.call(leader, { type: 'release', lease: refOf(first) });
    await grantOf(cluster, next.call);
    cluster.cut(leader, ...followers);
    cluster.call(leader, { type: 'release', lease: refOf(second) });
    await cluster.run(5);
    expect(passedOver(made)).toEqual([idsOf(gone)]);
  });

  it('pass over those behind a waiter who withdraws in front', async () => {
    const { cluster, leader, followers, lease } = await heldScene({ options: { waiterGraceMs: 60_000 } });
    const first = await wait(cluster, leader, 'w1');
    const gone = await wait(cluster, leader, 'w2');
    const last = await wait(cluster, followers[0], 'w3');
    cluster.cancel(gone.call);
    cluster.cut(leader, ...followers);
    const { domain, requestId } = first.acquire;
    cluster.call(leader, { type: 'withdraw', domain, requestId });
    cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await cluster.run(5);
    cluster.heal();
    await grantOf(cluster, last.call);
    expect(waiters(cluster)).toEqual(['w2']);
  });
});
