/** The guard of PostgreSQL that keeps the fence in the row. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { postgresRows } from '../../src/guard/postgres.js';
import type { FencedLease, PostgresRows } from '../../src/guard/postgres.js';
import { until } from '../process/cluster.js';
import { POSTGRES, PostgresServer } from '../servers/postgres.js';
import type { Pool } from '../servers/postgres.js';

const lease = (token: number | bigint, cluster = 'prod'): FencedLease => ({
  domain: 'account/1',
  token: BigInt(token),
  cluster,
  incarnation: 'a'.repeat(32),
});

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('postgresRows', () => {
    let server: PostgresServer;
    let pool: Pool;
    let rows: PostgresRows;

    beforeAll(async () => {
      server = await PostgresServer.start(kind);
      pool = server.pool();
      rows = postgresRows(pool, { table: 'public.Account "x"', key: 'Id' });
    }, 120_000);
    afterAll(() => server[Symbol.asyncDispose]());
    beforeEach(async () => {
      await pool.query(`
        drop table if exists public."Account ""x""";
        create table public."Account ""x""" ("Id" int primary key, balance int,
          fence_token bigint not null default 0, fence_issuer text);
        insert into public."Account ""x""" values (1, 100), (2, 200)`);
    });

    const add = (token: number | bigint, amount: number, id = 1) =>
      rows.change(lease(token), id, { set: 'balance = balance + $1', where: 'balance + $1 >= 0', values: [amount] });
    const balance = async (id = 1) => {
      const { rows: found } = await pool.query<{ balance: number }>(
        'select balance from public."Account ""x""" where "Id" = $1',
        [id],
      );
      return found[0]?.balance;
    };

    it('applies the first, the equal and a greater token, and gives what is asked of the row; a lower one is stale', async () => {
      for (const token of [5, 5, 6]) expect(await add(token, 1)).toMatchObject({ status: 'applied' });
      const applied = { status: 'applied', earlierIncarnation: undefined };
      expect(await rows.change(lease(6), 1, { set: 'balance = balance + 1', returning: '*' })).toEqual({
        ...applied,
        value: { Id: 1, balance: 104, fence_token: '6', fence_issuer: 'fencepost:prod' },
      });
      expect(await add(6, 0)).toEqual({ ...applied, value: {} });
      expect(await add(5, 1)).toEqual({ status: 'stale', fence: 6n });
      expect(await balance()).toBe(104);
      expect((await add(1, 1, 2)).status).toBe('applied');
    });

    it.each([2n ** 53n, 2n ** 63n - 2n])('compares all bits, at %s', async (token) => {
      await add(token + 1n, 1);
      expect(await add(token, 1)).toEqual({ status: 'stale', fence: token + 1n });
      expect((await add(token + 1n, 1)).status).toBe('applied');
    });

    it('is missing where there is no row, or the condition does not hold; stale goes before that', async () => {
      expect(await add(5, 1, 99)).toEqual({ status: 'missing' });
      expect(await add(5, -101)).toEqual({ status: 'missing' });
      await add(5, 1);
      expect(await add(5, -102)).toEqual({ status: 'missing' });
      expect(await add(4, -102)).toEqual({ status: 'stale', fence: 5n });
      expect(await balance()).toBe(101);
    });

    it('refuses a stored token that is none, with nothing changed', async () => {
      await pool.query('update public."Account ""x""" set fence_token = -5 where "Id" = 1');
      await expect(add(5, 1)).rejects.toThrow(/fence_token of row 1 in .* is -5: no fence/);
      expect(await balance()).toBe(100);
    });

    it('rejects another issuer, and a jump', async () => {
      await add(5, 1);
      expect(await rows.change(lease(9, 'staging'), 1, { set: 'balance = 0' })).toMatchObject({ reason: 'issuer' });
      expect(await add(2n ** 62n, 1)).toMatchObject({ status: 'rejected', reason: 'jump' });
      expect(await balance()).toBe(101);
      expect((await add(631_152_000_000_005n, 1)).status).toBe('applied');
    });

    it('a tenure raises before it reads', async () => {
      const opened = await rows.open(lease(6), 1);
      if (opened.status !== 'applied') throw new Error(opened.status);
      expect(opened.value.row).toMatchObject({ balance: 100, fence_token: '6' });
      expect(await add(5, 1)).toEqual({ status: 'stale', fence: 6n });
      const change = { set: 'balance = $1', returning: 'balance', values: [Number(opened.value.row['balance']) - 1] };
      expect(await opened.value.change(change)).toMatchObject({ status: 'applied', value: { balance: 99 } });
      expect(await rows.open(lease(6), 99)).toEqual({ status: 'missing' });
    });

    it.each(['read committed', 'serializable'])('a stale update that waits for a raise loses, %s', async (level) => {
      const strict = postgresRows(
        server.pool({ options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` }),
        {
          table: 'Account "x"',
          key: 'Id',
        },
      );
      const raiser = await pool.connect();
      await raiser.query('begin');
      await raiser.query('update public."Account ""x""" set fence_token = 6 where "Id" = 1');
      const late = strict.change(lease(5), 1, { set: 'balance = 0' });
      await until('the wait for the row', async () => {
        const { rowCount } = await pool.query("select from pg_stat_activity where wait_event_type = 'Lock'");
        return rowCount === 1;
      });
      await raiser.query('commit');
      raiser.release();
      expect(await late).toEqual({ status: 'stale', fence: 6n });
      expect(await balance()).toBe(100);
    });

    it('refuses what is no lease, and throws what the database says', async () => {
      await expect(add(0, 1)).rejects.toThrow(/token must be/);
      await expect(rows.change(lease(5), 1, { set: 'balance = 1 / 0' })).rejects.toMatchObject({ code: '22012' });
      expect(await balance()).toBe(100);
    });
  });
});
