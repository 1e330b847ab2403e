/** Waiting on a real cluster: the order, places that outlive a node, callers that vanish, and cancels in the moment of the grant. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AcquireCall, LeaseRef } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import { createRandom, nextInt } from '../../src/base/random.js';
import type { Random } from '../../src/base/random.js';
import { connect } from '../../src/client/index.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { Client } from '../../src/client/index.js';
import { ProcessCluster, until } from './cluster.js';
import type { ProcessNode } from './cluster.js';
import { HolderStage } from './holder-process.js';
import { WatchedClient } from './watched-client.js';
import { PLAIN } from '../support/answers.js';

const WAIT_MS = 120_000;
/** Nothing here ends by time that is not meant to. */
const LONG_MS = 60_000;
const SHORT_MS = 3_000;
/** A thousand cancels: so many domains at a time, rounds in each, and waiters that are given up in each round. */
const DOMAINS = 10;
const ROUNDS = 10;
const GIVEN_UP = 10;

describe('a queue', () => {
  let cluster: ProcessCluster;
  let stage: HolderStage;
  let client: Client;
  beforeAll(async () => {
    [cluster, stage] = await Promise.all([ProcessCluster.started(), HolderStage.create()]);
    client = connect({ endpoints: addresses(), holder: 'direct' });
  });
  afterAll(async () => {
    await client.close();
    await stage[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  const addresses = (): string[] => cluster.nodes.map(({ clientAddress }) => clientAddress);

  async function untilQueued(domain: string, count: number): Promise<void> {
    await until(`${count} to wait for ${domain}`, async () => (await client.get(domain)).queueLength === count);
  }

  /** Nobody holds it and nobody waits. */
  async function untilFree(domain: string): Promise<void> {
    await until(`${domain} to be free`, async () => {
      const { lease, queueLength } = await client.get(domain);
      return lease === undefined && queueLength === 0;
    });
  }

  it('of twenty is handed through in its order, each by the release before it', async () => {
    const before = await cluster.status(await cluster.untilLeader());
    const first = await client.acquire('chain', { ttlMs: LONG_MS });
    const order: number[] = [];
    const tokens: number[] = [];
    const chain: Promise<void>[] = [];
    for (let at = 1; at <= 20; at++) {
      const passOn = async (): Promise<void> => {
        const lease = await waitInOneCall('chain', at);
        order.push(at);
        tokens.push(lease.token);
        await cluster.answered(nodeOf(at), { type: 'release', lease });
      };
      chain.push(passOn());
      await untilQueued('chain', at);
    }
    await first.release();
    await Promise.all(chain);
    expect(order).toEqual(Array.from({ length: 20 }, (_, at) => at + 1));
    await untilFree('chain');
    // The entry that frees the domain hands it over: between two tokens there is no other entry, but where the leader changed.
    const { term } = await cluster.status(await cluster.untilLeader());
    const steps = tokens.slice(1).map((token, at) => token - (tokens[at] ?? 0));
    expect(steps.filter((step) => step !== 1).length).toBeLessThanOrEqual(term - before.term);
  });

  const nodeOf = (at: number): ProcessNode => cluster.nodes[at % cluster.nodes.length] ?? fail('nodes expected');

  /** Waits in calls that are held for 20 s. A caller that is between two calls may be passed over, so the order is certain only so. */
  async function waitInOneCall(domain: string, at: number): Promise<LeaseRef> {
    const call: AcquireCall = {
      type: 'acquire',
      domain: domain as Domain,
      requestId: randomUUID() as RequestId,
      holder: `caller ${at}`,
      ttlMs: LONG_MS,
      metadata: [],
      ...PLAIN,
      waitMs: WAIT_MS,
      seenRevision: ZERO_REVISION,
    };
    for (;;) {
      const { outcome } = (await cluster.answered(nodeOf(at), call)).answer;
      if (outcome.type === 'granted') return { domain: outcome.lease.domain, token: outcome.lease.token };
      expect(outcome.type).toBe('queued');
    }
  }

  describe.concurrent('left by its callers', () => {
    it('forgets those that vanished, whether their connections ended or fell silent', async () => {
      const holder = await client.acquire('vanish', { ttlMs: LONG_MS });
      const killed = stage.start({ endpoints: addresses(), domain: 'vanish', ttlMs: LONG_MS, waitMs: WAIT_MS });
      await untilQueued('vanish', 1);
      await using silent = await WatchedClient.of(cluster.nodes, { holder: 'silent' });
      const given = silent.client.acquire('vanish', { ttlMs: LONG_MS, waitMs: WAIT_MS }).catch(String);
      await untilQueued('vanish', 2);
      const next = client.acquire('vanish', { ttlMs: LONG_MS, waitMs: WAIT_MS });
      await untilQueued('vanish', 3);
      await killed.kill();
      silent.cut();
      await untilQueued('vanish', 1);
      expect((await client.get('vanish')).waiters).toMatchObject([{ holder: 'direct' }]);
      await holder.release();
      const lease = await next;
      // Nobody had it in between.
      expect(await client.verify('vanish', holder.token)).toMatchObject({
        ended: { reason: 'released', currentToken: lease.token },
      });
      await lease.release();
      await untilFree('vanish');
      await silent.client.close();
      expect(await given).toContain('closed');
    });

    it('goes on to the next when the holder vanished, once its lease has ended', async () => {
      const vanishing = stage.start({ endpoints: addresses(), domain: 'orphan', ttlMs: SHORT_MS });
      const { token } = await vanishing.next('held');
      const next = client.acquire('orphan', { ttlMs: LONG_MS, waitMs: WAIT_MS });
      await untilQueued('orphan', 1);
      await vanishing.kill();
      const lease = await next;
      expect(await client.verify('orphan', BigInt(token))).toMatchObject({ ended: { reason: 'expired' } });
      await lease.release();
      await untilFree('orphan');
    });

    it('is clean after a thousand cancels in the moment of the grant', async () => {
      await using watched = await WatchedClient.of(cluster.nodes, { callTimeoutMs: 60_000 });
      const random = createRandom(20_261_202);
      const domains = Array.from({ length: DOMAINS }, (_, at) => `cancel/${at}`);
      const cancelled = (
        await Promise.all(domains.map((domain) => cancelInTheMoment(watched.client, domain, random)))
      ).reduce((sum, count) => sum + count);
      // What the client gives back with nobody waiting has an end.
      await until('all leases and waiters to be gone', async () => (await namesBelow('cancel/')).length === 0);
      // No id is left that holds a place or would be granted …
      const calls = new Map(watched.callsOf('acquire').map(({ call }) => [call.requestId, call]));
      const ends: string[] = [];
      for (const batch of batches([...calls.values()], 100)) ends.push(...(await Promise.all(batch.map(endOf))));
      expect(ends.filter((end) => end === 'open')).toEqual([]);
      expect(await namesBelow('cancel/')).toEqual([]);
      // … and those that were given up are over by that. They were in the moment: some had been granted, some had not.
      const withdrawn = ends.filter((end) => end === 'withdrawn' || end === 'withdrawn after its grant');
      expect(withdrawn.length).toBeLessThanOrEqual(cancelled);
      expect(new Set(withdrawn).size).toBe(2);
    });
  });

  /** Names of what is held or waited for. */
  async function namesBelow(prefix: string): Promise<string[]> {
    const names: string[] = [];
    for await (const { domain } of client.list(prefix)) names.push(domain);
    return names;
  }

  /** What the cluster says to one more call with an id. */
  async function endOf(call: AcquireCall): Promise<string> {
    const { outcome } = (await cluster.answered(nodeOf(0), call)).answer;
    if (outcome.type !== 'ended') return 'open';
    const { reason, lease } = outcome.ended;
    return reason === 'withdrawn' && lease !== undefined ? 'withdrawn after its grant' : reason;
  }

  it.each(['a follower', 'the leader'])(
    'keeps the place of a waiter when the node it called, %s, is killed: it comes again through another',
    async (which) => {
      await cluster.untilAllServe();
      const leader = await cluster.untilLeader();
      const followers = cluster.others(leader);
      const nodes = which === 'the leader' ? [leader, ...followers] : followers;
      const domain = `attached/${nodes.length}`;
      const holder = await client.acquire(domain, { ttlMs: LONG_MS });
      await using watched = await WatchedClient.of(nodes, { holder: 'called a dead node', chance: 0 });
      const waiting = watched.client.acquire(domain, { ttlMs: LONG_MS, waitMs: WAIT_MS });
      await untilQueued(domain, 1);
      const behind = client.acquire(domain, { ttlMs: LONG_MS, waitMs: WAIT_MS });
      await untilQueued(domain, 2);
      const calledAt = (): string | undefined => watched.callsOf('acquire').at(-1)?.endpoint;
      const called = calledAt();
      const victim = nodes[watched.proxies.findIndex(({ address }) => address === called)];
      if (victim === undefined) throw new Error(`${called ?? 'nobody'} was called`);
      expect(victim === leader).toBe(which === 'the leader');
      await cluster.kill(victim);
      await until('a call at another node', () => calledAt() !== called);
      expect((await client.get(domain)).waiters).toMatchObject([
        { holder: 'called a dead node' },
        { holder: 'direct' },
      ]);
      // Which of them is called for in the very moment of the release gets it first, and passes it on.
      const other = behind.then((lease) => lease.release());
      await holder.release();
      const lease = await waiting;
      expect(lease.isHeld()).toBe(true);
      expect(new Set(watched.callsOf('acquire').map(({ call }) => call.requestId)).size).toBe(1);
      await lease.release();
      await other;
      await untilFree(domain);
      cluster.start(victim);
    },
  );
});

/**
 * In each round waiters are given up in about the moment in which it is their turn, and whoever comes behind must get the
 * domain all the same. Gives how many were given up before their client had the lease.
 */
async function cancelInTheMoment(client: Client, domain: string, random: Random): Promise<number> {
  const patient = { ttlMs: LONG_MS, waitMs: WAIT_MS };
  let holder = await client.acquire(domain, patient);
  let cancelled = 0;
  const giveUp = async (abort: AbortController): Promise<void> => {
    try {
      await (await client.acquire(domain, { ...patient, signal: abort.signal })).release();
    } catch (error) {
      expect(error).toMatchObject({ code: 'ABORTED' });
      cancelled++;
    }
  };
  for (let round = 0; round < ROUNDS; round++) {
    const aborts = Array.from({ length: GIVEN_UP }, () => new AbortController());
    const givenUp = aborts.map(giveUp);
    await until('the waiters', async () => (await client.get(domain)).queueLength === GIVEN_UP);
    const next = client.acquire(domain, patient);
    // The first in the same turn as the release, the others while the domain is passed along.
    if (nextInt(random, 0, 1) === 0) aborts[0]?.abort();
    const released = holder.release();
    for (const abort of aborts) {
      abort.abort();
      await sleep(nextInt(random, 0, 5));
    }
    await Promise.all([released, ...givenUp]);
    holder = await next;
  }
  await holder.release();
  return cancelled;
}

function batches<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));
}

function fail(what: string): never {
  throw new Error(what);
}
