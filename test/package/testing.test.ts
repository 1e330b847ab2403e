/** `fencepost/testing`, as the tests of a user's program use it: nothing but the package's exports. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, LeaseLostError, NotGrantedError } from 'fencepost';
import type { Client } from 'fencepost';
import { levelFence } from 'fencepost/guard/leveldb';
import { startTestServer } from 'fencepost/testing';
import type { TestServer } from 'fencepost/testing';
import { Level } from 'level';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** The least that a cluster allows: a holder hears of its loss within a second. */
const TTL = 3_000;

let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await startTestServer();
  client = connect({ endpoints: server.endpoints });
});

afterAll(async () => {
  await client.close();
  await server.stop();
});

describe('a test server', () => {
  it('grants, refuses, renews and releases like a cluster', async () => {
    const first = await client.acquire('orders/eu');
    expect(first).toMatchObject({ domain: 'orders/eu', ttlMs: 15_000, cluster: 'testing', state: 'held' });
    expect(String(first.token)).toMatch(/^\d{16}$/);
    await expect(client.acquire('orders/eu')).rejects.toBeInstanceOf(NotGrantedError);
    expect(await client.renew('orders/eu', first.token)).toEqual({ current: true, ttlMs: 15_000 });
    await first.release();
    const second = await client.acquire('orders/eu');
    expect(second.token).toBeGreaterThan(first.token);
    await second.release();
  });

  it('has one node, which leads', async () => {
    const [status] = await client.status();
    expect(status).toMatchObject({ type: 'answered', cluster: 'testing', status: { role: 'leader', alarms: [] } });
  });

  it('refuses what production refuses', async () => {
    await expect(client.acquire('d', { ttlMs: 2_999 })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('counts slots', async () => {
    const gpus = client.slots('gpu', 2);
    const [a, b] = await Promise.all([gpus.acquire(), gpus.acquire()]);
    expect([a.domain, b.domain].sort()).toEqual(['gpu#0', 'gpu#1']);
    expect(await gpus.tryAcquire()).toBeUndefined();
    await server.expire('gpu#1');
    const third = await gpus.acquire();
    expect(third.domain).toBe('gpu#1');
    await Promise.all([a.release(), b.release(), third.release()]);
  });
});

describe('expire', () => {
  it('ends a lease at once; its holder hears of it with its next renewal', async () => {
    const lease = await client.acquire('d', { ttlMs: TTL });
    const lost = once(lease.signal, 'abort');
    await server.expire('d');
    expect(await client.verify('d', lease.token)).toMatchObject({ current: false, ended: { reason: 'expired' } });
    await lost;
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(lease.signal.reason).toMatchObject({ token: lease.token, ended: { reason: 'expired' } });
  });

  it('hands over to who waits, and touches nobody else', async () => {
    const [held, other] = await Promise.all([client.acquire('d'), client.acquire('other')]);
    const waiting = client.acquire('d', { waitMs: 30_000 });
    await expect.poll(async () => (await client.get('d')).queueLength).toBe(1);
    await server.expire('d');
    const next = await waiting;
    expect(next.token).toBeGreaterThan(held.token);
    expect(await client.verify('other', other.token)).toMatchObject({ current: true });
    await Promise.all([next.release(), other.release(), held.release()]);
  });

  it('begins the cool-down', async () => {
    await client.acquire('cool', { coolDownMs: 600_000 });
    await server.expire('cool');
    await expect(client.acquire('cool')).rejects.toMatchObject({ reason: 'cool_down' });
  });

  it('rejects when nobody holds the domain', async () => {
    await expect(server.expire('nobody')).rejects.toThrow('expire: nobody holds nobody.');
    await expect(server.expire('a//b')).rejects.toThrow('nobody holds a//b');
  });
});

describe('supersede', () => {
  it('makes a holder stale, so that a guard refuses it', async () => {
    const home = await mkdtemp(join(tmpdir(), 'fencepost-testing-'));
    const db = new Level(home);
    try {
      const fence = levelFence(db);
      const lease = await client.acquire('store', { ttlMs: TTL });
      const tenure = await fence.open(lease);
      if (tenure.status !== 'applied') throw new Error(`the first holder is ${tenure.status}`);
      const usurper = await server.supersede('store');
      expect(usurper).toMatchObject({ domain: 'store', holder: 'fencepost/testing', state: 'held' });
      expect(usurper.token).toBeGreaterThan(lease.token);
      expect((await fence.open(usurper)).status).toBe('applied');
      expect(
        (
          await tenure.value.run((data) => {
            data.put('k', 'stale');
          })
        ).status,
      ).toBe('stale');
      await once(lease.signal, 'abort');
      expect(lease.signal.reason).toMatchObject({
        ended: { reason: 'force_released', currentToken: usurper.token, note: 'superseded by a test' },
      });
      await usurper.release();
      expect((await client.acquire('store')).isHeld()).toBe(true);
    } finally {
      await db.close();
      await rm(home, { recursive: true });
    }
  });

  it('rejects, and ends nothing, when it could not hold the domain itself', async () => {
    await expect(server.supersede('nobody')).rejects.toThrow('nobody holds nobody');
    const slot = await client.slots('cpu', 2).acquire();
    await expect(server.supersede('cpu#0')).rejects.toThrow('cpu#0 is a slot');
    const lease = await client.acquire('wanted');
    const abort = new AbortController();
    const waiting = client.acquire('wanted', { waitMs: 30_000, signal: abort.signal });
    const given = expect(waiting).rejects.toMatchObject({ code: 'ABORTED' });
    await expect.poll(async () => (await client.get('wanted')).queueLength).toBe(1);
    await expect(server.supersede('wanted')).rejects.toThrow('somebody waits for wanted; expire hands it over');
    abort.abort();
    await given;
    expect(await client.verify('wanted', lease.token)).toMatchObject({ current: true });
    expect(await client.verify('cpu#0', slot.token)).toMatchObject({ current: true });
    await Promise.all([lease.release(), slot.release()]);
  });
});

describe('several servers', () => {
  it('know nothing of each other; a later one issues greater tokens; a stopped one answers nothing', async () => {
    await using second = await startTestServer();
    expect(second.endpoints).not.toEqual(server.endpoints);
    const early = await client.acquire('same');
    await using other = connect({ endpoints: second.endpoints, callTimeoutMs: 500 });
    const late = await other.acquire('same');
    expect(late.token).toBeGreaterThan(early.token);
    expect(late.incarnation).not.toBe(early.incarnation);
    await Promise.all([early.release(), late.release()]);
    await second.stop();
    await second.stop();
    await expect(other.acquire('same')).rejects.toMatchObject({ code: 'UNREACHABLE' });
  });
});
