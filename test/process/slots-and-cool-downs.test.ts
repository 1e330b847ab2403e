/** Names with several holders, and domains that stay closed after an expiry, on a real cluster whose leader dies. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NotGrantedError, connect } from '../../src/client/index.js';
import type { AcquireOptions, Client, Lease } from '../../src/client/index.js';
import { now } from './chaos/clock.js';
import { ProcessCluster, until } from './cluster.js';
import { WatchedClient } from './watched-client.js';

const WAIT_MS = 120_000;
const LONG_MS = 60_000;
const SHORT_MS = 3_000;
const COOL_DOWN_MS = 3_000;

/** Nobody minds when the leader dies for another's sake; but it dies for one at a time. */
describe.concurrent('on a real cluster', () => {
  let killing: Promise<unknown> = Promise.resolve();
  let cluster: ProcessCluster;
  let client: Client;
  beforeAll(async () => {
    cluster = await ProcessCluster.started();
    client = connect({ endpoints: cluster.nodes.map(({ clientAddress }) => clientAddress), holder: 'direct' });
  });
  afterAll(async () => {
    await client.close();
    await cluster[Symbol.asyncDispose]();
  });

  async function refusal(domain: string, options: AcquireOptions = {}): Promise<NotGrantedError> {
    const lease = await client.acquire(domain, options).catch((error: unknown) => error);
    if (lease instanceof NotGrantedError) return lease;
    throw new Error(`${domain} should not have been granted`, { cause: lease });
  }

  /** The leader dies, and comes back when there is another. Gives a moment before it died, on our clock. */
  function killLeader(): Promise<number> {
    const kill = async (): Promise<number> => {
      const leader = await cluster.untilLeader();
      const killedAt = now();
      await cluster.kill(leader);
      await cluster.untilLeader();
      cluster.start(leader);
      await cluster.untilAllServe();
      return killedAt;
    };
    const killed = killing.then(kill);
    killing = killed;
    return killed;
  }

  /**
   * A holder with a cool-down that falls silent. Gives the last moment, on our clock, at which the cluster was asked and
   * said that its lease lives: the domain is closed for the cool-down from after that.
   */
  async function expire(domain: string, coolDownMs: number): Promise<number> {
    await using silent = await WatchedClient.of(cluster.nodes, { holder: 'silent' });
    await silent.client.acquire(domain, { ttlMs: SHORT_MS, coolDownMs });
    silent.cut();
    let livedAt = now();
    await until('the lease to expire', async () => {
      const askedAt = now();
      const { lease } = await client.get(domain);
      if (lease?.holder === 'silent') livedAt = askedAt;
      return lease?.holder !== 'silent';
    });
    return livedAt;
  }

  it('a domain is closed for its cool-down after an expiry, to who asks and to who waits, and not after a release', async () => {
    const waitsFrom = { ttlMs: LONG_MS, waitMs: WAIT_MS };
    const expired = expire('cool', COOL_DOWN_MS);
    await until('the holder', async () => (await client.get('cool')).lease !== undefined);
    const waiting = client.acquire('cool', waitsFrom).then((lease) => ({ lease, at: now() }));
    const livedAt = await expired;
    const { lease: holder, coolDownLeftMs, queueLength } = await client.get('cool');
    expect(holder).toBeUndefined();
    expect(coolDownLeftMs).toBeGreaterThan(0);
    expect(queueLength).toBe(1);
    expect(await refusal('cool')).toMatchObject({ reason: 'cool_down', current: undefined });
    const { lease, at } = await waiting;
    expect(at - livedAt).toBeGreaterThan(COOL_DOWN_MS);
    await lease.release();
    const next = await client.acquire('cool', { ttlMs: LONG_MS, coolDownMs: COOL_DOWN_MS });
    await next.release();
    await (await client.acquire('cool')).release();
  });

  it('a cool-down outlives the leader: the next one counts it in full again', async () => {
    await expire('cool/killed', LONG_MS);
    const killedAt = await killLeader();
    const { lease, coolDownLeftMs } = await client.get('cool/killed');
    expect(lease).toBeUndefined();
    expect(coolDownLeftMs).toBeGreaterThan(LONG_MS - (now() - killedAt));
    expect(await refusal('cool/killed')).toMatchObject({ reason: 'cool_down' });
  });

  it('a name with three slots has three holders and no more; a freed slot goes to the first who waits, also after a kill of the leader', async () => {
    const slots = { ttlMs: LONG_MS, waitMs: WAIT_MS, slots: 3 };
    const first = await Promise.all(Array.from({ length: 3 }, () => client.acquire('gpu', slots)));
    expect(namesOf(first)).toEqual(['gpu#0', 'gpu#1', 'gpu#2']);
    expect(await refusal('gpu', { ...slots, waitMs: 0 })).toMatchObject({ reason: 'held' });
    expect(await refusal('gpu', { ...slots, waitMs: 0, slots: 4 })).toMatchObject({ reason: 'slots_differ' });
    expect(await refusal('gpu', { ttlMs: LONG_MS })).toMatchObject({ reason: 'slots_differ' });
    let handedOut = 0;
    const waiting = Array.from({ length: 3 }, () =>
      client.acquire('gpu', slots).then((lease) => {
        handedOut++;
        return lease;
      }),
    );
    await until('three to wait', async () => (await client.get('gpu')).queueLength === 3);
    await killLeader();
    // Nothing came free, so nothing was handed out.
    expect(handedOut).toBe(0);
    for (const { domain, token } of first) expect((await client.get(domain)).lease?.token).toBe(token);
    const [freed, ...kept] = [...first].sort((a, b) => (a.domain < b.domain ? 1 : -1));
    if (freed === undefined) throw new Error('three leases expected');
    await freed.release();
    const next = await Promise.race(waiting);
    expect(next.domain).toBe(freed.domain);
    expect(next.token).toBeGreaterThan(freed.token);
    await Promise.all(kept.map((lease) => lease.release()));
    const second = await Promise.all(waiting);
    expect(namesOf(second)).toEqual(['gpu#0', 'gpu#1', 'gpu#2']);
    // Each slot has an order of tokens of its own.
    for (const lease of second) {
      const before = first.find(({ domain }) => domain === lease.domain);
      expect(lease.token).toBeGreaterThan(before?.token ?? lease.token);
    }
    await Promise.all(second.map((lease) => lease.release()));
    expect((await client.get('gpu')).queueLength).toBe(0);
  });
});

function namesOf(leases: readonly Lease[]): string[] {
  return leases.map(({ domain }) => domain).sort();
}
