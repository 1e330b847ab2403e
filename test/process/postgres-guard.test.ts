/**
 * Three nodes, a database, and two workers as processes; the first is stopped for longer than its TTL, once between its read
 * and its write and once inside an open transaction. With the guard the data is right; without it the same shows the damage.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FencedDatabase } from '../guard/postgres-database.js';
import { POSTGRES } from '../servers/postgres.js';
import { ProcessCluster, until } from './cluster.js';

interface News {
  readonly type: 'held' | 'pause' | 'done';
  readonly token?: string;
  readonly status?: string;
  readonly code?: string;
}

/** One worker and what it has said. */
class Worker {
  readonly child: ChildProcess;
  readonly news: News[] = [];

  constructor(order: Readonly<Record<string, unknown>>) {
    const script = join(import.meta.dirname, 'postgres-worker.mjs');
    const args = [script, JSON.stringify(order)];
    this.child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.child.stdout === null) throw new Error('no output');
    createInterface({ input: this.child.stdout }).on('line', (line) => this.news.push(JSON.parse(line) as News));
  }

  async said(type: News['type']): Promise<News> {
    await until(`${type}, after ${JSON.stringify(this.news)}`, () => {
      if (this.child.exitCode !== null && !this.find(type)) throw new Error(`ended without ${type}`);
      return this.find(type) !== undefined;
    });
    return this.find(type) ?? { type };
  }

  find(type: News['type']): News | undefined {
    return this.news.find((each) => each.type === type);
  }

  go(): void {
    this.child.stdin?.write('go\n');
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
  }
}

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('a worker that is stopped for longer than its TTL', () => {
    let cluster: ProcessCluster;
    let db: FencedDatabase;
    const workers: Worker[] = [];

    beforeAll(async () => {
      [cluster, db] = await Promise.all([ProcessCluster.started(), FencedDatabase.start(kind, [])]);
    });
    afterAll(async () => {
      for (const worker of workers) await worker.end();
      await db[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
    });
    beforeEach(async () => {
      for (const worker of workers.splice(0)) await worker.end();
      await db.pool.query(`
        drop table if exists stock;
        create table stock (id int primary key, qty int, by text, fence_token bigint not null default 0, fence_issuer text);
        insert into stock values (1, 10)`);
    });

    const start = (guard: string, pauseAt: string): Worker => {
      const endpoints = cluster.nodes.map(({ clientAddress }) => clientAddress);
      const worker = new Worker({ endpoints, connection: db.server.connection, guard, pauseAt });
      workers.push(worker);
      return worker;
    };
    /** The first stops at `pauseAt`; the second gets the lease when the TTL is over, and does its work; the first goes on. */
    const paused = async (guard: string, pauseAt: string) => {
      const first = start(guard, pauseAt);
      await first.said('pause');
      first.child.kill('SIGSTOP');
      const second = start(guard, 'never');
      const successor = await second.said('done');
      const between = await db.pool.query('select qty, by from stock');
      first.child.kill('SIGCONT');
      first.go();
      const late = await first.said('done');
      const after = await db.pool.query('select qty, by from stock');
      const tokens = { first: first.find('held')?.token, second: second.find('held')?.token };
      expect(BigInt(tokens.second ?? 0)).toBeGreaterThan(BigInt(tokens.first ?? 0));
      return { successor, late, between: between.rows[0] as unknown, after: after.rows[0] as unknown, tokens };
    };

    it.each(['fence', 'rows'])(
      'between its read and its write, %s: its write is stale, the successor’s stands',
      async (guard) => {
        const { successor, late, after, tokens } = await paused(guard, 'read');
        expect([successor.status, late.status]).toEqual(['applied', 'stale']);
        expect(after).toEqual({ qty: 9, by: tokens.second });
      },
    );

    it('between its read and its write, without a guard: it undoes what its successor did', async () => {
      const { successor, late, after, tokens } = await paused('none', 'read');
      expect([successor.status, late.status]).toEqual(['applied', 'applied']);
      // Two were taken away, and one is missing; the last word has the lower token.
      expect(after).toEqual({ qty: 9, by: tokens.first });
    });

    it('inside an open transaction: the server ends it, and the successor gets in without any option set', async () => {
      const { successor, late, between, after, tokens } = await paused('fence', 'inside');
      expect([successor.status, late.status]).toEqual(['applied', 'thrown']);
      expect(between).toEqual({ qty: 9, by: tokens.second });
      expect(after).toEqual(between);
    });

    it('inside an open transaction, without a guard: the successor is kept out, and the stale write is committed', async () => {
      const { successor, late, between, after, tokens } = await paused('none', 'inside');
      expect(successor).toMatchObject({ status: 'thrown', code: '55P03' });
      expect(between).toEqual({ qty: 10, by: null });
      expect([late.status, after]).toEqual(['applied', { qty: 9, by: tokens.first }]);
    });
  });
});
