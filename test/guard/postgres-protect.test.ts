/** Tables that refuse what was not advanced, whoever writes. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { POSTGRES } from '../servers/postgres.js';
import { D, FencedDatabase, refused } from './postgres-database.js';

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('fencing.protect', () => {
    let db: FencedDatabase;

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(() => db.clear());

    const DML = [
      "insert into stock values (3, 'orders/eu', 1)",
      'update stock set qty = qty + 1 where id = 1',
      'update stock set qty = 0 where false',
      'delete from stock where id = 1',
      'truncate stock',
      'merge into stock s using (select 1 as id) n on s.id = n.id when matched then update set qty = 9',
    ];
    const rows = () => db.one('select json_agg(s order by id) from stock s');

    it.each(DML)('enforce refuses without advance, takes the domain advanced, and no other: %s', async (sql) => {
      const before = await rows();
      await db.pool.query("select fencing.protect('stock', domain => 'orders/eu', mode => 'enforce')");
      await refused(db.pool.query(sql), 'FT002');
      await refused(db.write(sql, 5, 'orders/us'), 'FT002');
      expect(await rows()).toEqual(before);
      await db.write(sql, 5);
      await db.advance(6);
      await refused(db.write(sql, 5), 'FT001');
      expect(await db.one("select fencing.unprotect('stock')")).toBe(true);
      expect(await db.one("select fencing.unprotect('stock')")).toBe(false);
      await db.pool.query(sql);
    });

    it('enforce outlives the rows: stale after all were deleted, and after they were created anew', async () => {
      await db.pool.query("select fencing.protect('stock', domain => 'orders/eu', mode => 'enforce')");
      await db.write('delete from stock', 6);
      await refused(db.write("insert into stock values (1, 'orders/eu', 1)", 5), 'FT001');
      await db.write("insert into stock values (1, 'orders/eu', 6)", 6);
      await refused(db.write('update stock set qty = 5', 5), 'FT001');
      expect(await db.one('select qty from stock')).toBe(6);
    });

    it('an advance counts only in its own transaction: not the next one, not through a setting of the session', async () => {
      await db.pool.query("select fencing.protect('stock', domain => 'orders/eu', mode => 'enforce')");
      const client = await db.pool.connect();
      const set = 'update stock set qty = 1';
      await client.query('select fencing.advance($1, 5)', [D]);
      await refused(client.query(set), 'FT002');
      await client.query('begin');
      await client.query('select fencing.advance($1, 5)', [D]);
      await client.query("select set_config('fencing.claims', current_setting('fencing.claims'), false)");
      await client.query(set);
      await client.query('commit');
      expect((await client.query("select current_setting('fencing.claims')")).rows[0]).not.toEqual({});
      await refused(client.query(set), 'FT002');
      await client.query("set fencing.claims = '5'");
      await refused(client.query(set), 'FT002');
      await client.query('begin');
      await client.query('savepoint s');
      await client.query('select fencing.advance($1, 5)', [D]);
      await client.query('rollback to s');
      await refused(client.query(set), 'FT002');
      client.release(true);
    });

    it('a domain for each row: old and new one, several in one transaction, never TRUNCATE', async () => {
      await db.pool.query("select fencing.protect('stock', domain_column => 'domain', mode => 'enforce')");
      const both = "update stock set qty = 0 where domain in ('orders/eu', 'orders/us')";
      await refused(db.write(both, 5), 'FT002');
      await db.write('update stock set qty = 1 where id = 1', 5);
      await refused(db.write("update stock set domain = 'orders/us' where id = 1", 5), 'FT002');
      await refused(db.write("update stock set domain = 'orders/eu' where id = 2", 5), 'FT002');
      await refused(db.write('insert into stock values (3, null, 1)', 5), 'FT002');
      await refused(db.write('truncate stock', 5), 'FT002');
      await refused(db.write('delete from stock where id = 2', 5), 'FT002');
      await db.pool.query(
        "begin; select fencing.advance('orders/eu', 5), fencing.advance('orders/us', 5); " + both + '; commit',
      );
      expect(await db.one('select sum(qty)::int from stock')).toBe(0);
      expect(await db.write('delete from stock where id = 1', 5)).toBe(1);
    });

    it.each(['domain', 'domain_column'])('a slot is a domain like others, by %s', async (by) => {
      await db.pool.query("update stock set domain = 'gpu#0' where id = 1");
      await db.pool.query(`select fencing.protect('stock', ${by} => $1, mode => 'enforce')`, [
        by === 'domain' ? 'gpu#0' : 'domain',
      ]);
      const sql = 'update stock set qty = 1 where id = 1';
      await refused(db.write(sql, 5, 'gpu#1'), 'FT002');
      await db.write(sql, 5, 'gpu#0');
      await db.advance(6, 'gpu#0');
      await refused(db.write(sql, 5, 'gpu#0'), 'FT001');
    });

    it.each(['domain', 'domain_column'])(
      'partitions, through the parent and directly, also later ones, by %s',
      async (by) => {
        const value = by === 'domain' ? D : 'domain';
        await db.pool.query('create table parts (domain text, id int) partition by list (id)');
        await db.pool.query('create table parts_1 partition of parts for values in (1)');
        await db.pool.query(`select fencing.protect('parts', ${by} => $1, mode => 'enforce')`, [value]);
        await db.pool.query('create table parts_2 partition of parts for values in (2)');
        for (const sql of [
          "insert into parts values ('orders/eu', 1)",
          "insert into parts_1 values ('orders/eu', 1)",
          "insert into parts_2 values ('orders/eu', 2)",
          'update parts set id = 2 where id = 1',
        ]) {
          await refused(db.pool.query(sql), 'FT002');
          await db.write(sql, 5);
        }
        await refused(db.pool.query('truncate parts'), 'FT002');
        await refused(db.pool.query('truncate parts_1'), 'FT002');
        expect(await db.one('select bool_and(active) from fencing.protected')).toBe(true);
        await db.pool.query("select fencing.unprotect('parts')");
        expect(await db.one('select count(*)::int from fencing.protected')).toBe(0);
      },
    );

    it('observe lets everything pass, and counts and records what enforce would refuse', async () => {
      await db.pool.query("select fencing.protect('stock', domain => 'orders/eu', mode => 'observe')");
      await db.advance(6);
      for (const sql of DML.slice(0, 4)) await db.pool.query(sql);
      await db.pool.query("begin; select fencing.try_advance('orders/eu', 5); update stock set qty = 5; commit");
      await db.write('update stock set qty = 6', 6);
      const seen = await db.pool.query(
        'select operation, code, domain, count, last_detail::json from fencing.observed order by 2, 1',
      );
      const unguarded = { code: 'FT002', domain: D, last_detail: { domain: D, presented: null, highest: null } };
      expect(seen.rows).toEqual([
        {
          operation: 'UPDATE',
          code: 'FT001',
          domain: D,
          count: '1',
          last_detail: { domain: D, presented: 5, highest: 6 },
        },
        { operation: 'DELETE', count: '1', ...unguarded },
        { operation: 'INSERT', count: '1', ...unguarded },
        { operation: 'UPDATE', count: '2', ...unguarded },
      ]);
      expect(await db.one('select max(qty) from stock')).toBe(6);
      await db.pool.query("select fencing.protect('stock', domain => 'orders/eu', mode => 'enforce')");
      await refused(
        db.pool.query("begin; select fencing.try_advance('orders/eu', 5); update stock set qty = 5; commit"),
        'FT001',
      );
      await db.pool.query('rollback');
    });

    it('observing never fails a write, nor lets one wait for another', async () => {
      await db.pool.query("select fencing.protect('stock', domain => 'orders/eu', mode => 'observe')");
      const [a, b] = [await db.pool.connect(), await db.pool.connect()];
      for (const each of [a, b]) await each.query("begin; set local lock_timeout = '2s'");
      await a.query('update stock set qty = 1 where id = 1');
      await b.query('update stock set qty = 1 where id = 2');
      await a.query('commit');
      await b.query('commit');
      a.release();
      b.release();
      await db.pool.query('alter table fencing.observation rename to hidden');
      await db.pool.query('update stock set qty = 3');
      await db.pool.query('alter table fencing.hidden rename to observation');
      expect(await db.one('select max(qty) from stock')).toBe(3);
    });

    it('fires for replicas too, and shows who switched it off', async () => {
      await db.pool.query("select fencing.protect('stock', domain => 'orders/eu', mode => 'enforce')");
      const replica = 'begin; set local session_replication_role = replica; update stock set qty = 1; commit';
      await refused(db.pool.query(replica), 'FT002');
      await db.pool.query('rollback');
      expect(await db.one('select bool_and(active) from fencing.protected')).toBe(true);
      await db.pool.query('alter table stock disable trigger fencing_writes');
      expect(await db.one('select bool_and(active) from fencing.protected')).toBe(false);
    });

    it.each([
      ["'stock', domain => 'a'", /mode must be/],
      ["'stock', domain => 'a', mode => 'off'", /mode must be/],
      ["'stock', mode => 'enforce'", /either domain or domain_column/],
      ["'stock', domain => 'a', domain_column => 'domain', mode => 'enforce'", /either domain or domain_column/],
      ["'stock', domain => '', mode => 'enforce'", /1 to 255 bytes/],
      ["'stock', domain_column => 'nothing', mode => 'enforce'", /no column nothing/],
      ["'fencing.protected', domain => 'a', mode => 'enforce'", /is no table/],
    ])('says what is wrong with protect(%s)', async (args, message) => {
      await expect(db.pool.query(`select fencing.protect(${args})`)).rejects.toThrow(message);
    });

    it('gives an application what it was granted and nothing else; look-alikes in its own schemas change nothing', async () => {
      await db.pool.query(`
        drop role if exists app; create role app login; grant all on stock to app; grant create on schema public to app;
        grant usage on schema fencing to app;
        grant execute on function fencing.advance, fencing.try_advance, fencing.enter, fencing.limit_transaction, fencing.highest,
          fencing.show to app;
        select fencing.protect('stock', domain => 'orders/eu', mode => 'enforce')`);
      const app = db.server.pool({ user: 'app' });
      await app.query("create function public.hashtext(text) returns int language sql as 'select 1/0'");
      await app.query(
        'begin; set local search_path = public, pg_catalog; select fencing.advance($$orders/eu$$, 5); update stock set qty = 1; commit',
      );
      await refused(app.query('update stock set qty = 2'), 'FT002');
      for (const sql of [
        'update fencing.fence set token = 1',
        "select fencing.reset('orders/eu', 1, 'mine')",
        "select fencing.allow_issuer('orders/eu', 'me', 'mine')",
        'select fencing.claims()',
        "select fencing.unprotect('stock')",
        'update fencing.settings set max_jump = 1',
        'select * from fencing.observed',
      ]) {
        await refused(app.query(sql), '42501');
      }
      await db.pool.query('drop function public.hashtext(text); drop owned by app; drop role app');
    });
  });
});
