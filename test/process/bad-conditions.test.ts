import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { ServiceError } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import type { AcquireCall, Call } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import { freePorts, ProcessCluster, until } from './cluster.js';
import type { ProcessNode } from './cluster.js';
import { PLAIN } from '../support/answers.js';

const run = promisify(execFile);
const MAIN = resolve(import.meta.dirname, '../../dist/cli/main.js');
const UNAVAILABLE = 14;
const RESOURCE_EXHAUSTED = 8;
const INVALID_ARGUMENT = 3;

function acquireOf(domain: string, more: Partial<AcquireCall> = {}): AcquireCall {
  const requestId = randomUUID() as RequestId;
  return {
    type: 'acquire',
    domain: domain as Domain,
    requestId,
    holder: 'test',
    ttlMs: 60_000,
    metadata: [],
    ...PLAIN,
    seenRevision: ZERO_REVISION,
    ...more,
  };
}

async function errorOf(
  cluster: ProcessCluster,
  node: ProcessNode,
  call: Call,
  timeoutMs?: number,
): Promise<ServiceError> {
  try {
    await cluster.call(node, call, timeoutMs);
  } catch (error) {
    return error as ServiceError;
  }
  throw new Error('the call should have failed');
}

async function grantedAt(cluster: ProcessCluster, node: ProcessNode, domain: string): Promise<number> {
  const { answer } = await cluster.call(node, acquireOf(domain), 20_000);
  if (answer.outcome.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(answer.outcome)}`);
  return answer.outcome.lease.token;
}

describe('nodes that are gone', () => {
  it('two of three work; one of three refuses within the deadline and never grants', async () => {
    await using cluster = await ProcessCluster.started();
    const [one, two, three] = cluster.nodes;
    if (one === undefined || two === undefined || three === undefined) throw new Error('three nodes expected');
    await cluster.kill(three);
    await cluster.untilLeader();
    expect(await grantedAt(cluster, one, 'with-two')).toBeGreaterThan(0);
    await cluster.kill(two);
    for (const timeoutMs of [1_500, 6_000]) {
      const sentAt = Date.now();
      const error = await errorOf(cluster, one, acquireOf('with-one'), timeoutMs);
      expect(error.code, error.message).toBe(UNAVAILABLE);
      expect(Date.now() - sentAt).toBeLessThan(timeoutMs);
      expect(error.metadata.get('fencepost-reason')).toEqual(['NO_LEADER']);
      expect(error.metadata.get('fencepost-outcome')).toHaveLength(1);
      expect(Number(error.metadata.get('retry-delay-ms')[0])).toBeGreaterThan(0);
    }
    cluster.start(two);
    await cluster.untilLeader();
    // What was refused was never granted: the domain is free, or an attempt of unknown outcome holds it for its TTL only.
    expect(await grantedAt(cluster, one, 'after')).toBeGreaterThan(0);
  });
});

describe('disks that are not what they should be', () => {
  it('a wiped member is refused, says what to do, and the others go on', async () => {
    await using cluster = await ProcessCluster.started();
    const leader = await cluster.untilLeader();
    const [victim] = cluster.others(leader);
    if (victim === undefined) throw new Error('three nodes expected');
    await cluster.kill(victim);
    await cluster.wipe(victim);
    cluster.start(victim);
    expect(await victim.exited, victim.log).toBe(1);
    expect(victim.log).toMatch(/the disk was wiped or replaced/);
    expect(victim.log).toMatch(/have the member replaced/);
    expect(await grantedAt(cluster, leader, 'goes-on')).toBeGreaterThan(0);
  });

  it('the directory of another node, of another cluster, or with a missing file is refused by name', async () => {
    await using cluster = await ProcessCluster.started();
    const [one, two, three] = cluster.nodes;
    if (one === undefined || two === undefined || three === undefined) throw new Error('three nodes expected');
    await cluster.kill(one, two, three);
    await rm(one.dataDir, { recursive: true });
    await cp(two.dataDir, one.dataDir, { recursive: true });
    cluster.start(one);
    expect(await one.exited).toBe(1);
    expect(one.log).toContain('belongs to node \\"n2\\"');
    await cluster.configure(two, { cluster: 'other' });
    cluster.start(two);
    expect(await two.exited).toBe(1);
    expect(two.log).toContain('belongs to cluster \\"test\\"');
    await rm(join(three.dataDir, 'database', 'CURRENT'));
    cluster.start(three);
    expect(await three.exited).toBe(1);
    expect(three.log).toMatch(/CURRENT: is missing/);
  });

  it('a copy of a running directory cannot be opened beside it', async () => {
    await using cluster = await ProcessCluster.started();
    const [one] = cluster.nodes;
    if (one === undefined) throw new Error('nodes expected');
    const { stderr, code } = await start('--config', await configBeside(cluster, one));
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(/LOCK|in use|open in another process/i);
  });
});

const FAKETIME = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

describe('clocks that disagree', () => {
  it.skipIf(FAKETIME === undefined)(
    'by a minute at forming: refused, and by how much (needs libfaketime)',
    async () => {
      const behind = { LD_PRELOAD: FAKETIME ?? '', FAKETIME: '-60', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
      await using cluster = await ProcessCluster.create({ environment: { n2: behind } });
      for (const node of cluster.nodes) cluster.start(node);
      const [one, two, three] = cluster.nodes;
      if (one === undefined || two === undefined || three === undefined) throw new Error('three nodes expected');
      expect(await two.exited, two.log).toBe(1);
      // Whoever meets the clock that is behind refuses too; who comes later meets nobody and waits.
      expect(await Promise.race([one.exited, three.exited])).toBe(1);
      const refusal = /wall clocks of n\d and of this node are (59|60|61) s apart/;
      expect(two.log).toMatch(refusal);
      expect(one.log + three.log).toMatch(refusal);
      for (const { log } of cluster.nodes) expect(log).not.toContain('member of a history');
    },
  );
});

describe('wrong usage', () => {
  it('lists every fault of configuration and flags at once and exits with 2', async () => {
    const { stderr, code } = await start(
      '--cluster',
      'a b',
      '--node-id',
      'x',
      '--election-max-ms',
      '1',
      '--no-such-flag',
    );
    expect(code).toBe(2);
    for (const part of ['cluster', 'dataDir', 'members', 'no-such-flag']) expect(stderr).toContain(part);
  });

  it('names both ports that are taken and exits with 2', async () => {
    await using cluster = await ProcessCluster.create({ nodes: 1 });
    const [node] = cluster.nodes;
    if (node === undefined) throw new Error('a node expected');
    const blockers = await Promise.all([node.clientAddress, node.peerAddress].map(listenOn));
    cluster.start(node);
    expect(await node.exited).toBe(2);
    expect(node.log).toContain(node.clientAddress);
    expect(node.log).toContain(node.peerAddress);
    for (const blocker of blockers) blocker.close();
  });

  it('refuses a request over a limit, naming field and limit, all faults at once', async () => {
    await using cluster = await ProcessCluster.started({ nodes: 1 });
    const [node] = cluster.nodes;
    if (node === undefined) throw new Error('a node expected');
    const error = await errorOf(cluster, node, acquireOf('a//b', { ttlMs: 10, holder: 'x'.repeat(256) }));
    expect(error.code).toBe(INVALID_ARGUMENT);
    for (const part of ['domain', 'ttl_ms', '3000', 'holder', '255'])
      expect(error.details.replaceAll(/[\s ](?=\d{3})/g, '')).toContain(part);
    const leases = Array.from({ length: 1_001 }, () => ({ domain: 'd' as Domain, token: 5 as never }));
    expect((await errorOf(cluster, node, { type: 'renew', leases })).details).toMatch(/leases.*1.?000/);
  });
});

describe('disks that are full', () => {
  it('below the floor new leases are refused while renewals and releases go on, and it clears itself', async () => {
    await using cluster = await ProcessCluster.started();
    const leader = await cluster.untilLeader();
    const token = await grantedAt(cluster, leader, 'before');
    await restartAll(cluster, { diskFloorBytes: Number.MAX_SAFE_INTEGER });
    const [one] = cluster.nodes;
    if (one === undefined) throw new Error('nodes expected');
    await until('the refusal', async () => isExhausted(await errorOf(cluster, one, acquireOf(randomUUID()))));
    const error = await errorOf(cluster, one, acquireOf('refused'));
    expect(error.metadata.get('fencepost-reason')).toEqual(['DISK_FULL']);
    const lease = { domain: 'before' as Domain, token: token as never };
    expect((await cluster.call(one, { type: 'renew', leases: [lease] })).answer.results[0]?.type).toBe('live');
    expect((await cluster.call(one, { type: 'release', lease })).answer.released).toBe(true);
    await restartAll(cluster, {});
    expect(await grantedAt(cluster, one, 'refused')).toBeGreaterThan(0);
  });

  it.skipIf(process.getuid?.() !== 0)(
    'a failed write ends the process with 74, and nothing acknowledged is lost (needs root: mounts a small disk)',
    async () => {
      await using cluster = await ProcessCluster.create();
      const [, , victim] = cluster.nodes;
      if (victim === undefined) throw new Error('three nodes expected');
      await mkdir(victim.dataDir);
      await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', victim.dataDir]);
      try {
        for (const node of cluster.nodes) cluster.start(node);
        const leader = await cluster.untilLeader();
        const [entry] = cluster.others(victim);
        if (entry === undefined) throw new Error('three nodes expected');
        const tokens = new Map<Domain, number>();
        const fill = [['k', 'x'.repeat(4_000)]] as const;
        while (victim.child !== undefined && tokens.size < 5_000) {
          const domain = `fill/${tokens.size}` as Domain;
          const { answer } = await cluster.call(entry, acquireOf(domain, { metadata: fill }), 20_000);
          if (answer.outcome.type === 'granted') tokens.set(domain, answer.outcome.lease.token);
        }
        expect(await victim.exited, victim.log).toBe(74);
        expect(victim.log).toContain('a write to the disk failed');
        const leases = [...tokens].map(([domain, token]) => ({ domain, token: token as never })).slice(-1_000);
        const { answer } = await cluster.call(entry, { type: 'renew', leases });
        expect(answer.results.every(({ type }) => type === 'live')).toBe(true);
        expect(leader).toBeDefined();
        // With room again it comes back and catches up.
        await run('mount', ['-o', 'remount,size=200m', victim.dataDir]);
        cluster.start(victim);
        await until('the member to be back', async () => {
          const hashes = await Promise.all([hashOf(cluster, entry), hashOf(cluster, victim)]);
          return hashes[0] !== undefined && hashes[0] === hashes[1];
        });
      } finally {
        await cluster.kill(victim);
        await run('umount', [victim.dataDir]);
      }
    },
  );
});

function isExhausted({ code }: { readonly code: number }): boolean {
  return code === RESOURCE_EXHAUSTED;
}

/** Stops all nodes and starts them with `more` in their configuration. */
async function restartAll(cluster: ProcessCluster, more: Readonly<Record<string, unknown>>): Promise<void> {
  await cluster.kill(...cluster.nodes);
  for (const node of cluster.nodes) {
    await cluster.configure(node, more);
    cluster.start(node);
  }
  await cluster.untilLeader();
}

/** The state hash of a node; undefined while it cannot tell. */
async function hashOf(cluster: ProcessCluster, node: ProcessNode): Promise<string | undefined> {
  try {
    return (await cluster.call(node, { type: 'getStateHash' })).answer.hash;
  } catch {
    return undefined;
  }
}

/** Runs `fencepost start` to its end. */
async function start(...flags: string[]): Promise<{ readonly stderr: string; readonly code: number }> {
  try {
    const { stderr } = await run(process.execPath, [MAIN, 'start', ...flags], { timeout: 30_000 });
    return { stderr, code: 0 };
  } catch (error) {
    const { stderr, code } = error as { readonly stderr: string; readonly code: number };
    return { stderr, code };
  }
}

/** A configuration for the same directory on other ports. */
async function configBeside(cluster: ProcessCluster, node: ProcessNode): Promise<string> {
  const [client, peer] = await freePorts(2);
  await cluster.configure(node, { clientAddress: `127.0.0.1:${client ?? 0}`, peerAddress: `127.0.0.1:${peer ?? 0}` });
  return join(node.dataDir, '..', `${node.name}.json`);
}

function listenOn(address: string): Promise<ReturnType<typeof createServer>> {
  return new Promise((done) => {
    const server = createServer();
    server.listen(Number(address.split(':')[1]), '127.0.0.1', () => {
      done(server);
    });
  });
}
