/** The guard of MariaDB that keeps the fence in the row. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mysqlRows } from '../../src/guard/mysql.js';
import type { FencedLease, MysqlRows } from '../../src/guard/mysql.js';
import { until } from '../process/cluster.js';
import { MARIADB } from '../servers/mariadb.js';
import type { Pool, PoolOptions } from '../servers/mariadb.js';
import { FencedDatabase, lease as leaseOf } from './mysql-database.js';

const TABLE = { table: 'app.Account `x`', key: 'Id' };
const applied = { status: 'applied', value: undefined, earlierIncarnation: undefined };
const lease = (token: number | bigint, cluster = 'prod'): FencedLease =>
  leaseOf(token, { domain: 'account/1', cluster });

describe.each(MARIADB)('$name', (kind) => {
  describe.skipIf(kind.program === undefined)('mysqlRows', () => {
    let db: FencedDatabase;
    let pool: Pool;
    let rows: MysqlRows;

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
      pool = db.pool;
      rows = mysqlRows(pool, TABLE);
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(() => {
      db.server.apply(`
        create or replace table \`Account \`\`x\`\`\` (Id int primary key, balance int, fence_token bigint not null default 0,
          fence_issuer varbinary(512), fence_writes bigint unsigned not null default 0);
        insert into \`Account \`\`x\`\`\` (Id, balance) values (1, 100), (2, 200)`);
    });

    const add = (token: number | bigint, amount: number, id = 1, through = rows) =>
      through.change(lease(token), id, {
        set: 'balance = balance + ?',
        where: 'balance + ? >= 0 or false',
        values: [amount, amount],
      });
    const balance = (id = 1) => db.one('select balance from `Account ``x``` where Id = ?', [id]);

    const options: [string, PoolOptions][] = [
      ['the default', {}],
      ['not found rows', { flags: ['-FOUND_ROWS'] }],
      ['rows as lists', { rowsAsArray: true }],
      ['latin1', { charset: 'LATIN1_SWEDISH_CI' }],
    ];
    it.each(options)(
      '%s: the equal token passes, also when it changes nothing; a lower one is stale',
      async (_, more) => {
        const through = mysqlRows(db.server.pool(more), TABLE);
        const token = 2n ** 53n + 1n;
        const strange = (each: bigint) => lease(each, "zwö 鎖 ' \\");
        for (const amount of [1, 1, 0, 0]) {
          const change = { set: 'balance = balance + ?', values: [amount] };
          expect(await through.change(strange(token), 1, change)).toEqual(applied);
        }
        const late = await through.change(strange(token - 1n), 1, { set: 'balance = 0' });
        expect([late, await balance()]).toEqual([{ status: 'stale', fence: token }, 102]);
        expect(await add(token + 1n, 1, 1, through)).toMatchObject({ status: 'rejected', reason: 'issuer' });
        expect(await add(1, 1, 2, through)).toEqual(applied);
      },
    );

    it('is missing where there is no row, or the condition does not hold; stale goes before that', async () => {
      expect(await add(5, 1, 99)).toEqual({ status: 'missing' });
      expect(await add(5, -101)).toEqual({ status: 'missing' });
      await add(5, 1);
      expect(await add(5, -102)).toEqual({ status: 'missing' });
      expect(await add(4, -102)).toEqual({ status: 'stale', fence: 5n });
      expect(await balance()).toBe(101);
    });

    it('refuses a stored token that is none, with nothing changed', async () => {
      await pool.query('update `Account ``x``` set fence_token = -5 where Id = 1');
      await expect(add(5, 1)).rejects.toThrow(/fence_token of row 1 in .* is -5: no fence/);
      expect(await balance()).toBe(100);
    });

    it('rejects another issuer, and a jump', async () => {
      await add(5, 1);
      expect(await rows.change(lease(9, 'staging'), 1, { set: 'balance = 0' })).toMatchObject({
        reason: 'issuer',
        message: expect.stringMatching(/row 1 in app\..*: set its fence_token and fence_issuer by hand/) as string,
      });
      expect(await add(2n ** 62n, 1)).toMatchObject({ status: 'rejected', reason: 'jump' });
      expect(await balance()).toBe(101);
      expect(await add(631_152_000_000_005n, 1)).toEqual(applied);
    });

    it('a tenure raises before it reads', async () => {
      const opened = await rows.open(lease(6), 1);
      if (opened.status !== 'applied') throw new Error(opened.status);
      expect(opened.value.row).toEqual({
        Id: 1,
        balance: 100,
        fence_token: '6',
        fence_issuer: Buffer.from('fencepost:prod'),
        fence_writes: 1,
      });
      expect(await add(5, 1)).toEqual({ status: 'stale', fence: 6n });
      const change = { set: 'balance = ?', values: [Number(opened.value.row['balance']) - 1] };
      expect(await opened.value.change(change)).toEqual(applied);
      expect(await balance()).toBe(99);
      expect(await rows.open(lease(6), 99)).toEqual({ status: 'missing' });
    });

    it('a tenure whose row a greater token has raised before it was read is stale', async () => {
      const raced = mysqlRows(
        {
          getConnection: () => pool.getConnection(),
          query: async (statement, values) => {
            if (statement.sql.startsWith('select')) await rows.open(lease(7), 1);
            return pool.query(statement, values);
          },
        },
        TABLE,
      );
      expect(await raced.open(lease(6), 1)).toEqual({ status: 'stale', fence: 7n });
    });

    it.each(['read committed', 'repeatable read', 'serializable'])(
      'a stale update that waits for a raise loses, %s',
      async (level) => {
        const strict = db.server.pool({ connectionLimit: 1 });
        await strict.query(`set session transaction isolation level ${level}`);
        const raiser = await pool.getConnection();
        await raiser.query('start transaction');
        await raiser.query('update `Account ``x``` set fence_token = 6 where Id = 1');
        const late = mysqlRows(strict, TABLE).change(lease(5), 1, { set: 'balance = 0' });
        await until('the wait for the row', async () => (await db.waiting()) === 1);
        await raiser.query('commit');
        raiser.release();
        expect([await late, await balance()]).toEqual([{ status: 'stale', fence: 6n }, 100]);
      },
    );

    it('a lock that is not granted in time: run again, a bounded number of times, then retry', async () => {
      const hasty = db.server.pool({ connectionLimit: 1 });
      await hasty.query('set innodb_lock_wait_timeout = 0');
      const other = await pool.getConnection();
      await other.query('start transaction');
      await other.query('update `Account ``x``` set balance = 1 where Id = 1');
      const outcome = await mysqlRows(hasty, TABLE).change(lease(5), 1, { set: 'balance = 0' });
      expect(outcome).toMatchObject({ status: 'retry', attempts: 5, cause: { errno: 1205 } });
      await other.query('rollback');
      other.release();
      expect(await mysqlRows(hasty, TABLE).change(lease(5), 1, { set: 'balance = 0' })).toEqual(applied);
    });

    it('refuses what is no lease, and throws what the database says', async () => {
      await expect(add(0, 1)).rejects.toThrow(/token must be/);
      await expect(rows.change(lease(5), 1, { set: 'balance = nothing' })).rejects.toMatchObject({
        code: 'ER_BAD_FIELD_ERROR',
      });
      expect(await balance()).toBe(100);
    });
  });
});
