/**
 * One story for every resource: a worker reads, is stopped past its TTL, and writes when it wakes; its successor has read
 * and written meanwhile. With the guard the late write is refused; without it the successor's write is lost.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Program } from '../chaos/children.js';
import { freePorts, ProcessCluster, until } from '../cluster.js';
import { bundle, TalkingChild } from '../talking-child.js';
import type { RunningResource } from './resource.js';
import type { ServerOrder } from './store-server-child.js';
import type { StoreKind } from './stores.js';
import type { WorkerNews, WorkerOrder, WorkerTask } from './worker-child.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const TTL_MS = 3_000;
const WAIT_MS = 60_000;

/** What the test of a resource is given to start it. */
export interface Stage {
  /** The bundled programs. */
  readonly programs: string;
  /** A folder that is deleted in the end. */
  readonly home: string;
}

/** Registers the tests of one resource; `start` starts it anew, with nothing in it. */
export function describeStaleHolder(name: string, start: (stage: Stage) => Promise<RunningResource>): void {
  describe(`${name}: a worker that was stopped past its TTL between its read and its write`, () => {
    let cluster: ProcessCluster;
    let programs: string;
    let home: string;
    beforeAll(async () => {
      [cluster, programs, home] = await Promise.all([
        ProcessCluster.started(),
        bundle('guards', 'guards/worker-child.ts', 'guards/store-server-child.ts'),
        mkdtemp(join(tmpdir(), 'fencepost-guards-')),
      ]);
      await cluster.untilAllServe();
    });
    afterAll(async () => {
      await cluster[Symbol.asyncDispose]();
      await rm(programs, { recursive: true, force: true });
      await rm(home, { recursive: true, force: true });
    });

    /** The story. What the stopped worker was told in the end, and what is in the resource. */
    async function play(guarded: boolean): Promise<{ readonly late: string; readonly text: string }> {
      const folder = join(home, guarded ? 'guarded' : 'unguarded');
      await mkdir(folder);
      await using resource = await start({ programs, home: folder });
      const workers: TalkingChild<WorkerNews, WorkerTask>[] = [];
      const worker = (name: string): TalkingChild<WorkerNews, WorkerTask> => {
        const order: WorkerOrder = {
          name,
          package: ROOT,
          endpoints: cluster.nodes.map(({ clientAddress }) => clientAddress),
          domain: guarded ? 'guarded' : 'unguarded',
          ttlMs: TTL_MS,
          waitMs: WAIT_MS,
          where: resource.where,
          guarded,
        };
        const child = new TalkingChild<WorkerNews, WorkerTask>(join(programs, 'worker-child.mjs'), order);
        workers.push(child);
        return child;
      };
      try {
        const first = worker('first');
        const before = await first.next('read');
        expect(before).toMatchObject({ opened: 'applied', value: '' });
        first.signal('SIGSTOP');
        const stoppedAt = performance.now();

        const second = worker('second');
        const after = await second.next('read');
        expect(after).toMatchObject({ opened: 'applied', value: '' });
        expect(BigInt(after.token)).toBeGreaterThan(BigInt(before.token));
        second.tell({ type: 'write' });
        expect(await second.next('wrote')).toMatchObject({ held: true, status: 'applied' });

        // Its last renewal may have been some time before: its successor need not have waited for a whole TTL.
        await until('a stop of more than the TTL', () => performance.now() - stoppedAt > TTL_MS);
        // Lies in the pipe until it wakes.
        first.tell({ type: 'write' });
        first.signal('SIGCONT');
        const { held, status: late } = await first.next('wrote');
        expect(held).toBe(false);
        return { late, text: await resource.read() };
      } finally {
        await Promise.all(workers.map((each) => each.kill()));
      }
    }

    it('is refused, and the data are right', async () => {
      expect(await play(true)).toEqual({ late: 'stale', text: 'second ' });
    });

    it('overwrites what its successor wrote when the guard is removed', async () => {
      expect(await play(false)).toEqual({ late: 'applied', text: 'first ' });
    });
  });
}

/** A store that one process owns, behind a small server. */
export function startStore(kind: StoreKind): (stage: Stage) => Promise<RunningResource> {
  return async ({ programs, home }) => {
    const [port = 0] = await freePorts(1);
    const directory = join(home, 'store');
    await mkdir(directory);
    const order: ServerOrder = { kind, package: ROOT, directory, port };
    const log = join(home, 'store.log');
    const server = new Program(kind, join(programs, 'store-server-child.mjs'), () => order, log);
    await server.start();
    const url = `http://127.0.0.1:${port}`;
    return {
      where: { kind: 'server', url },
      async read() {
        expect(server.violations).toEqual([]);
        return (await fetch(url)).text();
      },
      [Symbol.asyncDispose]: () => server.kill(),
    };
  };
}
