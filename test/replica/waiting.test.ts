/** Queued acquires on a healthy cluster: bounded hold, place in the queue, hand-over, detached callers, ends of waits. */
import { describe, expect, it } from 'vitest';
import { acquire, acquireOf, expectEqualStates, failureOf, get, granted, release } from './helpers.js';
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

describe('a queued call', () => {
  it.each([
    ['half its TTL', { ttlMs: 6_000, timeoutMs: 100_000, heldMs: 3_000 }],
    ['20 s', { ttlMs: 60_000, timeoutMs: 100_000, heldMs: 20_000 }],
    ['until 250 ms before its deadline', { ttlMs: 60_000, timeoutMs: 4_000, heldMs: 3_750 }],
    ['three quarters of a short deadline', { ttlMs: 60_000, timeoutMs: 600, heldMs: 450 }],
  ])('is held for %s, then told its place', async (_, { ttlMs, timeoutMs, heldMs }) => {
    const { cluster, leader, followers, lease } = await heldScene({ options: { waiterGraceMs: 60_000 } });
    await wait(cluster, leader, 'in front');
    for (const node of [leader, followers[0]]) {
      const { call } = await wait(cluster, node, `at ${node}`, { ttlMs }, timeoutMs);
      const position = waiters(cluster).length;
      const found = await outcomeOf(cluster, call);
      expect(found).toEqual({ type: 'queued', position, current: lease });
      const held = (call.answeredAt ?? 0) - call.sentAt;
      expect(held).toBeGreaterThanOrEqual(heldMs);
      expect(held).toBeLessThan(heldMs + 50);
      // The answer may take a while more to the client.
      expect(held).toBeLessThan(timeoutMs - 75);
    }
  });

  it('keeps its place when it calls again, through any node', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const first = await wait(cluster, followers[0], 'w1', { ttlMs: 6_000 });
    const second = await wait(cluster, leader, 'w2', { ttlMs: 6_000 });
    for (const node of [followers[1], leader, followers[0]]) {
      expect(await outcomeOf(cluster, first.call)).toMatchObject({ type: 'queued', position: 1 });
      expect(await outcomeOf(cluster, second.call)).toMatchObject({ type: 'queued', position: 2 });
      callAgain(cluster, node, first);
      callAgain(cluster, node, second);
      await cluster.run(10);
      expect(waiters(cluster)).toEqual(['w1', 'w2']);
    }
    await release(cluster, leader, lease);
    const handed = await grantOf(cluster, first.call);
    expect(handed.token).toBeGreaterThan(lease.token);
    expect(outcome(second.call)).toBeUndefined();
    await release(cluster, followers[0], handed);
    expect((await grantOf(cluster, second.call)).token).toBeGreaterThan(handed.token);
    await expectEqualStates(cluster);
  });

  it('needs no entry for calling again, and is told of another domain that the id is used', async () => {
    const { cluster, leader } = await heldScene();
    const waiting = await wait(cluster, leader, 'w');
    const { applied } = cluster.replica(leader).context;
    callAgain(cluster, leader, waiting);
    await cluster.run(1_000);
    expect(outcome(waiting.call)).toBeUndefined();
    expect(cluster.replica(leader).context.applied).toBe(applied);
    const other = cluster.call(leader, { ...waiting.acquire, ttlMs: TTL_MS + 1 });
    expect(failureOf(await cluster.answered(other)).reason).toBe('REQUEST_ID_REUSED');
  });

  it('is shown by Get, in order and at most a hundred; the hold of the queue ends at its limit', async () => {
    const { cluster, leader } = await heldScene({ limits: { queue: 102 } });
    const calls = Array.from({ length: 102 }, (_, at) =>
      cluster.call(
        leader,
        acquireOf('d', { ttlMs: TTL_MS, waitMs: 60_000, holder: `w${at}`, metadata: [['at', `${at}`]] }),
      ),
    );
    await cluster.run(50);
    const seen = await get(cluster, leader, 'd');
    expect(seen.queueLength).toBe(102);
    expect(seen.waiters.map(({ holder }) => holder)).toEqual(Array.from({ length: 100 }, (_, at) => `w${at}`));
    expect(seen.waiters[7]?.metadata).toEqual([['at', '7']]);
    const full = await acquire(cluster, leader, acquireOf('d', { waitMs: 1 }));
    expect(full).toMatchObject({ type: 'notGranted', reason: 'queue_full', queueLength: 102 });
    expect(calls.every((call) => call.result === undefined)).toBe(true);
  });

  it('of a principal that waits for too much is refused with what, whose and how much', async () => {
    const { cluster, leader } = await heldScene({ limits: { waitersPerPrincipal: 2 } });
    await wait(cluster, leader, 'w1');
    await wait(cluster, leader, 'w2');
    const failure = failureOf(await cluster.answered(cluster.call(leader, acquireOf('d', { waitMs: 1_000 }))));
    expect(failure).toMatchObject({ reason: 'QUOTA_EXCEEDED' });
    expect(failure.message).toBe('addr:test has as many waiters as it may: 2');
  });

  it('of a principal that holds too much is refused, and so is one below a prefix that is full', async () => {
    const prefixes = [{ prefix: 'p/', leases: 1, waiters: 0 }];
    const { cluster, leader } = await scene({ limits: { leasesPerPrincipal: 2, prefixes } });
    const refusal = async (domain: string): Promise<string> =>
      failureOf(await cluster.answered(cluster.call(leader, acquireOf(domain)))).message;
    await granted(cluster, leader, acquireOf('p/1'));
    expect(await refusal('p/2')).toBe('prefix p/ has as many leases as it may: 1');
    await granted(cluster, leader, acquireOf('q'));
    expect(await refusal('r')).toBe('addr:test has as many leases and waiters as it may: 2');
  });
});

describe('a hand-over', () => {
  it('goes through a chain of twenty waiters, one entry each', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const nodes = [leader, ...followers];
    const chain = [];
    for (let at = 0; at < 20; at++) chain.push(await wait(cluster, nodes[at % 3] ?? '', `w${at}`));
    let held = lease;
    for (const { call } of chain) {
      await release(cluster, leader, held);
      const next = await grantOf(cluster, call);
      // The token is the revision of the entry that freed it: the release before, and nothing else was written.
      expect(next.token - held.token).toBe(held === lease ? 21 : 1);
      held = next;
    }
    await expectEqualStates(cluster);
  });

  it('of one release with five hundred waiters causes one answer', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const calls = Array.from({ length: 500 }, (_, at) =>
      cluster.call(
        followers[at % 2] ?? '',
        acquireOf('d', { ttlMs: TTL_MS, waitMs: 60_000, holder: `w${at}` }),
        60_000,
      ),
    );
    await cluster.until('all to wait', () => waiters(cluster).length === 500);
    await cluster.run(10);
    const { applied } = cluster.replica(leader).context;
    await release(cluster, leader, lease);
    await cluster.run(1_000);
    const told = calls.filter((call) => call.result !== undefined);
    expect(told).toHaveLength(1);
    const [first] = told;
    expect(first && outcome(first)).toMatchObject({ type: 'granted' });
    expect(cluster.replica(leader).context.applied).toBe(applied + 1);
  });

  it('begins the time of the lease, however long the call had waited', async () => {
    const { cluster, leader, lease } = await heldScene();
    const { call } = await wait(cluster, leader, 'w', { ttlMs: 10_000 });
    await cluster.run(4_000);
    await release(cluster, leader, lease);
    await grantOf(cluster, call);
    const grantedAt = cluster.now;
    await cluster.until('its expiry', () => holderOf(cluster) === undefined);
    expect(cluster.now - grantedAt).toBeGreaterThan(10_000 * 1.01 + 90);
    expect(cluster.now - grantedAt).toBeLessThan(10_000 * 1.01 + 200);
  });

  it('by an expiry, a withdrawal and an operator is the same', async () => {
    const { cluster, leader } = await scene();
    const request = acquireOf('d', { ttlMs: 3_000 });
    await granted(cluster, leader, request);
    const byExpiry = await wait(cluster, leader, 'w1');
    const byWithdrawal = await wait(cluster, leader, 'w2');
    const byForce = await wait(cluster, leader, 'w3');
    const { token } = await grantOf(cluster, byExpiry.call);
    const { domain, requestId } = byExpiry.acquire;
    cluster.call(leader, { type: 'withdraw', domain, requestId });
    const second = await grantOf(cluster, byWithdrawal.call);
    expect(second.token).toBeGreaterThan(token);
    cluster.call(leader, { type: 'forceRelease', domain, token: second.token, note: 'stuck' });
    expect((await grantOf(cluster, byForce.call)).token).toBeGreaterThan(second.token);
  });
});

describe('a call that has gone', () => {
  it('is detached at once: passed over at the release, its place kept', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    for (const node of [leader, followers[0]]) {
      const first = await wait(cluster, node, `gone at ${node}`);
      const second = await wait(cluster, node, `stays at ${node}`);
      cluster.cancel(first.call);
      await cluster.run(5);
      await release(cluster, leader, (await get(cluster, leader, 'd')).lease ?? lease);
      await grantOf(cluster, second.call);
      expect(waiters(cluster)).toEqual([`gone at ${node}`]);
      callAgain(cluster, leader, first);
      await cluster.run(5);
      await release(cluster, leader, await grantOf(cluster, second.call));
      await grantOf(cluster, first.call);
    }
  });

  it('leaves the queue when nobody calls for the grace, and not before', async () => {
    const { cluster, leader } = await heldScene({ options: { waiterGraceMs: 2_000 } });
    const waiting = await wait(cluster, leader, 'w');
    cluster.cancel(waiting.call);
    await cluster.run(1_900);
    expect(waiters(cluster)).toEqual(['w']);
    // Called again: the grace is counted from the end of that call.
    callAgain(cluster, leader, waiting);
    await cluster.run(3_000);
    expect(waiters(cluster)).toEqual(['w']);
    cluster.cancel(waiting.call);
    await cluster.run(1_900);
    expect(waiters(cluster)).toEqual(['w']);
    await cluster.run(200);
    expect(waiters(cluster)).toEqual([]);
    const late = await outcomeOf(cluster, callAgain(cluster, leader, waiting));
    expect(late).toMatchObject({ type: 'ended', ended: { reason: 'left_queue', lease: undefined } });
  });

  it('of two for one id does not detach the other (S5)', async () => {
    const { cluster, leader, followers, lease } = await heldScene({ options: { waiterGraceMs: 1_000 } });
    const waiting = await wait(cluster, followers[0], 'w');
    const old = waiting.call;
    callAgain(cluster, followers[1], waiting);
    await cluster.run(10);
    cluster.cancel(old);
    await cluster.run(2_000);
    expect(waiters(cluster)).toEqual(['w']);
    await release(cluster, leader, lease);
    await grantOf(cluster, waiting.call);
  });

  it('with the node that took it is detached, and leaves after the grace', async () => {
    const { cluster, leader, followers, lease } = await heldScene({ options: { waiterGraceMs: 1_000 } });
    await wait(cluster, followers[0], 'lost');
    const second = await wait(cluster, leader, 'stays');
    cluster.kill(followers[0]);
    await cluster.run(5);
    await release(cluster, leader, lease);
    await grantOf(cluster, second.call);
    expect(waiters(cluster)).toEqual(['lost']);
    await cluster.run(1_100);
    expect(waiters(cluster)).toEqual([]);
  });

  it('with many others is ended with them in one entry, however many there are', async () => {
    const { cluster, leader, followers } = await heldScene({ options: { waiterGraceMs: 1_000 } });
    const calls = Array.from({ length: 300 }, () =>
      cluster.call(followers[0], acquireOf('d', { ttlMs: TTL_MS, waitMs: 60_000 }), 60_000),
    );
    await cluster.until('all to wait', () => waiters(cluster).length === calls.length);
    await cluster.run(10);
    const { applied } = cluster.replica(leader).context;
    cluster.kill(followers[0]);
    await cluster.run(1_200);
    expect(waiters(cluster)).toEqual([]);
    expect(cluster.replica(leader).context.applied).toBe(applied + 1);
  });

  it('both calls of one id are told of its grant', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const waiting = await wait(cluster, followers[0], 'w');
    const old = waiting.call;
    callAgain(cluster, followers[1], waiting);
    await cluster.run(10);
    await release(cluster, leader, lease);
    expect((await grantOf(cluster, old)).token).toBe((await grantOf(cluster, waiting.call)).token);
  });
});

describe('a domain that is free with a queue', () => {
  it('is granted to the next call of a waiter, whoever stands in front', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const first = await wait(cluster, leader, 'w1');
    const second = await wait(cluster, followers[0], 'w2');
    cluster.cancel(first.call);
    cluster.cancel(second.call);
    await cluster.run(5);
    await release(cluster, leader, lease);
    expect(holderOf(cluster)).toBeUndefined();
    expect(waiters(cluster)).toEqual(['w1', 'w2']);
    const held = await grantOf(cluster, callAgain(cluster, followers[1], second));
    callAgain(cluster, leader, first);
    await release(cluster, leader, held);
    await grantOf(cluster, first.call);
  });

  it('goes to the call that came back while the release that passes it over was under way', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const waiting = await wait(cluster, leader, 'w');
    cluster.cancel(waiting.call);
    await cluster.run(5);
    cluster.cut(leader, ...followers);
    const releasing = cluster.call(leader, { type: 'release', lease: { domain: lease.domain, token: lease.token } });
    await cluster.run(5);
    callAgain(cluster, leader, waiting);
    await cluster.run(5);
    expect(waiting.call.result).toBeUndefined();
    cluster.heal();
    await cluster.answered(releasing);
    await grantOf(cluster, waiting.call);
  });

  it('goes to who is called for when the one in front withdraws on the way to its grant', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const first = await wait(cluster, leader, 'w1');
    const second = await wait(cluster, leader, 'w2');
    cluster.cancel(first.call);
    cluster.cancel(second.call);
    await cluster.run(5);
    await release(cluster, leader, lease);
    cluster.cut(leader, ...followers);
    const { domain, requestId } = first.acquire;
    cluster.call(leader, { type: 'withdraw', domain, requestId });
    callAgain(cluster, leader, first);
    callAgain(cluster, leader, second);
    await cluster.run(5);
    cluster.heal();
    await grantOf(cluster, second.call);
    expect(await outcomeOf(cluster, first.call)).toMatchObject({ type: 'ended', ended: { reason: 'withdrawn' } });
  });

  it('is told to be over, to a call that came behind the Withdraw, only when a majority has confirmed the leader since', async () => {
    const { cluster, leader } = await heldScene();
    const waiting = await wait(cluster, leader, 'w');
    cluster.latency = [30, 30];
    const { domain, requestId } = waiting.acquire;
    const withdrawing = cluster.call(leader, { type: 'withdraw', domain, requestId });
    await cluster.run(40);
    callAgain(cluster, leader, waiting);
    await cluster.answered(withdrawing);
    expect(await outcomeOf(cluster, waiting.call)).toMatchObject({ type: 'ended', ended: { reason: 'withdrawn' } });
    // There and back; the Withdraw itself was confirmed by what had left before the call came.
    expect((waiting.call.answeredAt ?? 0) - waiting.call.sentAt).toBeGreaterThanOrEqual(60);
  });

  it('goes on to the one behind when the one in front is called for by nobody any more', async () => {
    const { cluster, leader, followers, lease } = await heldScene();
    const first = await wait(cluster, leader, 'w1');
    const second = await wait(cluster, leader, 'w2');
    cluster.cut(leader, ...followers);
    // Decided while both are called for; when it is applied, the first has withdrawn: it is the second's turn.
    const { domain, requestId } = first.acquire;
    cluster.call(leader, { type: 'withdraw', domain, requestId });
    cluster.call(leader, { type: 'release', lease: { domain: lease.domain, token: lease.token } });
    await cluster.run(5);
    cluster.heal();
    await grantOf(cluster, second.call);
  });
});

describe('a wait', () => {
  it('that is over is answered so, with what is in the way; a later call is told that the request is over', async () => {
    const { cluster, leader, lease } = await heldScene();
    const waiting = await wait(cluster, leader, 'w', { waitMs: 3_000 });
    const behind = await wait(cluster, leader, 'behind');
    expect(await outcomeOf(cluster, waiting.call)).toEqual({
      type: 'notGranted',
      reason: 'wait_over',
      current: lease,
      queueLength: 1,
      coolDownLeftMs: 0,
    });
    const waited = (waiting.call.answeredAt ?? 0) - waiting.call.sentAt;
    expect(waited).toBeGreaterThanOrEqual(3_000);
    expect(waited).toBeLessThan(3_100);
    expect(waiters(cluster)).toEqual(['behind']);
    expect(behind.call.result).toBeUndefined();
    const late = await outcomeOf(cluster, callAgain(cluster, leader, waiting));
    expect(late).toMatchObject({ type: 'ended', ended: { reason: 'left_queue' } });
  });

  it('goes on over many calls, and is not counted anew by them', async () => {
    const { cluster, leader } = await heldScene();
    const waiting = await wait(cluster, leader, 'w', { waitMs: 7_000, ttlMs: 4_000 });
    const sentAt = waiting.call.sentAt;
    for (let calls = 0; calls < 3; calls++) {
      expect((await outcomeOf(cluster, waiting.call)).type).toBe('queued');
      callAgain(cluster, leader, waiting);
    }
    expect(await outcomeOf(cluster, waiting.call)).toMatchObject({ reason: 'wait_over' });
    expect(cluster.now - sentAt).toBeLessThan(7_100);
  });
});

describe('a leader of many waiters', () => {
  it('looks at those alone for whom it is time', async () => {
    const { cluster, leader, followers, lease } = await heldScene({ options: { waiterGraceMs: 2_000 } });
    const held = await wait(cluster, leader, 'held', { ttlMs: 3_000 });
    const over = await wait(cluster, leader, 'over', { waitMs: 1_000 });
    const gone = await wait(cluster, followers[0], 'gone');
    const { attachments } = cluster.replica(leader).context.leadership?.waits ?? {};
    const allLookedAt = (): never => {
      throw new Error('all waiters are looked at');
    };
    Object.assign(attachments ?? {}, { values: allLookedAt, forEach: allLookedAt, [Symbol.iterator]: allLookedAt });
    cluster.cancel(gone.call);
    expect(await outcomeOf(cluster, over.call)).toMatchObject({ reason: 'wait_over' });
    expect(await outcomeOf(cluster, held.call)).toMatchObject({ type: 'queued', position: 1 });
    callAgain(cluster, leader, held);
    await cluster.until('the end of the grace', () => waiters(cluster).length === 1, 2_200);
    await release(cluster, leader, lease);
    await grantOf(cluster, held.call);
  });
});
