/** The guard of MariaDB when others are at work at the same time: what it runs again, and what it gives up. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mysqlFence } from '../../src/guard/mysql.js';
import type { FencedTransaction, MysqlFence } from '../../src/guard/mysql.js';
import { until } from '../process/cluster.js';
import { MARIADB } from '../servers/mariadb.js';
import type { Pool } from '../servers/mariadb.js';
import { D, FencedDatabase, lease } from './mysql-database.js';

describe.each(MARIADB)('$name', (kind) => {
  describe.skipIf(kind.program === undefined)('mysqlFence, among others', () => {
    let db: FencedDatabase;
    let pool: Pool;
    let fence: MysqlFence;

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
      pool = db.pool;
      fence = mysqlFence(pool, { limitMs: 60_000 });
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(() => db.clear());

    const qty = (id = 1) => db.one('select qty from stock where id = ?', [id]);
    const add = (id: number) => `update stock set qty = qty + 1 where id = ${id}`;

    it('a deadlock: both are applied in the end, once each', async () => {
      // The first run of a token raises, and has the fence for itself.
      await fence.open(lease(5));
      let arrived = 0;
      let calls = 0;
      const both = (first: number, second: number) => async (tx: FencedTransaction) => {
        calls++;
        await tx.query(add(first));
        arrived++;
        await until('the other', () => arrived >= 2);
        await tx.query(add(second));
      };
      const done = await Promise.all([fence.run(lease(5), both(1, 2)), fence.run(lease(5), both(2, 1))]);
      expect(done.map(({ status }) => status)).toEqual(['applied', 'applied']);
      expect([calls, await qty(1), await qty(2)]).toEqual([3, 12, 22]);
    });

    it('a deadlock that the work hides: what comes after it is refused, and nothing is committed behind no fence', async () => {
      await fence.open(lease(5));
      const other = await pool.getConnection();
      await other.query('start transaction');
      // The heavier one, so that the server gives up the other.
      await other.query('insert into stock select seq, null, 0 from seq_100_to_400');
      await other.query(add(2));
      let calls = 0;
      const said: unknown[] = [];
      const done = fence.run(lease(5), async (tx) => {
        if (++calls > 1) return;
        await tx.query(add(1));
        const crossed = tx.query(add(2)).catch((error: unknown) => said.push(error));
        await until('the wait', async () => (await db.waiting()) === 1);
        await other.query(add(1));
        await crossed;
        await tx.query('update stock set qty = 99 where id = 1').catch((error: unknown) => said.push(error));
      });
      await until('the deadlock', () => said.length === 2);
      await other.query('rollback');
      other.release();
      expect((await done).status).toBe('applied');
      expect(said).toMatchObject([{ errno: 1213 }, { message: expect.stringMatching(/is rolled back/) as string }]);
      expect([calls, await qty()]).toEqual([2, 10]);
    });

    it('a row changed since the snapshot (1020): the whole again, guard included, so that it finds out that it is stale', async () => {
      const strict = db.server.pool({ connectionLimit: 1 });
      await strict.query('set innodb_snapshot_isolation = 1');
      await fence.open(lease(5));
      let calls = 0;
      const outcome = await mysqlFence(strict, { limitMs: 60_000 }).run(lease(5), async (tx) => {
        calls++;
        await tx.query('select * from stock');
        await pool.query('update stock set qty = 77 where id = 1');
        await tx.query(add(1)).finally(async () => {
          // Once the transaction is gone its successor has the fence.
          await fence.open(lease(6));
        });
      });
      expect([outcome, calls, await qty()]).toEqual([{ status: 'stale', fence: 6n }, 1, 77]);
    });

    it('a lock of the work that is not granted in time: again, a bounded number of times, then retry', async () => {
      const hasty = db.server.pool({ connectionLimit: 1 });
      await hasty.query('set innodb_lock_wait_timeout = 0');
      const other = await pool.getConnection();
      await other.query('start transaction');
      await other.query(add(1));
      let calls = 0;
      const outcome = await mysqlFence(hasty, { limitMs: 60_000 }).run(lease(5), (tx) => {
        calls++;
        return tx.query(add(1));
      });
      await other.query('rollback');
      other.release();
      expect(outcome).toMatchObject({ status: 'retry', attempts: 5, cause: { errno: 1205 } });
      expect([calls, await fence.fence(D)]).toEqual([5, undefined]);
    });

    it('a predecessor that keeps its fence for longer than the limit: retry, at once', async () => {
      const holder = await pool.getConnection();
      await holder.query('start transaction');
      await holder.query('call fencing_advance(?, 5, null, null)', [D]);
      const outcome = await mysqlFence(pool, { limitMs: 2_000 }).open(lease(6));
      expect(outcome).toMatchObject({ status: 'retry', attempts: 1, cause: { errno: 1205 } });
      await holder.query('rollback');
      holder.release();
    });

    it('several domains: the time of a fence that stands runs while another is waited for', async () => {
      const us = lease(6, { domain: 'orders/us' });
      await fence.open({ ...us, token: 5n });
      const holder = await pool.getConnection();
      await holder.query('start transaction');
      await holder.query("call fencing_advance('orders/us', 5, null, null)");
      const sql = 'select @@idle_transaction_timeout + 2 * @@max_statement_time as limited';
      const outcome = fence.run([lease(6), us], async (tx) => (await tx.query(sql)).rows[0]?.['limited']);
      await until('it waits', async () => (await db.waiting()) > 0);
      await holder.query('do sleep(0.2)');
      await holder.query('commit');
      holder.release();
      const done = await outcome;
      if (done.status !== 'applied') throw new Error(done.status);
      // All of limitMs, when nothing was waited for.
      expect(done.value).toBeLessThan(60);
    });

    it('a raise that is taken back makes nobody stale, also where the session reads what is not committed', async () => {
      await fence.open(lease(5));
      const other = await pool.getConnection();
      await other.query('start transaction');
      await other.query('call fencing_advance(?, 9, null, null)', [D]);
      const dirty = db.server.pool({ connectionLimit: 1 });
      await dirty.query("set session tx_isolation = 'READ-UNCOMMITTED'");
      const outcome = mysqlFence(dirty, { limitMs: 60_000 }).run(lease(5), (tx) => tx.change(add(1)));
      let over = false;
      void outcome.finally(() => (over = true)).catch(() => undefined);
      await until('it waits', async () => over || (await db.waiting()) > 0);
      await other.query('rollback');
      other.release();
      expect(await outcome).toMatchObject({ status: 'applied' });
      expect(await qty()).toBe(11);
    });

    it('a raise goes before the holders of the lower token that come after it', async () => {
      await fence.open(lease(5));
      const order: string[] = [];
      let release: (() => void) | undefined;
      const first = fence.run(lease(5), () => new Promise<void>((done) => (release = done)));
      await until('the first to be inside', () => release !== undefined);
      const raise = fence.run(lease(6), () => order.push('raise'));
      await until('the raise to wait', async () => (await db.waiting()) === 1);
      const later = fence.run(lease(5), () => order.push('later'));
      await until('the later one to wait', async () => (await db.waiting()) === 2);
      release?.();
      expect([(await first).status, (await raise).status, await later]).toEqual([
        'applied',
        'applied',
        { status: 'stale', fence: 6n },
      ]);
      expect(order).toEqual(['raise']);
    });

    it('holders that race: no lower token is ever written after a greater one', async () => {
      await pool.query('create or replace table parts (at int auto_increment primary key, token int)');
      const append = (token: number) =>
        fence.run(lease(token), (tx) => tx.query('insert into parts (token) values (?)', [token]));
      for (let round = 0; round < 30; round++) {
        const [low, high] = [100 + 2 * round, 101 + 2 * round];
        const outcomes = await Promise.all([append(low), append(low), append(high), append(low), append(high)]);
        expect(outcomes.filter(({ status }) => status !== 'applied' && status !== 'stale')).toEqual([]);
      }
      // The number is taken under the fence, so it has the order of the transactions of different tokens.
      const [found] = await pool.query('select token from parts order by at');
      const tokens = (found as { token: number }[]).map(({ token }) => token);
      expect(tokens.length).toBeGreaterThan(59);
      expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    });

    it('first writers of many domains do not get into each other’s way', async () => {
      const firsts = Array.from({ length: 60 }, (_, at) => lease(60 - at, { domain: `new/${at % 6}` }));
      const outcomes = await Promise.all(firsts.map((each) => fence.run(each, (tx) => tx.query(add(1)))));
      expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['applied', 'stale']));
      for (let at = 0; at < 6; at++) expect((await fence.fence(`new/${at}`))?.token).toBe(BigInt(60 - at));
    });
  });
});
