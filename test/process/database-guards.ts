/**
 * One story for every guard of a database server: three nodes, the database, and two workers as processes; the first is
 * stopped for longer than its TTL, once between its read and its write and once inside an open transaction. With the guard the
 * data is right; without it the same shows the damage.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
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

  constructor(program: string, order: Readonly<Record<string, unknown>>) {
    const args = [join(import.meta.dirname, program), JSON.stringify(order)];
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

/** A database with the table `stock`, which has one row: its quantity, and who wrote last. */
export interface Stock extends AsyncDisposable {
  /** For the worker, as JSON. */
  readonly connection: object;
  /** Makes the table anew, with a quantity of 10 and nobody. */
  fill(): unknown;
  /** What is committed. */
  read(): Promise<{ readonly qty: number; readonly by: string | null }>;
}

/**
 * Registers the story of one kind of database. `worker`: its program in this folder. `lockTimeout`: the code with which the
 * database refuses who waits too long for a lock.
 */
export function describeStoppedWorker(worker: string, lockTimeout: string, start: () => Promise<Stock>): void {
  describe('a worker that is stopped for longer than its TTL', () => {
    let cluster: ProcessCluster;
    let stock: Stock;
    const workers: Worker[] = [];

    beforeAll(async () => {
      [cluster, stock] = await Promise.all([ProcessCluster.started(), start()]);
    });
    afterAll(async () => {
      for (const each of workers) await each.end();
      await stock[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
    });
    beforeEach(async () => {
      for (const each of workers.splice(0)) await each.end();
      await stock.fill();
    });

    const started = (guard: string, pauseAt: string): Worker => {
      const endpoints = cluster.nodes.map(({ clientAddress }) => clientAddress);
      const one = new Worker(worker, { endpoints, connection: stock.connection, guard, pauseAt });
      workers.push(one);
      return one;
    };
    /** The first stops at `pauseAt`; the second gets the lease when the TTL is over, and does its work; the first goes on. */
    const paused = async (guard: string, pauseAt: string) => {
      const first = started(guard, pauseAt);
      await first.said('pause');
      first.child.kill('SIGSTOP');
      const second = started(guard, 'never');
      const successor = await second.said('done');
      const between = await stock.read();
      first.child.kill('SIGCONT');
      first.go();
      const late = await first.said('done');
      const after = await stock.read();
      const tokens = { first: first.find('held')?.token, second: second.find('held')?.token };
      expect(BigInt(tokens.second ?? 0)).toBeGreaterThan(BigInt(tokens.first ?? 0));
      return { successor, late, between, after, tokens };
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
      expect(successor).toMatchObject({ status: 'thrown', code: lockTimeout });
      expect(between).toEqual({ qty: 10, by: null });
      expect([late.status, after]).toEqual(['applied', { qty: 9, by: tokens.first }]);
    });
  });
}
