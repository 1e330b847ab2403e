/** A free domain with a queue: the calls that the leader holds are proposed, and what may come between. */
import { describe, expect, it } from 'vitest';
import { acquireOf, granted, refOf, release } from './helpers.js';
import { callAgain, grantOf, heldScene, holderOf, outcome, outcomeOf, scene, wait, waiters } from './queue-kit.js';
import type { Scene, Waiting } from './queue-kit.js';

/** `d` is free, each of `holders` waits for it and nobody calls; the leader reaches nobody, so that what it appends stays open. */
async function freeAndCut(
  holders: readonly string[],
  more: { waitMs?: number } = {},
): Promise<Scene & { first: Waiting; waiting: readonly Waiting[] }> {
  const made = await heldScene({ options: { waiterGraceMs: 2_000 } });
  const { cluster, leader, followers, lease } = made;
  const waiting: Waiting[] = [];
  for (const holder of holders) waiting.push(await wait(cluster, leader, holder, more));
  for (const { call } of waiting) cluster.cancel(call);
  await cluster.run(5);
  await release(cluster, leader, lease);
  cluster.cut(leader, ...followers);
  const [first] = waiting;
  if (first === undefined) throw new Error('nobody waits');
  return { ...made, first, waiting };
}

const applied = ({ cluster, leader }: Scene): number => cluster.replica(leader).context.applied;

describe('the call of a waiter for whom the domain is free', () => {
  it('is one entry, whoever else calls meanwhile', async () => {
    const made = await freeAndCut(['w1', 'w2', 'w3']);
    const { cluster, leader, first, waiting } = made;
    const before = applied(made);
    for (const each of waiting) callAgain(cluster, leader, each);
    await cluster.run(100);
    cluster.heal();
    await grantOf(cluster, first.call);
    await cluster.run(100);
    expect(applied(made)).toBe(before + 1);
    expect(waiters(cluster)).toEqual(['w2', 'w3']);
  });

  it('is not told `queued` when its hold ends while its entry is on its way', async () => {
    const { cluster, leader, first } = await freeAndCut(['w']);
    // Held for 350 ms.
    callAgain(cluster, leader, first, 467);
    await cluster.run(380);
    cluster.heal();
    await grantOf(cluster, first.call);
  });

  it('is not overtaken by the end of its wait', async () => {
    const { cluster, leader, first } = await freeAndCut(['w'], { waitMs: 400 });
    callAgain(cluster, leader, first);
    await cluster.run(450);
    cluster.heal();
    await grantOf(cluster, first.call);
    await cluster.run(100);
    expect(holderOf(cluster)).toBe('w');
  });

  it('waits on when another was faster, and is granted after it', async () => {
    const { cluster, leader, first } = await freeAndCut(['w']);
    const faster = cluster.call(leader, acquireOf('d', { holder: 'faster', ttlMs: 60_000 }));
    callAgain(cluster, leader, first);
    await cluster.run(5);
    cluster.heal();
    const held = await grantOf(cluster, faster);
    await cluster.run(100);
    expect(first.call.result).toBeUndefined();
    await release(cluster, leader, held);
    await grantOf(cluster, first.call);
  });

  it('that has gone before its entry is applied, behind another that was faster, leaves after the grace', async () => {
    const { cluster, leader, first } = await freeAndCut(['w']);
    const faster = cluster.call(leader, acquireOf('d', { holder: 'faster', ttlMs: 60_000 }));
    callAgain(cluster, leader, first);
    await cluster.run(5);
    cluster.cancel(first.call);
    cluster.heal();
    await grantOf(cluster, faster);
    await cluster.run(1_800);
    expect(waiters(cluster)).toEqual(['w']);
    await cluster.run(300);
    expect(waiters(cluster)).toEqual([]);
  });

  it('begins the time of the lease with its grant', async () => {
    const { cluster, leader } = await scene({ holdMs: 4_000 });
    const { call } = await wait(cluster, leader, 'w', { ttlMs: 10_000 });
    await grantOf(cluster, call);
    const grantedAt = cluster.now;
    expect(grantedAt - call.sentAt).toBeGreaterThan(3_000);
    await cluster.until('its expiry', () => holderOf(cluster) === undefined);
    expect(cluster.now - grantedAt).toBeGreaterThan(10_000 * 1.01 + 90);
  });
});

describe('a free domain whose waiter calls while the leader has too much work', () => {
  it('is offered again until it is taken, and nobody is told that anything was refused', async () => {
    const made = await heldScene({ options: { maxUncommittedBytes: 1 } });
    const { cluster, leader, followers, lease } = made;
    const first = await wait(cluster, leader, 'w1');
    const second = await wait(cluster, leader, 'w2');
    for (const { call } of [first, second]) cluster.cancel(call);
    await cluster.run(5);
    await release(cluster, leader, lease);
    cluster.cut(leader, ...followers);
    const other = cluster.call(leader, acquireOf('other'));
    await cluster.run(5);
    const waits = cluster.replica(leader).context.leadership?.waits;
    callAgain(cluster, leader, second);
    callAgain(cluster, leader, first);
    await cluster.run(100);
    expect([...(waits?.unoffered ?? [])]).toEqual(['d']);
    expect([first.call.result, second.call.result]).toEqual([undefined, undefined]);
    cluster.heal();
    // By then both are called for: it is the turn of the one in front.
    await grantOf(cluster, first.call);
    await grantOf(cluster, other);
    expect(waiters(cluster)).toEqual(['w2']);
    expect(waits?.unoffered.size).toBe(0);
  });
});

describe('a call that comes back while the entry that passes it over is on its way', () => {
  it('is granted by an end of a cool-down', async () => {
    const { cluster, leader, followers } = await scene();
    await granted(cluster, leader, acquireOf('d', { ttlMs: 3_000, coolDownMs: 2_000 }));
    await cluster.until('the expiry', () => holderOf(cluster) === undefined);
    const waiting = await wait(cluster, leader, 'w');
    await cluster.run(1_900);
    cluster.cancel(waiting.call);
    cluster.cut(leader, ...followers);
    const opening = (): boolean =>
      [...(cluster.replica(leader).context.leadership?.pending.values() ?? [])].some(
        ({ command }) => command.type === 'endCoolDown',
      );
    await cluster.until('the EndCoolDown', opening, 400);
    callAgain(cluster, leader, waiting);
    await cluster.run(5);
    cluster.heal();
    await grantOf(cluster, waiting.call);
  });

  it('is not told of a grant that goes to another', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const first = await wait(cluster, leader, 'w1');
    const second = await wait(cluster, leader, 'w2');
    cluster.cancel(first.call);
    cluster.cut(leader, ...followers);
    await cluster.run(5);
    cluster.call(leader, { type: 'release', lease: refOf(lease) });
    callAgain(cluster, leader, first, 5_000);
    await cluster.run(5);
    cluster.heal();
    await grantOf(cluster, second.call);
    expect(outcome(first.call)).toBeUndefined();
    expect(await outcomeOf(cluster, first.call)).toMatchObject({
      type: 'queued',
      position: 1,
      current: { holder: 'w2' },
    });
  });
});

describe('a free domain whose waiter calls while leadership is being handed over', () => {
  it('is offered again and again, and granted when nobody has taken over', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const waiting = await wait(cluster, leader, 'w');
    cluster.cancel(waiting.call);
    await cluster.run(5);
    await release(cluster, leader, lease);
    const target = cluster.node(followers[0]);
    target.running?.store.stall();
    cluster.call(leader, acquireOf('other'));
    cluster.call(leader, { type: 'transferLeadership', to: target.member.node });
    callAgain(cluster, leader, waiting);
    await cluster.run(100);
    expect(waiting.call.result).toBeUndefined();
    await grantOf(cluster, waiting.call);
    expect(cluster.leader()).toBe(leader);
  });
});
