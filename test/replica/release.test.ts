/** How soon a domain is free again, by each way in which its holder or a waiter goes. */
import { describe, expect, it } from 'vitest';
import { acquireOf, answerOf, granted, refOf } from './helpers.js';
import { grantOf, heldScene, holderOf, outcomeOf, scene, TTL_MS, wait, waiters } from './queue-kit.js';
import type { Scene } from './queue-kit.js';

/** Counts what the leader sends back for calls that were passed on, and what each node tells its clients of acquires. */
function countAnswers({ cluster }: Scene, calls: readonly { readonly id: number }[]): () => number {
  let results = 0;
  const ids = new Set(calls.map(({ id }) => id));
  const dispatch = cluster.dispatchTo.bind(cluster);
  cluster.dispatchTo = (node, event) => {
    if (event.type === 'forwardResult' && ids.has(event.id)) results++;
    dispatch(node, event);
  };
  return () => results;
}

describe('five hundred waiters on one domain', () => {
  it('cause one answer for each release, and one entry, however many releases there are', async () => {
    const made = await heldScene();
    const { cluster, leader, followers, lease } = made;
    const calls = Array.from({ length: 500 }, (_, at) =>
      cluster.call(followers[0], acquireOf('d', { ttlMs: TTL_MS, waitMs: 60_000, holder: `w${at}` }), 60_000),
    );
    await cluster.run(100);
    const queue = waiters(cluster);
    expect(queue).toHaveLength(calls.length);
    const answers = countAnswers(made, calls);
    const { applied } = cluster.replica(leader).context;
    let held = refOf(lease);
    for (let at = 0; at < 20; at++) {
      await cluster.answered(cluster.call(leader, { type: 'release', lease: held }));
      const call = calls[Number(queue[at]?.slice(1))];
      if (call === undefined) throw new Error('no such call');
      // The release's own entry is what grants.
      held = refOf(await grantOf(cluster, call));
      expect(answers()).toBe(at + 1);
      expect(cluster.replica(leader).context.applied).toBe(applied + at + 1);
    }
    expect(calls.filter(({ result }) => result !== undefined)).toHaveLength(20);
  });
});

describe('a caller that gives up', () => {
  it('with a Withdraw leaves the domain free in less than a second, whatever had become of its acquire', async () => {
    for (const held of [false, true]) {
      const { cluster, leader, followers } = held ? await heldScene() : await scene();
      const acquire = acquireOf('d', { ttlMs: TTL_MS, waitMs: 60_000, holder: 'unsure' });
      const call = cluster.call(followers[0], acquire, 60_000);
      // Not one millisecond later: nobody knows yet what the acquire came to.
      cluster.cancel(call);
      const next = cluster.call(followers[1], acquireOf('e', { holder: 'other' }));
      await cluster.answered(next);
      const givenUpAt = cluster.now;
      const { domain, requestId } = acquire;
      const withdrawn = cluster.call(followers[1], { type: 'withdraw', domain, requestId });
      expect(answerOf(await cluster.answered(withdrawn)).type).toBe('withdraw');
      expect(cluster.now - givenUpAt).toBeLessThan(1_000);
      expect(holderOf(cluster)).toBe(held ? 'first' : undefined);
      expect(waiters(cluster)).toEqual([]);
      if (!held) await granted(cluster, leader, acquireOf('d'));
    }
  });

  it('while it waits is passed over from then on, and the next is granted with the release', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const first = await wait(cluster, followers[0], 'w1');
    const second = await wait(cluster, followers[1], 'w2');
    cluster.cancel(first.call);
    const { domain, requestId } = first.acquire;
    await cluster.answered(cluster.call(followers[0], { type: 'withdraw', domain, requestId }));
    expect(waiters(cluster)).toEqual(['w2']);
    const releasedAt = cluster.now;
    cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await grantOf(cluster, second.call);
    expect(cluster.now - releasedAt).toBeLessThan(50);
  });
});

describe('a caller that vanishes', () => {
  it('with its node leaves the queue within the grace; a domain is not kept for it', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    await wait(cluster, followers[0], 'lost');
    cluster.kill(followers[0]);
    const goneAt = cluster.now;
    cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await cluster.until('the domain to be free', () => holderOf(cluster) !== 'first');
    expect(holderOf(cluster)).toBeUndefined();
    expect((await granted(cluster, leader, acquireOf('d'))).domain).toBe('d');
    await cluster.until('the queue to be empty', () => waiters(cluster).length === 0);
    expect(cluster.now - goneAt).toBeGreaterThanOrEqual(5_000);
    expect(cluster.now - goneAt).toBeLessThan(5_100);
  });
});

describe('a release', () => {
  it('wins over a renewal that is in flight: the renewal is told that the lease is released', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    cluster.latency = [20, 20];
    const renewal = cluster.call(leader, { type: 'renew', leases: [refOf(lease)] });
    const released = cluster.call(leader, { type: 'release', lease: refOf(lease) });
    const next = cluster.call(followers[0], acquireOf('d', { holder: 'next' }));
    expect(answerOf(await cluster.answered(released))).toMatchObject({ released: true });
    const answer = answerOf(await cluster.answered(renewal));
    // Confirmed together with the release or before it; never live once the release is applied.
    const { results } = answer.type === 'renew' ? answer : { results: [] };
    const endedFirst = (renewal.answeredAt ?? 0) >= (released.answeredAt ?? 0);
    expect(results).toMatchObject([{ type: endedFirst ? 'ended' : 'live' }]);
    await cluster.answered(next);
    expect(holderOf(cluster)).not.toBe('first');
  });

  it('wins also over one whose Void is on its way: nothing is timed or answered as live afterwards', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    // Flagged: half the TTL has passed without a renewal.
    await cluster.run(TTL_MS / 2 + 100);
    expect(cluster.replica(leader).context.lease.leases.get(lease.domain)?.checkpointLeftMs).toBeDefined();
    cluster.cut(leader, ...followers);
    const released = cluster.call(leader, { type: 'release', lease: refOf(lease) });
    const renewal = cluster.call(leader, { type: 'renew', leases: [refOf(lease)] });
    await cluster.run(5);
    cluster.heal();
    expect(answerOf(await cluster.answered(released))).toMatchObject({ released: true });
    expect(answerOf(await cluster.answered(renewal))).toMatchObject({
      results: [{ type: 'ended', ended: { reason: 'released', currentToken: 0 } }],
    });
    expect(cluster.replica(leader).context.leadership?.clock.timed.size).toBe(0);
    await granted(cluster, leader, acquireOf('d'));
  });
});

describe('a withdrawal', () => {
  it('that comes before the end of a wait which is over is what the held call is told', async () => {
    const { cluster, leader, followers } = await heldScene();
    const waiting = await wait(cluster, leader, 'w', { waitMs: 1_000 });
    const { domain, requestId } = waiting.acquire;
    await cluster.run(waiting.call.sentAt + 980 - cluster.now);
    cluster.cut(leader, ...followers);
    cluster.call(leader, { type: 'withdraw', domain, requestId });
    await cluster.run(100);
    const { leadership } = cluster.replica(leader).context;
    expect(leadership?.waits.attachments.get(requestId)?.ending).toMatchObject({ over: true });
    cluster.heal();
    expect(await outcomeOf(cluster, waiting.call)).toMatchObject({ type: 'ended', ended: { reason: 'withdrawn' } });
  });
});
