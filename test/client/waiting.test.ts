/** An acquire that waits: one place in the queue under one request id, however often it calls. */
import { describe, expect, test } from 'vitest';
import type { Answer, EndReason, LeaseView, NotGranted, NotGrantedReason } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Reply } from '../../src/client/channel.js';
import { NotGrantedError } from '../../src/client/errors.js';
import { notGranted } from '../support/answers.js';
import { answered, BASE, clientWorld as setUp, granted, refused, requestId, SILENT, within } from './world.js';
import type { Arrived, FakeNet } from './world.js';

const IN_THE_WAY: LeaseView = {
  domain: 'd' as Domain,
  token: (BASE + 50) as Revision,
  holder: 'worker-b',
  metadata: [],
  ttlMs: 15_000,
  grantedAtUnixMs: 1_796_000_000_000,
};

function queued(id: RequestId, position = 1): Answer {
  return { type: 'acquire', requestId: id, outcome: { type: 'queued', position, current: IN_THE_WAY } };
}

function refusal(id: RequestId, outcome: NotGranted): Answer {
  return { type: 'acquire', requestId: id, outcome };
}

function ended(id: RequestId, reason: EndReason): Answer {
  const view = { lease: undefined, reason, by: '', note: '', currentToken: 0 as Revision };
  return { type: 'acquire', requestId: id, outcome: { type: 'ended', ended: view } };
}

/** Each acquire that arrives is answered by the next of `replies`, held for `heldMs`; after them generously. */
function script(
  { net, time }: ReturnType<typeof setUp>,
  heldMs: number,
  ...replies: ((id: RequestId) => Reply | undefined)[]
): void {
  const { answer } = net;
  net.answer = (arrived: Arrived) => {
    const { call } = arrived;
    const next = call.type === 'acquire' ? replies.shift() : undefined;
    if (next === undefined || call.type !== 'acquire') return answer(arrived);
    time.surroundings.timers.set(heldMs, () => {
      const reply = next(call.requestId);
      if (reply !== undefined) arrived.reply(reply);
    });
    return undefined;
  };
}

const ids = (net: FakeNet): RequestId[] => net.of('acquire').map(({ call }) => call.requestId);

describe('an acquire that waits', () => {
  test('calls again with the same words after each `queued`, at once, until it is granted', async () => {
    const world = setUp();
    const { time, net, client } = world;
    script(world, 650, ...Array.from({ length: 9 }, () => (id: RequestId) => answered(queued(id))));
    const lease = await within(time, 8_000, client.acquire('d', { waitMs: 60_000, coolDownMs: 700, ttlMs: 9_000 }));
    expect(lease.isHeld()).toBe(true);
    const calls = net.of('acquire').map(({ call }) => call);
    expect(calls).toHaveLength(10);
    expect(new Set(calls.map((call) => JSON.stringify(call))).size).toBe(1);
    expect(calls[0]).toMatchObject({ requestId: requestId(1), waitMs: 60_000, coolDownMs: 700, slots: 1 });
    // Nothing but the holding takes time.
    expect(net.of('withdraw')).toEqual([]);
    expect(time.reading.monotonicMs).toBeLessThan(1_000 + 9 * 650 + 100);
  });

  test('counts the deadline of a grant from its own call, not from the first', async () => {
    const world = setUp();
    const { time, net, client } = world;
    script(world, 900, ...Array.from({ length: 20 }, () => (id: RequestId) => answered(queued(id))));
    const lease = await within(time, 20_000, client.acquire('d', { waitMs: 60_000, ttlMs: 15_000 }));
    net.answer = () => undefined;
    time.stall(14_400);
    expect(lease.state).not.toBe('lost');
    time.stall(400);
    expect(lease.state).toBe('lost');
  });

  test.each([
    ['a failover', () => refused('LEADER_CHANGED', { outcome: 'unknown' })],
    ['no leader', () => refused('NO_LEADER', { outcome: 'not-done' })],
    ['silence', () => SILENT],
  ] as const)('keeps its request id over %s, for as long as the wait lasts', async (_, failed) => {
    const world = setUp({ callTimeoutMs: 1_000 });
    const { time, net, client } = world;
    const failing = Array.from({ length: 30 }, () => () => failed());
    script(
      world,
      100,
      (id) => answered(queued(id)),
      ...failing,
      (id) => answered(queued(id)),
    );
    const lease = await within(time, 60_000, client.acquire('d', { waitMs: 60_000 }));
    expect(lease.isHeld()).toBe(true);
    expect(ids(net).length).toBeGreaterThan(31);
    expect(new Set(ids(net)).size).toBe(1);
    expect(net.of('withdraw')).toEqual([]);
  });

  test('is over when nobody answers any more for the rest of the wait; the request is withdrawn', async () => {
    const world = setUp({ callTimeoutMs: 1_000 });
    const { time, net, client } = world;
    const { answer } = net;
    const startMs = time.reading.monotonicMs;
    net.answer = (arrived) => (arrived.call.type === 'acquire' ? SILENT : answer(arrived));
    await expect(within(time, 8_000, client.acquire('d', { waitMs: 5_000 }))).rejects.toMatchObject({
      code: 'UNREACHABLE',
      outcome: 'unknown',
    });
    const tookMs = time.reading.monotonicMs - startMs;
    expect(tookMs).toBeGreaterThan(4_000);
    expect(tookMs).toBeLessThanOrEqual(6_020);
    expect(new Set(ids(net)).size).toBe(1);
    expect(net.of('withdraw').map(({ call }) => [call.domain, call.requestId])).toEqual([['d', requestId(1)]]);
  });

  test('takes a new id, with what is left of the wait, when its place was lost', async () => {
    const world = setUp();
    const { time, net, client } = world;
    script(
      world,
      500,
      (id) => answered(queued(id)),
      (id) => answered(ended(id, 'left_queue')),
      (id) => answered(queued(id)),
    );
    const lease = await within(time, 5_000, client.acquire('d', { waitMs: 30_000 }));
    expect(lease.isHeld()).toBe(true);
    expect(ids(net)).toEqual([1, 1, 2, 2].map(requestId));
    const [, , third] = net.of('acquire');
    expect(third?.call.waitMs).toBeLessThanOrEqual(29_000);
    expect(third?.call.waitMs).toBeGreaterThan(28_700);
  });

  test('ends when the cluster says that the wait is over', async () => {
    const world = setUp();
    const { time, net, client } = world;
    const over = { ...notGranted('wait_over', IN_THE_WAY), queueLength: 3 };
    script(
      world,
      500,
      (id) => answered(queued(id)),
      (id) => answered(refusal(id, over)),
    );
    const failed = client.acquire('d', { waitMs: 1_000 });
    await expect(within(time, 5_000, failed)).rejects.toMatchObject({
      code: 'NOT_GRANTED',
      reason: 'wait_over',
      current: { holder: 'worker-b', token: BigInt(BASE + 50) },
    });
    await expect(failed).rejects.toThrow(
      /^d was not granted within waitMs = 1000: it was held all the time, now by "worker-b"/,
    );
    // The cluster has ended the request: no copy of it can be granted any more.
    expect(net.of('withdraw')).toEqual([]);
  });

  test.each(['held', 'cool_down'] as const)(
    'that ends between two calls is over, not refused (%s at the last look)',
    async (reason) => {
      const world = setUp();
      const { time, net, client } = world;
      script(
        world,
        600,
        (id) => answered(queued(id)),
        (id) => answered(ended(id, 'left_queue')),
        (id) => answered(refusal(id, notGranted(reason, IN_THE_WAY))),
      );
      const failed = client.acquire('d', { waitMs: 1_000 });
      await expect(within(time, 5_000, failed)).rejects.toMatchObject({
        code: 'NOT_GRANTED',
        reason: 'wait_over',
        current: { holder: 'worker-b' },
      });
      expect(net.of('acquire').map(({ call }) => call.waitMs)).toEqual([1_000, 1_000, 0]);
    },
  );

  test('ends by itself, and withdraws, when the cluster still says `queued` after its time', async () => {
    const world = setUp();
    const { time, net, client } = world;
    script(world, 800, ...Array.from({ length: 90 }, () => (id: RequestId) => answered(queued(id, 4))));
    const startMs = time.reading.monotonicMs;
    const failed = client.acquire('d', { waitMs: 5_000 });
    await expect(within(time, 40_000, failed)).rejects.toMatchObject({ code: 'NOT_GRANTED', reason: 'wait_over' });
    expect(time.reading.monotonicMs - startMs).toBeGreaterThanOrEqual(5_000);
    expect(time.reading.monotonicMs - startMs).toBeLessThan(7_000);
    expect(net.last('withdraw').call).toMatchObject({ domain: 'd', requestId: requestId(1) });
    await expect(within(time, 40_000, client.tryAcquire('d', { waitMs: 1_000 }))).resolves.toBeUndefined();
  });

  test('is withdrawn when it is given up, and a grant that is on its way yields no handle', async () => {
    const world = setUp();
    const { time, net, client } = world;
    script(
      world,
      500,
      (id) => answered(queued(id)),
      () => undefined,
    );
    const abort = new AbortController();
    const acquiring = client.acquire('d', { signal: abort.signal, waitMs: 60_000 });
    await time.run(800);
    expect(net.of('acquire')).toHaveLength(2);
    abort.abort();
    net.last('acquire').reply(answered(granted('d' as Domain, requestId(1), BASE + 500, 15_000)));
    await expect(acquiring).rejects.toMatchObject({ code: 'ABORTED' });
    await time.run(1_000);
    expect(net.of('withdraw').map(({ call }) => call.requestId)).toEqual([requestId(1)]);
    expect(net.of('renew')).toEqual([]);
    expect(time.timers).toBe(0);
  });

  test('is withdrawn when it is given up between two calls', async () => {
    const world = setUp({ callTimeoutMs: 1_000 });
    const { time, net, client } = world;
    const { answer } = net;
    net.answer = (arrived) => (arrived.call.type === 'acquire' ? refused('NO_LEADER') : answer(arrived));
    const abort = new AbortController();
    const acquiring = client.acquire('d', { signal: abort.signal, waitMs: 60_000 });
    acquiring.catch(() => undefined);
    // In the pause behind a call that failed.
    for (let ms = 0; ms < 3_000; ms += 50) await time.run(50);
    abort.abort();
    await expect(within(time, 1_200, acquiring)).rejects.toMatchObject({ code: 'ABORTED' });
    const sent = net.of('acquire').length;
    await time.run(5_000);
    expect(net.of('acquire')).toHaveLength(sent);
    expect(time.timers).toBe(0);
  });
});

describe('one call of an acquire that waits', () => {
  test('may be held for four seconds once a node has answered `queued`; one second before, and after a failure', async () => {
    const world = setUp();
    const { time, net, client } = world;
    script(
      world,
      600,
      (id) => answered(queued(id)),
      (id) => answered(queued(id)),
      () => refused('LEADER_CHANGED', { outcome: 'unknown' }),
      (id) => answered(queued(id)),
    );
    await within(time, 10_000, client.acquire('d', { waitMs: 60_000 }));
    expect(net.of('acquire').map(({ timeoutMs }) => timeoutMs)).toEqual([1_000, 4_000, 4_000, 1_000, 4_000]);
  });

  test('that stays without an answer is repeated at another node before the grace of five seconds is over', async () => {
    const world = setUp();
    const { time, net, client } = world;
    const sentAt: number[] = [];
    const note = (reply: (id: RequestId) => Reply | undefined) => (id: RequestId) => {
      sentAt.push(time.reading.monotonicMs);
      return reply(id);
    };
    script(
      world,
      0,
      note((id) => answered(queued(id))),
      note(() => undefined),
      note((id) => answered(queued(id))),
    );
    await within(time, 20_000, client.acquire('d', { waitMs: 60_000 }));
    const [queuedAt = 0, , againAt = Infinity] = sentAt;
    expect(againAt - queuedAt).toBeGreaterThanOrEqual(4_000);
    expect(againAt - queuedAt).toBeLessThan(4_500);
    const [, silent, again] = net.of('acquire');
    expect(again?.endpoint).not.toBe(silent?.endpoint);
    expect(again?.timeoutMs).toBe(1_000);
    expect(new Set(ids(net)).size).toBe(1);
  });
});

describe('slots', () => {
  test('the lease is of one of them, and is renewed and released as that', async () => {
    const world = setUp();
    const { time, net, client } = world;
    script(world, 10, (id) => answered(granted('pool/a#3' as Domain, id, BASE + 70, 3_000)));
    const lease = await within(time, 200, client.acquire('pool/a', { slots: 8, ttlMs: 3_000 }));
    expect(lease.domain).toBe('pool/a#3');
    expect(net.last('acquire').call).toMatchObject({ domain: 'pool/a', slots: 8 });
    await time.run(1_500);
    expect(net.last('renew').call.leases).toEqual([{ domain: 'pool/a#3', token: BASE + 70 }]);
    await within(time, 100, lease.release());
    expect(net.last('release').call.lease).toEqual({ domain: 'pool/a#3', token: BASE + 70 });
  });

  test.each([
    ['pool/b#3', 8],
    ['pool/a#3', 1],
  ])('a grant of %s is no answer to an acquire of %i slots of pool/a: given back', async (domain, slots) => {
    const world = setUp();
    const { time, net, client } = world;
    script(world, 10, (id) => answered(granted(domain as Domain, id, BASE + 70, 3_000)));
    await expect(within(time, 200, client.acquire('pool/a', { slots, ttlMs: 3_000 }))).rejects.toMatchObject({
      code: 'UNEXPECTED_ANSWER',
    });
    expect(net.last('withdraw').call).toMatchObject({ domain: 'pool/a', requestId: requestId(1) });
  });
});

test.each<[NotGrantedReason, RegExp]>([
  [
    'held',
    /^d was not granted: it is held by "worker-b" under token 1796000000000050\. Try again later, or let acquire wait/,
  ],
  ['queue_full', /^d was not granted: as many as may wait for it do so already\. Try again later\.$/],
  ['cool_down', /^d was not granted: it is closed for a while because its last lease expired\. .*wait \(waitMs\)\.$/],
  ['slots_differ', /^d was not granted: the name is in use with another number of slots.* Take another name\.$/],
  ['recovering', /^d was not granted: the cluster holds grants back for a while after a restore\./],
])('a refusal because of %s says what to do', async (reason, text) => {
  const world = setUp();
  const { time, client } = world;
  script(world, 10, (id) => answered(refusal(id, notGranted(reason, IN_THE_WAY))));
  const error = await within(time, 200, client.acquire('d')).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(NotGrantedError);
  expect(error).toMatchObject({ code: 'NOT_GRANTED', reason, outcome: 'not-done' });
  expect((error as Error).message).toMatch(text);
});
