/** Holders that cannot know: a silent network, a stopped process, a busy loop; and clients that begin among such nodes. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Reading } from '../../src/client/clock.js';
import { safeMs } from '../../src/client/deadline.js';
import { connect, LeaseLostError } from '../../src/client/index.js';
import type { Client, Lease } from '../../src/client/index.js';
import { ProcessCluster, until } from './cluster.js';
import { HolderStage } from './holder-process.js';
import type { Written } from './holder-process.js';
import { WatchedClient } from './watched-client.js';

const TTL_MS = 3_000;
const WAIT_MS = 60_000;

/** By the clock that is ahead: one that was read a moment later than another may be. */
function elapsedMs(from: Reading, to: Reading): number {
  const clocks = ['monotonicMs', 'uptimeMs', 'wallMs'] as const;
  return Math.max(...clocks.map((clock) => to[clock] - from[clock]));
}

/** Nothing here harms a node, so one cluster serves all at once. */
describe.concurrent('a holder that hears nothing', () => {
  let cluster: ProcessCluster;
  let stage: HolderStage;
  let rival: Client;
  beforeAll(async () => {
    [cluster, stage] = await Promise.all([ProcessCluster.started(), HolderStage.create()]);
    rival = connect({ endpoints: addresses(), holder: 'rival' });
  });
  afterAll(async () => {
    await rival.close();
    await stage[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  const addresses = (): string[] => cluster.nodes.map(({ clientAddress }) => clientAddress);

  /** The rival begins its tenure at the resource. */
  async function open({ domain, token, cluster: name, incarnation }: Lease): Promise<Written> {
    const body = JSON.stringify({ domain, token: token.toString(), cluster: name, incarnation });
    const response = await fetch(`${stage.resource}/open`, { method: 'POST', body });
    return ((await response.json()) as { status: Written }).status;
  }

  it('because the network is silent is told of the loss before its TTL is over, and before anybody else has the domain', async () => {
    await using holder = await WatchedClient.of(cluster.nodes);
    const lease = await holder.client.acquire('silent', { ttlMs: TTL_MS });
    const looksBefore: number[] = [];
    lease.signal.addEventListener('abort', () => looksBefore.push(holder.looks.length));
    const renewed = (): boolean => holder.callsOf('renew').some(({ reply }) => reply?.type === 'answer');
    await until('a renewal', () => renewed() || lease.signal.aborted);
    holder.cut();
    await until('the loss', () => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', domain: 'silent', ended: undefined });
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    // When the clocks were looked at is up to the machine; for when it was planned is the client's own doing.
    expect(looksBefore).toHaveLength(1);
    const since = holder.confirmedAt(lease);
    const over = holder.looks.slice(0, looksBefore[0]).find(({ read }) => elapsedMs(since, read) >= safeMs(TTL_MS));
    expect(over?.plannedMs).toBeLessThanOrEqual(since.monotonicMs + TTL_MS);
  });

  it('is not the holder any more when another is told that it is, however late the machine lets it look', async () => {
    await using holder = await WatchedClient.of(cluster.nodes);
    const lease = await holder.client.acquire('passed-on', { ttlMs: TTL_MS });
    holder.cut();
    const next = await rival.acquire('passed-on', { waitMs: WAIT_MS });
    // Before anything else runs here.
    expect(lease.isHeld()).toBe(false);
    expect(lease.state).toBe('lost');
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  it('because it was stopped past its TTL finds at its first look that it is not the holder, and the guard refuses it', async () => {
    const holder = stage.start({ endpoints: addresses(), domain: 'stopped', ttlMs: TTL_MS });
    const held = await holder.next('held');
    expect(held.written).toBe('applied');
    holder.signal('SIGSTOP');
    const stoppedAt = performance.now();
    const next = await rival.acquire('stopped', { waitMs: WAIT_MS });
    expect(await open(next)).toBe('applied');
    // Its last renewal may have been some time before: the rival need not have waited for a whole TTL.
    await until('a stop of more than the TTL', () => performance.now() - stoppedAt > TTL_MS);
    holder.signal('SIGCONT');
    const woken = await holder.next('woken');
    expect(woken.stoodStillMs).toBeGreaterThan(TTL_MS);
    expect(woken).toMatchObject({ held: false, state: 'lost', aborted: true, written: 'stale' });
    expect(next.token).toBeGreaterThan(BigInt(held.token));
    await next.release();
  });

  it('because its loop was blocked for two TTLs finds the same, and the guard refuses it', async () => {
    const holder = stage.start({ endpoints: addresses(), domain: 'blocked', ttlMs: TTL_MS });
    const held = await holder.next('held');
    expect(held.written).toBe('applied');
    const flag = join(stage.home, 'opened');
    holder.tell({ type: 'block', ms: 2 * TTL_MS, until: flag });
    const next = await rival.acquire('blocked', { waitMs: WAIT_MS });
    expect(await open(next)).toBe('applied');
    await writeFile(flag, '');
    const woken = await holder.next('woken');
    expect(woken.stoodStillMs).toBeGreaterThanOrEqual(2 * TTL_MS);
    expect(woken).toMatchObject({ held: false, state: 'lost', aborted: true, written: 'stale' });
    await next.release();
  });

  it('from a peer that accepts and stays silent moves on to another', async () => {
    await using client = await WatchedClient.of(cluster.nodes, { chance: 0 });
    const [first] = client.proxies;
    first?.silence();
    const lease = await client.client.acquire('elsewhere');
    expect(lease.signal.aborted).toBe(false);
    expect(first?.accepted).toBeGreaterThan(0);
    expect(client.calls[0]?.endpoint).toBe(first?.address);
    const answering = client.calls.filter(({ reply }) => reply?.type === 'answer').map(({ endpoint }) => endpoint);
    expect(answering.length).toBeGreaterThan(0);
    expect(answering).not.toContain(first?.address);
    await lease.release();
  });

  it('yet, being fresh, gets a hundred leases that it asks for at once', async () => {
    await using client = await WatchedClient.of(cluster.nodes);
    const names = Array.from({ length: 100 }, (_, at) => `first/${at}`);
    const leases = await Promise.all(names.map((name) => client.client.acquire(name)));
    expect(leases.map(({ domain }) => domain)).toEqual(names);
    expect(new Set(leases.map(({ token }) => token)).size).toBe(100);
    expect(leases.every((lease) => lease.isHeld())).toBe(true);
    // The id of each was made with a revision that this client had seen.
    const acquires = client.callsOf('acquire');
    expect(acquires.every(({ call }) => call.seenRevision > 0)).toBe(true);
    await Promise.all(leases.map((lease) => lease.release()));
  });
});
