/** Who waits when leaders change; and which answers need a majority that confirms the leader after the call came. */
import { describe, expect, it } from 'vitest';
import { acquireOf, expectEqualStates, granted, refOf, release } from './helpers.js';
import {
  callAgain,
  grantOf,
  heldScene,
  holderOf,
  outcome,
  outcomeOf,
  scene,
  TTL_MS,
  wait,
  waiters,
} from './queue-kit.js';

describe('when the leader changes', () => {
  it('a held call is passed on with what is left of its hold, and its request keeps its place', async () => {
    const { cluster, leader, followers } = await heldScene();
    const [entry] = followers;
    const first = await wait(cluster, entry, 'w1', { ttlMs: 10_000 });
    const second = await wait(cluster, entry, 'w2', { ttlMs: 10_000 });
    await cluster.run(3_000);
    cluster.kill(leader);
    await cluster.untilLeader();
    expect(await outcomeOf(cluster, first.call)).toMatchObject({ type: 'queued', position: 1 });
    expect((first.call.answeredAt ?? 0) - first.call.sentAt).toBeLessThan(5_050);
    expect(await outcomeOf(cluster, second.call)).toMatchObject({ type: 'queued', position: 2 });
    callAgain(cluster, entry, second);
    await cluster.run(10);
    expect(waiters(cluster)).toEqual(['w1', 'w2']);
  });

  it('a waiter of whom it has seen no call counts as attached for the grace, then leaves', async () => {
    for (const releasedInGrace of [true, false]) {
      const { cluster, leader, followers, lease } = await heldScene();
      // Its node is the one that dies: nobody calls for it any more.
      await wait(cluster, leader, 'w1');
      const second = await wait(cluster, followers[0], 'w2');
      cluster.kill(leader);
      const next = await cluster.untilLeader();
      await cluster.run(4_800);
      expect(waiters(cluster)).toEqual(['w1', 'w2']);
      if (!releasedInGrace) await cluster.run(300);
      await release(cluster, next, lease);
      expect(holderOf(cluster)).toBe(releasedInGrace ? 'w1' : 'w2');
      if (!releasedInGrace) await grantOf(cluster, second.call);
      expect(outcome(second.call)?.type).toBe(releasedInGrace ? undefined : 'granted');
    }
  });

  it('a waiter who has called is detached as soon as its last call ends', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const first = await wait(cluster, leader, 'w1');
    const second = await wait(cluster, followers[0], 'w2');
    cluster.kill(leader);
    const next = await cluster.untilLeader();
    callAgain(cluster, next, first);
    await cluster.run(10);
    cluster.cancel(first.call);
    await cluster.run(10);
    await release(cluster, next, lease);
    await grantOf(cluster, second.call);
    expect(waiters(cluster)).toEqual(['w1']);
  });

  it('a wait is counted anew from its no-op, and not ended within the grace of one it has seen no call of', async () => {
    const { cluster, leader, followers } = await heldScene();
    await wait(cluster, leader, 'unseen', { waitMs: 3_500 });
    const waiting = await wait(cluster, followers[0], 'w', { waitMs: 3_500 });
    await cluster.run(3_000);
    cluster.kill(leader);
    await cluster.untilLeader();
    const readyAt = cluster.now;
    expect(await outcomeOf(cluster, waiting.call)).toMatchObject({ reason: 'wait_over', queueLength: 1 });
    expect(cluster.now - readyAt).toBeGreaterThanOrEqual(3_490);
    expect(cluster.now - readyAt).toBeLessThan(3_600);
    await cluster.run(readyAt + 4_950 - cluster.now);
    expect(waiters(cluster)).toEqual(['unseen']);
    await cluster.run(150);
    expect(waiters(cluster)).toEqual([]);
  });

  it('the one that was deposed answers nothing, and its own callers are served by the next', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const waiting = await wait(cluster, leader, 'w');
    cluster.cut(leader, ...followers);
    await cluster.until('another leader', () => ![undefined, leader].includes(cluster.leader()));
    await release(cluster, followers[0], lease);
    expect(holderOf(cluster)).toBe('w');
    await cluster.run(200);
    expect(waiting.call.result).toBeUndefined();
    cluster.heal();
    expect((await grantOf(cluster, waiting.call)).token).toBeGreaterThan(lease.token);
    await expectEqualStates(cluster);
  });

  it('a domain that was left free with its queue goes to the next call', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const first = await wait(cluster, followers[0], 'w1');
    const second = await wait(cluster, followers[0], 'w2');
    cluster.cancel(first.call);
    cluster.cancel(second.call);
    await cluster.run(5);
    await release(cluster, leader, lease);
    cluster.kill(leader);
    await cluster.untilLeader();
    expect(waiters(cluster)).toEqual(['w1', 'w2']);
    await grantOf(cluster, callAgain(cluster, followers[1], second));
    expect(waiters(cluster)).toEqual(['w1']);
  });
});

describe('an answer that grants', () => {
  it('leaves with the freeing entry, but after a round to a call that came when that was appended already', async () => {
    const { cluster, leader, lease } = await heldScene();
    const waiting = await wait(cluster, leader, 'w');
    const early = waiting.call;
    cluster.latency = [20, 20];
    cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await cluster.run(10);
    const late = callAgain(cluster, leader, waiting);
    const [one, other] = [await grantOf(cluster, early), await grantOf(cluster, late)];
    expect(other.token).toBe(one.token);
    expect((late.answeredAt ?? 0) - (early.answeredAt ?? 0)).toBeGreaterThanOrEqual(40);
  });

  it('does not leave to such a call at a leader that is cut off', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const waiting = await wait(cluster, leader, 'w');
    const early = waiting.call;
    cluster.latency = [20, 20];
    cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await cluster.run(10);
    const late = callAgain(cluster, leader, waiting);
    await cluster.until('the first answer', () => early.result !== undefined);
    cluster.cut(leader, ...followers);
    await cluster.run(400);
    expect(late.result).toBeUndefined();
  });

  it('again renews from the arrival of the call that asked again', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const waiting = await wait(cluster, leader, 'w', { ttlMs: 10_000 });
    await release(cluster, leader, lease);
    await grantOf(cluster, waiting.call);
    await cluster.run(4_000);
    const again = callAgain(cluster, followers[0], waiting);
    await grantOf(cluster, again);
    await cluster.until('its expiry', () => holderOf(cluster) === undefined);
    expect(cluster.now - again.sentAt).toBeGreaterThan(10_000 * 1.01 + 100);
    expect(cluster.now - again.sentAt).toBeLessThan(10_000 * 1.01 + 200);
  });
});

describe('a leader that holds calls for a free domain', () => {
  it('proposes them in order when the hold of the history ends', async () => {
    const { cluster, leader, followers } = await scene({ holdMs: 4_000 });
    const first = await wait(cluster, followers[0], 'w1');
    const gone = await wait(cluster, leader, 'gone', { domain: 'e' as never });
    const behind = await wait(cluster, leader, 'behind', { domain: 'e' as never });
    const second = await wait(cluster, leader, 'w2');
    cluster.cancel(gone.call);
    const held = await grantOf(cluster, first.call);
    expect(cluster.now).toBeGreaterThan(4_000);
    await grantOf(cluster, behind.call);
    expect(outcome(second.call)).toBeUndefined();
    await release(cluster, leader, held);
    await grantOf(cluster, second.call);
  });

  it('proposes them when an expiry passed over one who is there again, for one who has withdrawn', async () => {
    const { cluster, leader, followers } = await scene();
    await granted(cluster, leader, acquireOf('d', { ttlMs: 3_000 }));
    const first = await wait(cluster, leader, 'w1');
    const second = await wait(cluster, leader, 'w2');
    await cluster.run(2_800);
    cluster.cancel(first.call);
    const due = (): boolean =>
      cluster.replica(leader).context.leadership?.clock.timed.get('d' as never)?.expiring !== undefined;
    await cluster.run(200);
    cluster.cut(leader, ...followers);
    const { domain, requestId } = second.acquire;
    cluster.call(leader, { type: 'withdraw', domain, requestId });
    await cluster.until('the Expire', due, 400);
    callAgain(cluster, leader, first);
    await cluster.run(5);
    cluster.heal();
    await grantOf(cluster, first.call);
    expect(await outcomeOf(cluster, second.call)).toMatchObject({ type: 'ended', ended: { reason: 'withdrawn' } });
  });

  it('gives each of several slots that are free to a call that it holds', async () => {
    const { cluster, leader } = await scene();
    const slots = { slots: 2, ttlMs: TTL_MS, waitMs: 60_000 };
    const take = (holder: string) => cluster.call(leader, acquireOf('d', { ...slots, holder }));
    const [one, two] = [await grantOf(cluster, take('one')), await grantOf(cluster, take('two'))];
    expect([one.domain, two.domain]).toEqual(['d#0', 'd#1']);
    const waiting = [await wait(cluster, leader, 'w1', slots), await wait(cluster, leader, 'w2', slots)];
    for (const { call } of waiting) cluster.cancel(call);
    await cluster.run(5);
    await release(cluster, leader, two);
    await release(cluster, leader, one);
    const taken: string[] = [];
    for (const each of waiting) taken.push((await grantOf(cluster, callAgain(cluster, leader, each))).domain);
    expect(taken).toEqual(['d#0', 'd#1']);
  });

  it('gives several slots to calls that came together', async () => {
    const { cluster, leader, followers } = await scene();
    const slots = { slots: 3, ttlMs: TTL_MS, waitMs: 60_000 };
    const held = [];
    for (let at = 0; at < 3; at++) held.push(await granted(cluster, leader, acquireOf('d', slots)));
    const waiting = [await wait(cluster, leader, 'w1', slots), await wait(cluster, leader, 'w2', slots)];
    for (const { call } of waiting) cluster.cancel(call);
    await cluster.run(5);
    cluster.cut(leader, ...followers);
    for (const lease of held) cluster.call(leader, { type: 'release', lease: refOf(lease) });
    // Both are here again before any release is applied that passes them over.
    for (const each of waiting) callAgain(cluster, leader, each);
    await cluster.run(5);
    cluster.heal();
    const taken: string[] = [];
    for (const { call } of waiting) taken.push((await grantOf(cluster, call)).domain);
    expect(taken).toEqual(['d#0', 'd#1']);
  });
});
