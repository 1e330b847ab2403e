/** Clocks that jump: those of the client, in this process and under a whole process of its own, and those of the nodes. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/client/index.js';
import type { Client, Lease } from '../../src/client/index.js';
import { ProcessCluster, until } from './cluster.js';
import { HolderStage } from './holder-process.js';
import type { HolderProcess } from './holder-process.js';
import { WatchedClient } from './watched-client.js';

const HOUR_MS = 3_600_000;
const WAIT_MS = 60_000;
/** Long where nothing may be lost: a busy machine has time to renew. */
const LONG_MS = 20_000;
const SHORT_MS = 3_000;

/** Nothing here harms a node, so one cluster serves all at once. */
describe.concurrent('a wall clock that jumps under a holder', () => {
  let cluster: ProcessCluster;
  let rival: Client;
  beforeAll(async () => {
    cluster = await ProcessCluster.started();
    rival = connect({ endpoints: cluster.nodes.map(({ clientAddress }) => clientAddress), holder: 'rival' });
  });
  afterAll(async () => {
    await rival.close();
    await cluster[Symbol.asyncDispose]();
  });

  /** Until it is the holder without doubt, by a call that was sent after now. */
  async function untilConfirmed(watched: WatchedClient, lease: Lease): Promise<void> {
    const since = watched.last.monotonicMs;
    const confirmed = (): boolean => lease.isHeld() && watched.confirmedAt(lease).monotonicMs > since;
    await until('a renewal after the jump', () => lease.signal.aborted || confirmed());
    expect(lease.signal.aborted, String(lease.signal.reason)).toBe(false);
  }

  it('back by an hour, and by a little many times, loses nothing', async () => {
    await using watched = await WatchedClient.of(cluster.nodes);
    const lease = await watched.client.acquire('back', { ttlMs: LONG_MS });
    for (const stepMs of [HOUR_MS, ...Array.from({ length: 20 }, () => LONG_MS / 10)]) {
      watched.offset.wallMs -= stepMs;
      expect(['held', 'jeopardy']).toContain(lease.state);
    }
    // As much as that casts doubt on the clocks: it renews before it goes on.
    expect(lease.state).toBe('jeopardy');
    await untilConfirmed(watched, lease);
    expect((await rival.get('back')).lease?.token).toBe(lease.token);
  });

  it('forward by less than the time left loses nothing', async () => {
    await using watched = await WatchedClient.of(cluster.nodes);
    const lease = await watched.client.acquire('forward', { ttlMs: LONG_MS });
    for (const part of [0.1, 0.6]) {
      expect(lease.isHeld()).toBe(true);
      watched.offset.wallMs += part * (watched.safeUntilMs(lease) - watched.last.monotonicMs);
      expect(['held', 'jeopardy']).toContain(lease.state);
      await untilConfirmed(watched, lease);
    }
    expect((await rival.get('forward')).lease?.token).toBe(lease.token);
  });

  it('forward past the deadline loses it at the next look, and the cluster is told', async () => {
    await using watched = await WatchedClient.of(cluster.nodes);
    const [lease, unseen] = await Promise.all(
      ['past', 'past/unseen'].map((domain) => watched.client.acquire(domain, { ttlMs: LONG_MS })),
    );
    if (lease === undefined || unseen === undefined) throw new Error('two leases expected');
    expect(lease.isHeld()).toBe(true);
    // By a little more: the wall clock has whole milliseconds only.
    watched.offset.wallMs += watched.safeUntilMs(lease) - watched.last.monotonicMs + 10;
    expect(lease.isHeld()).toBe(false);
    expect(lease.state).toBe('lost');
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', ended: undefined });
    // Where nobody looks, the client does.
    watched.offset.wallMs += LONG_MS;
    await until('the loss', () => unseen.signal.aborted);
    // The next one need not wait for the TTL.
    for (const { domain, token } of [lease, unseen]) {
      const next = await rival.acquire(domain, { ttlMs: LONG_MS, waitMs: WAIT_MS });
      expect(await rival.verify(domain, token)).toMatchObject({ current: false, ended: { reason: 'released' } });
      await next.release();
    }
    // A later jump back brings nothing back.
    watched.offset.wallMs -= HOUR_MS;
    expect(lease.state).toBe('lost');
  });

  it('together with a stop of the monotonic clock, as in a suspended machine, loses it at the next look', async () => {
    await using watched = await WatchedClient.of(cluster.nodes);
    const lease = await watched.client.acquire('suspended', { ttlMs: LONG_MS });
    expect(lease.isHeld()).toBe(true);
    // The uptime alone tells: a time service has set the wall clock back in the same moment.
    watched.offset.uptimeMs += LONG_MS;
    watched.offset.wallMs -= HOUR_MS;
    expect(lease.state).toBe('lost');
  });

  it('back again and again while the network is silent never makes it hold for too long', async () => {
    await using watched = await WatchedClient.of(cluster.nodes);
    const lease = await watched.client.acquire('again', { ttlMs: SHORT_MS });
    watched.cut();
    const next = rival.acquire('again', { ttlMs: LONG_MS, waitMs: WAIT_MS }).then((granted) => ({
      granted,
      // Before anything else runs here.
      heldStill: lease.isHeld(),
    }));
    const untilMs = watched.confirmedAt(lease).monotonicMs + SHORT_MS;
    const late: number[] = [];
    // In all by more than the cluster waits after the deadline, and by too little for the client to have doubts.
    let backMs = 0;
    while (!lease.signal.aborted) {
      const stepMs = backMs < SHORT_MS / 4 ? 50 : 0;
      backMs += stepMs;
      watched.offset.wallMs -= stepMs;
      if (lease.isHeld() && watched.last.monotonicMs >= untilMs) late.push(watched.last.monotonicMs);
      await sleep(7);
    }
    expect(late).toEqual([]);
    expect(lease.state).toBe('lost');
    const { granted, heldStill } = await next;
    expect(heldStill).toBe(false);
    await granted.release();
  });
});

const FAKETIME = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

/** The wall clock of a process follows what the file says, the monotonic one does not. */
function clockFrom(file: string): Readonly<Record<string, string>> {
  return {
    LD_PRELOAD: FAKETIME ?? '',
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
}

describe.skipIf(FAKETIME === undefined)('a wall clock that jumps under a whole process (needs libfaketime)', () => {
  let stage: HolderStage;
  beforeAll(async () => {
    stage = await HolderStage.create();
  });
  afterAll(async () => {
    await stage[Symbol.asyncDispose]();
  });

  /** Its answer once its wall clock is ahead of ours by more than half of `ms`, or behind. */
  async function looked(
    holder: HolderProcess,
    ms: number,
  ): Promise<{ readonly state: string; readonly aborted: boolean }> {
    for (;;) {
      holder.tell({ type: 'look' });
      const { wallMs, state, aborted } = await holder.next('looked');
      if (Math.abs(wallMs - Date.now() - ms) < Math.abs(ms) / 2) return { state, aborted };
      await sleep(50);
    }
  }

  it('of a holder: as for the holder in this process; of the leader: no lease ends early', async () => {
    await using cluster = await ProcessCluster.create({
      environment: Object.fromEntries(['n1', 'n2', 'n3'].map((name) => [name, clockFrom(join(stage.home, name))])),
    });
    for (const { name } of cluster.nodes) await writeFile(join(stage.home, name), '+0');
    for (const node of cluster.nodes) cluster.start(node);
    await cluster.untilLeader();
    await using client = connect({ endpoints: cluster.nodes.map(({ clientAddress }) => clientAddress) });
    const kept = await client.acquire('nodes', { ttlMs: LONG_MS });

    const clock = join(stage.home, 'holder');
    await writeFile(clock, '+0');
    const holder = stage.start({ endpoints: client.endpoints, domain: 'process', ttlMs: LONG_MS }, clockFrom(clock));
    const { token } = await holder.next('held');
    await writeFile(clock, '-3600');
    expect((await looked(holder, -HOUR_MS)).aborted).toBe(false);
    await until('the doubt to be over', async () => (await looked(holder, -HOUR_MS)).state === 'held');
    expect((await client.get('process')).lease?.token).toBe(BigInt(token));
    await writeFile(clock, '+3600');
    expect(await looked(holder, HOUR_MS)).toEqual({ state: 'lost', aborted: true });
    const next = await client.acquire('process', { ttlMs: LONG_MS, waitMs: WAIT_MS });
    expect(await client.verify('process', BigInt(token))).toMatchObject({ ended: { reason: 'released' } });
    await next.release();

    for (const seconds of ['+7200', '-7200']) {
      for (const { name } of cluster.nodes) await writeFile(join(stage.home, name), seconds);
      const jumpMs = Number(seconds) * 1_000;
      await until('the leader to live at another time', async () => {
        const probe = await client.acquire(`probe${seconds}`);
        await probe.release();
        return Math.abs(probe.grantedAt.getTime() - Date.now() - jumpMs) < HOUR_MS;
      });
      expect(await client.renew('nodes', kept.token)).toMatchObject({ current: true });
    }
    expect(kept.signal.aborted).toBe(false);
  });
});
