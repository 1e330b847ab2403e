/** A leader whose disk hangs in the middle of a write, while its network and its loop are well. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import { ELECTION_MAX_MS, TICK_MS } from '../../src/base/limits.js';
import type { Revision } from '../../src/base/revision.js';
import { connect } from '../../src/client/index.js';
import type { Lease } from '../../src/client/index.js';
import { now } from './chaos/clock.js';
import { patchedPackage, ProcessCluster, until } from './cluster.js';
import type { ProcessNode } from './cluster.js';

/**
 * A disk that can be made to hang: while the file in HANG exists, a log write does not end. It notes when the first such
 * write began, on the clock that all processes of the machine share.
 */
const HANGING_DISK = {
  file: 'storage/queue.js',
  text: 'await performLogWrite(disk, job.write);',
  replacement: `
    const { existsSync, writeFileSync } = await import('node:fs');
    const hang = process.env.HANG;
    if (existsSync(hang)) writeFileSync(hang + '.since', String(process.hrtime.bigint()), { flag: 'wx' });
    while (existsSync(hang)) await new Promise((resolve) => setTimeout(resolve, 10));
    await performLogWrite(disk, job.write);`,
};

/** A renewal that a node answered. */
interface Renewal {
  /** Before it was sent, on the shared clock. */
  readonly sentAt: number;
  /** The node that took it says that it leads itself. */
  readonly byItself: boolean;
  readonly live: boolean;
}

/** Renews one lease at one node, over and over, until it is stopped. */
class Renewals {
  readonly answered: Renewal[] = [];
  readonly #running: Promise<void>;
  #stop = false;

  constructor(cluster: ProcessCluster, node: ProcessNode, lease: Lease) {
    this.#running = this.#run(cluster, node, {
      domain: lease.domain as Domain,
      token: Number(lease.token) as Revision,
    });
  }

  async stop(): Promise<void> {
    this.#stop = true;
    await this.#running;
  }

  async #run(
    cluster: ProcessCluster,
    node: ProcessNode,
    lease: { readonly domain: Domain; readonly token: Revision },
  ): Promise<void> {
    while (!this.#stop) {
      const sentAt = now();
      const reply = await cluster.call(node, { type: 'renew', leases: [lease] }, 5_000).catch(() => undefined);
      if (reply !== undefined) {
        const { header, answer } = reply;
        const live = answer.results[0]?.type === 'live';
        this.answered.push({ sentAt, byItself: header?.leader === node.name, live });
      }
      await sleep(5);
    }
  }
}

describe('a leader stuck in fsync', () => {
  it('steps down within an election time-out, acknowledges no renewal after that, and no lease is lost', async () => {
    const home = await mkdtemp(join(tmpdir(), 'fencepost-hang-'));
    const hangOf = (name: string): string => join(home, name);
    try {
      await using hanging = await patchedPackage(HANGING_DISK);
      const environment = Object.fromEntries(['n1', 'n2', 'n3'].map((name) => [name, { HANG: hangOf(name) }]));
      await using cluster = await ProcessCluster.started({ package: hanging.path, environment });
      await using client = connect({ endpoints: cluster.nodes.map(({ clientAddress }) => clientAddress) });
      const lease = await client.acquire('hung', { ttlMs: 20_000 });
      const leader = await cluster.untilLeader();
      const renewals = new Renewals(cluster, leader, lease);
      await until(
        'renewals before',
        () => renewals.answered.filter(({ byItself, live }) => byItself && live).length > 5,
      );
      const hang = hangOf(leader.name);
      await writeFile(hang, '');
      // The write that hangs. Its entry is with the followers all the same, so the next leader grants it.
      const waiting = client.acquire('hung/next');
      await until('the write to hang', () => existsSync(`${hang}.since`));
      await until('the leader to step down', async () => (await cluster.status(leader)).role !== 'leader');
      expect(existsSync(hang)).toBe(true);
      const next = await cluster.untilLeader();
      expect(next.name).not.toBe(leader.name);
      const ledSince = now();
      await until('an answer through it from the next leader', () =>
        renewals.answered.some(({ sentAt, byItself, live }) => sentAt > ledSince && !byItself && live),
      );
      expect((await waiting).isHeld()).toBe(true);
      await renewals.stop();
      await rm(hang);
      await until('the disk to be well again', async () => (await cluster.status(leader)).alarms.length === 0);
      const since = Number(await readFile(`${hang}.since`, 'utf8')) / 1e6;
      // Its disk is looked at in each tick, and an answer needs a round, which is at least one tick after the call came.
      const overdue = renewals.answered.filter(({ sentAt }) => sentAt > since + ELECTION_MAX_MS + 2 * TICK_MS);
      expect(overdue.length).toBeGreaterThan(0);
      expect(overdue.filter(({ byItself }) => byItself)).toEqual([]);
      expect(renewals.answered.filter(({ live }) => !live)).toEqual([]);
      expect(lease.signal.aborted).toBe(false);
      expect((await client.get('hung')).lease?.token).toBe(lease.token);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});
