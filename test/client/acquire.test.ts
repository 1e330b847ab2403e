import { describe, expect, test } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { FencepostError } from '../../src/client/errors.js';
import { notGranted } from '../support/answers.js';
import { BASE, answered, clientWorld as setUp, generous, granted, held, refused, requestId } from './world.js';
import { settle, SILENT, within } from './world.js';

const TTL = 15_000;

describe('acquire', () => {
  test('reads a header first, so that the first request id comes with a revision seen', async () => {
    const { time, net, client } = setUp();
    const lease = await within(time, 100, client.acquire('orders/eu', { ttlMs: TTL, metadata: { b: '2', a: '1' } }));
    expect(net.arrived.map((arrived) => arrived.call.type)).toEqual(['get', 'acquire']);
    expect(net.last('get').call).toMatchObject({ freshness: 'local' });
    expect(net.last('acquire').call).toMatchObject({
      domain: 'orders/eu',
      holder: 'tester',
      ttlMs: TTL,
      seenRevision: BASE + 7,
      metadata: [
        ['a', '1'],
        ['b', '2'],
      ],
    });
    expect(lease.token).toBe(BigInt(BASE + 101));
    expect(lease).toMatchObject({ domain: 'orders/eu', cluster: 'test', state: 'held', ttlMs: TTL });
    expect(lease.isHeld()).toBe(true);
    await within(time, 100, client.acquire('orders/us'));
    expect(net.of('get')).toHaveLength(1);
    expect(net.last('acquire').call.seenRevision).toBe(BASE + 101);
    expect(net.of('acquire').map(({ call }) => call.requestId)).toEqual([requestId(1), requestId(2)]);
  });

  test('a hundred first acquires of a fresh client share one read of the header', async () => {
    const { time, net, client } = setUp();
    const names = Array.from({ length: 100 }, (_, at) => `d${at}`);
    const all = Promise.all(names.map((name) => client.acquire(name)));
    const leases = await within(time, 100, all);
    expect(new Set(leases.map((lease) => lease.token)).size).toBe(100);
    expect(net.of('get')).toHaveLength(1);
    expect(net.of('acquire').every(({ call }) => call.seenRevision >= BASE + 7)).toBe(true);
  });

  test('a shared read of the header: given up by one it goes on for the other, who has his own time for it', async () => {
    const { time, net, client } = setUp({ callTimeoutMs: 2_000 });
    net.answer = () => SILENT;
    const abort = new AbortController();
    const first = client.acquire('a', { signal: abort.signal });
    const gone = expect(first).rejects.toMatchObject({ code: 'ABORTED', outcome: 'not-done' });
    await time.run(1_500);
    const second = client.acquire('b');
    await settle();
    abort.abort();
    await gone;
    // The first read is over at 2 000 ms; the second acquire has until 3 500.
    await time.run(1_000);
    net.answer = generous();
    expect((await within(time, 900, second)).isHeld()).toBe(true);
  });

  test('held by another: NOT_GRANTED, or undefined, and nothing to withdraw', async () => {
    const { time, net, client } = setUp();
    const answer = net.answer;
    net.answer = (arrived) =>
      arrived.call.type === 'acquire' ? answered(held(arrived.call.requestId)) : answer(arrived);
    await expect(within(time, 100, client.acquire('d'))).rejects.toMatchObject({ code: 'NOT_GRANTED', reason: 'held' });
    await expect(within(time, 100, client.acquire('d'))).rejects.toThrow(/^d was not granted: it is held by another/);
    await expect(within(time, 100, client.tryAcquire('d'))).resolves.toBeUndefined();
    expect(net.of('withdraw')).toEqual([]);
  });

  test('another number of slots: also tryAcquire throws, because no repetition can help', async () => {
    const { time, net, client } = setUp();
    const answer = net.answer;
    net.answer = (arrived) =>
      arrived.call.type === 'acquire'
        ? answered({ type: 'acquire', requestId: arrived.call.requestId, outcome: notGranted('slots_differ') })
        : answer(arrived);
    await expect(within(time, 100, client.slots('gpu', 3).tryAcquire())).rejects.toMatchObject({
      name: 'NotGrantedError',
      reason: 'slots_differ',
      retryable: false,
    });
  });

  test('an acquire takes at most waitMs and one call, whether nodes are silent at its first call or at its second', async () => {
    for (const silentAt of ['get', 'acquire'] as const) {
      const { time, net, client } = setUp({ callTimeoutMs: 5_000 });
      const answer = net.answer;
      let header = false;
      net.answer = (arrived) => {
        if (arrived.call.type === silentAt || arrived.call.type === 'withdraw') return undefined;
        // The header comes late, and its time counts too.
        if (header) return answer(arrived);
        header = true;
        time.surroundings.timers.set(900, () => {
          const reply = answer(arrived);
          if (reply !== undefined) arrived.reply(reply);
        });
        return undefined;
      };
      const startMs = time.reading.monotonicMs;
      const failed = within(time, 9_000, client.acquire('d', { waitMs: 2_000 }));
      await expect(failed).rejects.toMatchObject({ code: 'UNREACHABLE' });
      expect(time.reading.monotonicMs - startMs).toBeLessThanOrEqual(7_020);
    }
  });

  test('every fault of the options at once', async () => {
    const { client } = setUp();
    const wrong = { ttlMs: 0, waitMs: -1, coolDownMs: 600_001, slots: 0, metadata: { k: '\ud800' } };
    const bad = client.acquire('a//b', wrong);
    await expect(bad).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    await expect(bad).rejects.toThrow(
      /domain "a\/\/b".*ttlMs.*waitMs.*coolDownMs.*0 to 600000.*slots.*1 to 1000.*metadata/,
    );
    await expect(client.acquire('d', { slots: 1_001 })).rejects.toThrow(
      /slots must be an integer from 1 to 1000, not 1001/,
    );
    await expect(client.acquire('d'.repeat(248), { slots: 2 })).rejects.toThrow(
      /more than the 247 bytes of a name with slots/,
    );
    await expect(client.acquire('d#1')).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    expect(() => setUp({ endpoints: ['nonsense', 'a:0', 'a:1', 'a:1'], holder: '', callTimeoutMs: 1 })).toThrow(
      /"nonsense".*"a:0".*"a:1" is there twice.*holder.*callTimeoutMs/,
    );
  });
});

/** A grant that is answered after a third of its TTL: it is being renewed before it is handed out. */
async function lateGrant() {
  const { time, net, client } = setUp();
  await within(time, 100, client.acquire('other'));
  const answer = net.answer;
  net.answer = (arrived) => (arrived.call.type === 'withdraw' ? answer(arrived) : undefined);
  const acquiring = client.acquire('d', { ttlMs: 3_000 });
  await settle();
  time.stall(1_001);
  net.last('acquire').reply(answered(granted('d' as Domain, requestId(2), BASE + 500, 3_000)));
  await time.run(10);
  return { time, net, acquiring };
}

describe('F8: the deadline counts from the send of the call that was answered', () => {
  test('A: an answer that was lost gives nothing; the repetition has the same id and its own send time', async () => {
    const { time, net, client } = setUp();
    const answer = net.answer;
    await within(time, 100, client.acquire('other'));
    const startMs = time.reading.monotonicMs;
    let times = 0;
    net.answer = (arrived) => (arrived.call.type === 'acquire' && ++times === 1 ? undefined : answer(arrived));
    const lease = await within(time, 2_000, client.acquire('d', { ttlMs: TTL }));
    const [, first, second] = net.of('acquire');
    expect(second?.call.requestId).toBe(first?.call.requestId);
    net.answer = () => undefined;
    // Held until the second send + 14 550 ms; the first send was a second before.
    time.stall(startMs + 1_000 + 14_549 - time.reading.monotonicMs);
    expect(lease.state).not.toBe('lost');
    time.stall(1);
    expect(lease.state).toBe('lost');
  });

  test('a grant whose answered call took longer than TTL/3 is renewed before it is handed out', async () => {
    const { time, net, client } = setUp();
    await within(time, 100, client.acquire('other'));
    net.answer = () => undefined;
    const acquiring = client.acquire('d', { ttlMs: 3_000 });
    await settle();
    time.stall(1_001);
    net.last('acquire').reply(answered(granted('d' as Domain, requestId(2), BASE + 500, 3_000)));
    await time.run(100);
    expect(net.last('renew').call.leases).toEqual([{ domain: 'd', token: BASE + 500 }]);
    const renewedAtMs = time.reading.monotonicMs - 100;
    net.last('renew').reply(answered({ type: 'renew', results: [{ type: 'live', ttlMs: 3_000 }] }));
    const lease = await within(time, 10, acquiring);
    time.stall(renewedAtMs + 2_909 - time.reading.monotonicMs);
    expect(lease.state).not.toBe('lost');
    time.stall(1);
    expect(lease.state).toBe('lost');
  });

  test('an answer to that renewal which the process reads after the deadline of the grant does not count', async () => {
    const { time, net, acquiring } = await lateGrant();
    // Stopped until the grant's time is over; the answer is read before the timer that would have ended the call.
    time.stall(2_000);
    net.last('renew').reply(answered({ type: 'renew', results: [{ type: 'live', ttlMs: 3_000 }] }));
    await expect(within(time, 100, acquiring)).rejects.toMatchObject({ code: 'TIMED_OUT' });
    expect(net.of('withdraw')).toHaveLength(1);
  });

  test('a late grant that is over by then is withdrawn and never handed out; the next attempt has a new id', async () => {
    const { time, net, acquiring } = await lateGrant();
    net.last('renew').reply(
      answered({
        type: 'renew',
        results: [
          {
            type: 'ended',
            ended: { lease: undefined, reason: 'expired', by: '', note: '', currentToken: 0 as Revision },
          },
        ],
      }),
    );
    net.answer = generous();
    const lease = await within(time, 500, acquiring);
    expect(lease.isHeld()).toBe(true);
    expect(net.last('acquire').call.requestId).toBe(requestId(3));
    expect(net.of('withdraw').map(({ call }) => call.requestId)).toEqual([requestId(2)]);
    expect(net.of('release')).toEqual([]);
  });

  test('a grant that was over before each hand-out: TIMED_OUT, not done, once the time is over', async () => {
    const { time, net, client } = setUp({ callTimeoutMs: 1_000 });
    const answer = net.answer;
    net.answer = (arrived) => {
      const { call } = arrived;
      if (call.type !== 'acquire') return answer(arrived);
      const ended = { lease: undefined, reason: 'expired', by: '', note: '', currentToken: 0 as Revision } as const;
      return answered({ type: 'acquire', requestId: call.requestId, outcome: { type: 'ended', ended } });
    };
    await expect(within(time, 1_500, client.tryAcquire('d'))).rejects.toMatchObject({
      name: 'ClusterError',
      code: 'TIMED_OUT',
      outcome: 'not-done',
    });
  });

  test('B: a repetition that is answered `ended` yields no handle; the next attempt has a new id', async () => {
    const { time, net, client } = setUp();
    const answer = net.answer;
    let times = 0;
    net.answer = (arrived) => {
      if (arrived.call.type !== 'acquire' || ++times > 1) return answer(arrived);
      const ended = {
        lease: undefined,
        reason: 'force_released',
        by: 'op',
        note: '',
        currentToken: 0 as Revision,
      } as const;
      return answered({ type: 'acquire', requestId: arrived.call.requestId, outcome: { type: 'ended', ended } });
    };
    const lease = await within(time, 2_000, client.acquire('d'));
    expect(lease.isHeld()).toBe(true);
    expect(net.of('acquire').map(({ call }) => call.requestId)).toEqual([requestId(1), requestId(2)]);
  });
});

describe('a request that is given up', () => {
  test('by an answer that another holds the domain: withdrawn when an earlier copy may still be granted', async () => {
    const { time, net, client } = setUp();
    const answer = net.answer;
    await within(time, 100, client.acquire('other'));
    let copies = 0;
    net.answer = (arrived) => {
      if (arrived.call.type !== 'acquire') return answer(arrived);
      return ++copies === 1 ? undefined : answered(held(arrived.call.requestId));
    };
    await expect(within(time, 2_000, client.tryAcquire('d'))).resolves.toBeUndefined();
    expect(net.of('withdraw').map(({ call }) => call.requestId)).toEqual([requestId(2)]);
  });

  test('by its deadline: withdrawn, and a grant that comes later yields no handle', async () => {
    const { time, net, client } = setUp({ callTimeoutMs: 2_500 });
    await within(time, 100, client.acquire('other'));
    const answer = net.answer;
    net.answer = (arrived) => (arrived.call.type === 'acquire' ? undefined : answer(arrived));
    const acquiring = client.acquire('d');
    await expect(within(time, 3_000, acquiring)).rejects.toMatchObject({ code: 'UNREACHABLE', outcome: 'unknown' });
    for (const { reply } of net.of('acquire')) reply(answered(granted('d' as Domain, requestId(2), BASE + 500, TTL)));
    await time.run(20_000);
    expect(net.of('withdraw').map(({ call }) => [call.domain, call.requestId])).toEqual([['d', requestId(2)]]);
    expect(net.of('renew').flatMap(({ call }) => call.leases.map((ref) => ref.domain))).not.toContain('d');
  });

  test('by its signal: the same, at once', async () => {
    const { time, net, client } = setUp();
    await within(time, 100, client.acquire('other'));
    const answer = net.answer;
    net.answer = (arrived) => (arrived.call.type === 'acquire' ? undefined : answer(arrived));
    const abort = new AbortController();
    const acquiring = client.acquire('d', { signal: abort.signal });
    await settle();
    abort.abort();
    net.last('acquire').reply(answered(granted('d' as Domain, requestId(2), BASE + 500, TTL)));
    await expect(acquiring).rejects.toMatchObject({ code: 'ABORTED' });
    await settle();
    expect(net.last('withdraw').call).toMatchObject({ domain: 'd', requestId: requestId(2) });
  });

  test.each(Array.from({ length: 12 }, (_, turns) => turns))(
    'by close, %i turns of the loop after its grant arrived: given back exactly once, nothing is kept',
    async (turns) => {
      const { time, net, client } = setUp();
      await (await within(time, 100, client.acquire('other'))).release();
      const { answer } = net;
      net.answer = (arrived) => (arrived.call.type === 'acquire' ? undefined : answer(arrived));
      const acquiring = client.acquire('d').then(
        () => 'granted',
        (error: unknown) => (error as FencepostError).code,
      );
      await settle();
      net.last('acquire').reply(answered(granted('d' as Domain, requestId(2), BASE + 500, TTL)));
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      await within(time, 100, client.close());
      expect(['granted', 'CLOSED']).toContain(await acquiring);
      const given = [...net.of('withdraw'), ...net.of('release').filter(({ call }) => call.lease.domain === 'd')];
      expect(given).toHaveLength(1);
      expect(time.timers).toBe(0);
    },
  );

  test('REQUEST_TOO_OLD: a new id, with the revision that the node gives', async () => {
    const { time, net, client } = setUp();
    const answer = net.answer;
    let times = 0;
    net.answer = (arrived) =>
      arrived.call.type === 'acquire' && ++times === 1
        ? refused('REQUEST_TOO_OLD', { revision: BASE + 90 })
        : answer(arrived);
    const lease = await within(time, 2_000, client.acquire('d'));
    expect(lease.isHeld()).toBe(true);
    expect(net.last('acquire').call).toMatchObject({ requestId: requestId(2), seenRevision: BASE + 90 });
    expect(net.last('withdraw').call.requestId).toBe(requestId(1));
  });
});
