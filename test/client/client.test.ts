import { describe, expect, test } from 'vitest';
import type { NodeId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Lease } from '../../src/client/lease.js';
import { BASE, REFUSED, SILENT, answered, clientWorld as setUp, generous, settle, within } from './world.js';

const TTL = 15_000;

describe('a lease', () => {
  async function leaseOf(ttlMs = TTL) {
    const world = setUp();
    const lease = await within(world.time, 100, world.client.acquire('d', { ttlMs }));
    const losses: unknown[] = [];
    lease.signal.addEventListener('abort', () => losses.push(lease.signal.reason));
    return { ...world, lease, losses };
  }

  test('is renewed for as long as it is not released, under one token', async () => {
    const { time, net, lease, losses } = await leaseOf();
    const { token } = lease;
    await time.run(10 * TTL);
    expect(lease.isHeld()).toBe(true);
    expect(lease.token).toBe(token);
    expect(losses).toEqual([]);
    expect(net.of('renew').length).toBeGreaterThanOrEqual(29);
    await within(time, 100, lease.release());
    expect(net.of('release').map(({ call }) => call.lease)).toEqual([{ domain: 'd', token: BASE + 101 }]);
    await within(time, 100, lease.release());
    expect(net.of('release')).toHaveLength(1);
    expect(lease.state).toBe('released');
    expect(lease.signal.aborted).toBe(false);
  });

  test('lost: the signal aborts with LEASE_LOST, and Release goes out in the background', async () => {
    const { time, net, lease, losses } = await leaseOf();
    net.answer = () => undefined;
    await time.run(14_600);
    expect(lease.isHeld()).toBe(false);
    expect(losses).toMatchObject([{ code: 'LEASE_LOST', domain: 'd', token: lease.token, ended: undefined }]);
    expect(net.last('release').call.lease).toEqual({ domain: 'd', token: BASE + 101 });
    net.answer = generous();
    await time.run(10_000);
    expect(lease.isHeld()).toBe(false);
    expect(losses).toHaveLength(1);
  });

  test('lost, with a cool-down: no Release goes out, which would open the domain at once', async () => {
    const { time, net, client } = setUp();
    const lease = await within(time, 100, client.acquire('d', { ttlMs: TTL, coolDownMs: 60_000 }));
    net.answer = () => undefined;
    await time.run(TTL);
    expect(lease.state).toBe('lost');
    net.answer = generous();
    await time.run(TTL);
    expect(net.of('release')).toEqual([]);
  });

  test('leftMs: until the safe deadline of the last confirmed call; 0 when it is over', async () => {
    const { time, net, lease } = await leaseOf();
    const safe = TTL - 0.01 * TTL - 0.02 * TTL;
    expect(lease.leftMs()).toBeLessThanOrEqual(safe);
    expect(lease.leftMs()).toBeGreaterThan(safe - 100);
    await time.run(10 * TTL);
    // Renewed after a third of the TTL.
    expect(lease.leftMs()).toBeGreaterThan(safe - TTL / 3 - 100);
    net.answer = () => undefined;
    const before = lease.leftMs();
    await time.run(2_000);
    expect(lease.leftMs()).toBe(before - 2_000);
    await time.run(TTL);
    expect(lease.leftMs()).toBe(0);
    const { time: again, lease: released } = await leaseOf();
    await within(again, 100, released.release());
    expect(released.leftMs()).toBe(0);
  });

  test('released while no node answers: waited for as long as one call takes, tried until the lease is over', async () => {
    const { time, net, client } = setUp({ callTimeoutMs: 1_000 });
    const lease = await within(time, 100, client.acquire('d', { ttlMs: TTL }));
    net.answer = () => undefined;
    await within(time, 1_100, lease.release());
    net.answer = () => REFUSED;
    await time.run(8_000);
    net.answer = generous();
    const before = net.of('release').length;
    await time.run(5_000);
    expect(net.of('release').length).toBeGreaterThan(before);
    const after = net.of('release').length;
    await time.run(TTL);
    expect(net.of('release')).toHaveLength(after);
  });

  test('ended by the cluster: lost with the reason, and no Release', async () => {
    const { time, net, lease, losses } = await leaseOf();
    const answer = net.answer;
    const ended = {
      lease: undefined,
      reason: 'force_released',
      by: 'op',
      note: 'stuck',
      currentToken: 0 as Revision,
    } as const;
    net.answer = (arrived) =>
      arrived.call.type === 'renew'
        ? answered({ type: 'renew', results: [{ type: 'ended', ended }] })
        : answer(arrived);
    await time.run(TTL / 3);
    expect(losses).toMatchObject([{ code: 'LEASE_LOST', ended: { reason: 'force_released', note: 'stuck' } }]);
    expect(lease.state).toBe('lost');
    await time.run(TTL);
    expect(net.of('release')).toEqual([]);
  });

  test('a node that goes silent in the middle: renewed at another before the deadline', async () => {
    const { time, net, lease } = await leaseOf(3_000);
    const answer = net.answer;
    const leader = net.last('acquire').endpoint;
    net.answer = (arrived) => (arrived.endpoint === leader ? undefined : answer(arrived));
    await time.run(60_000);
    expect(lease.isHeld()).toBe(true);
    expect(new Set(net.of('renew').map(({ endpoint }) => endpoint)).size).toBeGreaterThan(1);
  });

  test('two of three endpoints refuse for ever', async () => {
    const { time, net, lease } = await leaseOf(3_000);
    const answer = net.answer;
    net.answer = (arrived) => (arrived.endpoint === 'c:1' ? answer(arrived) : SILENT);
    await time.run(60_000);
    expect(lease.isHeld()).toBe(true);
  });

  test('a paused process sees its loss before it acts', async () => {
    const { time, lease, losses } = await leaseOf(3_000);
    time.stall(20_000);
    expect(lease.isHeld()).toBe(false);
    expect(losses).toHaveLength(1);
  });

  test('is never replaced: what the domain’s next lease gets, this one does not see', async () => {
    const { time, net, client, lease } = await leaseOf(3_000);
    time.stall(20_000);
    net.answer = generous();
    const next = await within(time, 1_000, client.acquire('d', { ttlMs: 3_000 }));
    expect(next.isHeld()).toBe(true);
    expect(lease.isHeld()).toBe(false);
    expect(lease.state).toBe('lost');
  });
});

describe('withLease', () => {
  test('releases after the work, and after its failure', async () => {
    const { time, net, client } = setUp();
    const result = await within(
      time,
      100,
      client.withLease('d', {}, (lease) => lease.token),
    );
    expect(result).toBe(BigInt(BASE + 101));
    expect(net.of('release')).toHaveLength(1);
    const failing = client.withLease('d', {}, () => {
      throw new Error('no paper');
    });
    await expect(within(time, 100, failing)).rejects.toThrow('no paper');
    expect(net.of('release')).toHaveLength(2);
  });
});

describe('close', () => {
  test('releases what is held and leaves nothing behind', async () => {
    const { time, net, client } = setUp();
    const lease = await within(time, 100, client.acquire('d'));
    await within(time, 100, client.close());
    expect(net.of('release')).toHaveLength(1);
    expect(lease.state).toBe('released');
    expect(net.closed).toHaveLength(3);
    expect(time.timers).toBe(0);
    await expect(client.acquire('d')).rejects.toMatchObject({ code: 'CLOSED', outcome: 'not-done' });
  });

  test('ends an acquire that is under way, and withdraws it', async () => {
    const { time, net, client } = setUp();
    await within(time, 100, client.acquire('other'));
    const answer = net.answer;
    net.answer = (arrived) => (arrived.call.type === 'acquire' ? undefined : answer(arrived));
    const acquiring = client.acquire('d');
    const failed = expect(acquiring).rejects.toMatchObject({ code: 'CLOSED' });
    await settle();
    await within(time, 100, client.close());
    await failed;
    expect(net.last('withdraw').call.domain).toBe('d');
  });

  test('does not wait longer than two seconds for a cluster that is gone', async () => {
    const { time, net, client } = setUp();
    await within(time, 100, client.acquire('d'));
    net.answer = () => undefined;
    await within(time, 2_100, client.close());
    expect(time.timers).toBe(0);
  });
});

describe('plain calls', () => {
  test('verify, get, release and renew by token', async () => {
    const { time, net, client } = setUp();
    const answer = net.answer;
    net.answer = (arrived) =>
      arrived.call.type === 'verify'
        ? answered({ type: 'verify', outcome: { type: 'live', ttlMs: 5_000 } })
        : answer(arrived);
    expect(await within(time, 100, client.verify('d', 5n))).toEqual({ current: true, ttlMs: 5_000 });
    expect(await within(time, 100, client.get('d'))).toEqual({
      domain: 'd',
      lease: undefined,
      leftMs: 0,
      queueLength: 0,
      waiters: [],
      coolDownLeftMs: 0,
    });
    expect(await within(time, 100, client.release('d', 5n))).toBe(true);
    expect(await within(time, 100, client.renew('d', 5n))).toMatchObject({ current: true });
    await expect(client.verify('d', 2n ** 53n)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
  });

  test('status asks each endpoint once and shows which one is silent', async () => {
    const { time, net, client } = setUp();
    net.answer = ({ endpoint }) =>
      endpoint === 'b:1'
        ? SILENT
        : answered({
            type: 'getStatus',
            node: endpoint[0] as NodeId,
            leader: 'a' as NodeId,
            role: 'follower',
            term: 3,
            base: BASE as Revision,
            lastRevision: BASE as Revision,
            durableRevision: BASE as Revision,
            committedRevision: BASE as Revision,
            appliedRevision: BASE as Revision,
            members: [],
            alarms: [],
            limits: undefined,
          });
    const status = await within(time, 100, client.status());
    // Tokens and revisions are shown as bigint everywhere.
    expect(status[0]).toMatchObject({ status: { base: BigInt(BASE), appliedRevision: BigInt(BASE) } });
    expect(status.map((one) => (one.type === 'answered' ? one.status.node : one.error.code))).toEqual([
      'a',
      'UNREACHABLE',
      'c',
    ]);
  });
});

// A lease can be used with `await using`.
const disposable: (lease: Lease) => AsyncDisposable = (lease) => lease;
test('a lease is async disposable', async () => {
  const { time, net, client } = setUp();
  const lease = await within(time, 100, client.acquire('d'));
  await within(time, 100, Promise.resolve(disposable(lease)[Symbol.asyncDispose]()));
  expect(net.of('release')).toHaveLength(1);
});
