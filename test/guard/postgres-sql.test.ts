/** Advancing a fence in SQL, as a client in any language does it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../process/cluster.js';
import { POSTGRES } from '../servers/postgres.js';
import type { PoolClient } from '../servers/postgres.js';
import { D, FencedDatabase, MIGRATION, MIGRATIONS, refused } from './postgres-database.js';

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('fencing.sql', () => {
    let db: FencedDatabase;

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(() => db.clear());

    it('is applied again without a loss, and refuses to replace a newer version', async () => {
      await db.advance(7);
      await Promise.all([db.pool.query(MIGRATION), db.pool.query(MIGRATION)]);
      expect(await db.one('select fencing.highest($1)', [D])).toBe('7');
      await db.pool.query('update fencing.settings set version = 3');
      await expect(db.pool.query(MIGRATION)).rejects.toThrow(/newer version/);
      await db.pool.query('update fencing.settings set version = 2');
    });

    it('takes over a database of version 1: its fences, its notes and its protected tables', async () => {
      await db.pool.query('create database old');
      const old = db.server.pool({ database: 'old', max: 1 });
      await old.query(readFileSync(join(import.meta.dirname, 'postgres/fencing-1.sql'), 'utf8'));
      await old.query(`
        create table stock (domain text, qty int); insert into stock values ('orders/eu', 10);
        select fencing.advance('orders/eu', 9), fencing.reset('orders/eu', 7, 'wrong client'),
          fencing.protect('stock', domain_column => 'domain', mode => 'enforce')`);
      const [first, second] = MIGRATIONS;
      await expect(old.query(second)).rejects.toThrow(/apply fencing.sql of the same package first/);
      await old.query(first);
      await refused(old.query('update stock set qty = 0'), 'FT002');
      await old.query(second);
      await refused(old.query('update stock set qty = 0'), 'FT002');
      await refused(old.query("select fencing.advance('orders/eu', 6)"), 'FT001');
      await old.query("begin; select fencing.advance('orders/eu', 7); update stock set qty = 1; commit");
      const facts = `select version, note, qty, to_regproc('fencing.note_claim') as helper
        from fencing.settings, fencing.history, stock`;
      expect((await old.query(facts)).rows).toEqual([{ version: 2, note: 'wrong client', qty: 1, helper: null }]);
    });

    describe('advance', () => {
      it('takes a slot for a domain of its own', async () => {
        await db.advance(5, 'gpu#0');
        await db.advance(4, 'gpu#1');
        await refused(db.advance(4, 'gpu#0'), 'FT001');
        await refused(db.one("select fencing.reset('gpu#0', 0, 'no token')"), '22023');
        expect(await db.one("select fencing.reset('gpu#0', 3, 'wrong client')")).toBe('5');
        expect(await db.advance(4, 'gpu#0')).toBe('4');
        expect(await db.one("select fencing.highest('gpu')")).toBeNull();
      });

      it('takes the first, the equal and a greater token; a lower one is FT001 with the facts in DETAIL', async () => {
        expect(await db.one('select fencing.highest($1)', [D])).toBeNull();
        for (const token of [5, 5, 6, 6]) expect(await db.advance(token)).toBe(String(token));
        expect(await refused(db.advance(5), 'FT001')).toEqual({ domain: D, presented: 5, highest: 6 });
        expect(await db.one('select fencing.highest($1)', [D])).toBe('6');
        expect(await db.advance(1, 'orders/us')).toBe('1');
      });

      it.each([2n ** 53n, 2n ** 63n - 2n])('compares all bits, at %s', async (token) => {
        await db.advance(token + 1n);
        await refused(db.advance(token), 'FT001');
        expect(await db.advance(token + 1n)).toBe(String(token + 1n));
      });

      it('refuses what is no lease, in every argument', async () => {
        for (const [domain, token] of [
          ['', '1'],
          ['x'.repeat(256), '1'],
          [null, '1'],
          [D, '0'],
          [D, null],
        ]) {
          await refused(db.one('select fencing.advance($1, $2)', [domain, token]), '22023');
        }
      });

      it('does not take another issuer until an operator allows it, and keeps the order then', async () => {
        await db.tryAdvance(5, 'fencepost:prod', 'a');
        expect(await db.tryAdvance(9, 'fencepost:staging', 'c')).toMatchObject({ status: 'issuer', fence: '5' });
        expect(await db.tryAdvance(1, 'fencepost:staging', 'c')).toMatchObject({ status: 'issuer' });
        await refused(db.one("select fencing.advance($1, 9, 'fencepost:staging')", [D]), 'FT003');
        expect(await db.one("select fencing.allow_issuer($1, 'fencepost:staging', 'moved')", [D])).toBe(true);
        expect(await db.one("select fencing.allow_issuer('nobody', 'fencepost:staging', 'moved')")).toBe(false);
        expect(await db.tryAdvance(4, 'fencepost:staging', 'c')).toMatchObject({ status: 'stale', fence: '5' });
        expect(await db.tryAdvance(9, 'fencepost:staging', 'c')).toMatchObject({ status: 'applied', fence: '9' });
        expect(await db.tryAdvance(10, 'fencepost:prod', 'a')).toMatchObject({ status: 'issuer' });
      });

      it('reports a greater token of another incarnation once, and refuses the equal one', async () => {
        await db.tryAdvance(5, 'fencepost:prod', 'a');
        expect(await db.tryAdvance(5, 'fencepost:prod', 'b')).toMatchObject({ status: 'incarnation' });
        await refused(db.one("select fencing.advance($1, 5, 'fencepost:prod', 'b')", [D]), 'FT004');
        expect(await db.tryAdvance(6, 'fencepost:prod', 'b')).toMatchObject({ earlier_incarnation: 'a' });
        expect(await db.tryAdvance(6, 'fencepost:prod', 'b')).toMatchObject({ earlier_incarnation: null });
        expect(await db.tryAdvance(5, 'fencepost:prod', 'a')).toMatchObject({ status: 'stale' });
      });

      it('compares only what is given: an issuer and an incarnation said later are kept from then on', async () => {
        await db.advance(5);
        expect(await db.tryAdvance(5, 'fencepost:prod', 'a')).toMatchObject({ status: 'applied' });
        await db.advance(5);
        expect(await db.tryAdvance(5, 'fencepost:prod', 'b')).toMatchObject({ status: 'incarnation' });
        await db.advance(6);
        expect(await db.tryAdvance(7, 'fencepost:staging')).toMatchObject({ status: 'issuer' });
      });

      it('raises nothing without its settings: there would be no cap', async () => {
        await db.advance(5);
        await db.pool.query('delete from fencing.settings');
        await refused(db.advance(2n ** 62n), 'P0001');
        await db.pool.query(MIGRATION);
        await refused(db.advance(2n ** 62n), 'FT005');
        expect(await db.advance(5)).toBe('5');
      });

      it('refuses a poison token, and reset heals a fence that took one', async () => {
        await db.advance(1_796_000_000_000_041n);
        await refused(db.advance(2n ** 62n), 'FT005');
        await db.advance(1_796_000_000_000_041n + 631_152_000_000_000n);
        await db.advance(2n ** 62n, 'poisoned');
        await refused(db.advance(5, 'poisoned'), 'FT001');
        await refused(db.one("select fencing.reset('poisoned', 5, ' ')"), '22023');
        expect(await db.one("select fencing.reset('poisoned', 5, 'wrong client')")).toBe((2n ** 62n).toString());
        expect(await db.advance(6, 'poisoned')).toBe('6');
        expect(await db.one("select note from fencing.history where domain = 'poisoned'")).toBe('wrong client');
      });
    });

    describe('the lock', () => {
      const waiting = (client: PoolClient) =>
        until('a wait for a lock', async () => {
          const { processID } = client as unknown as { processID: number };
          const sql = "select wait_event_type = 'Lock' from pg_stat_activity where pid = $1";
          return (await db.one(sql, [processID])) === true;
        });
      const using = async <T>(count: number, work: (...clients: PoolClient[]) => Promise<T>): Promise<T> => {
        const clients = await Promise.all(Array.from({ length: count }, () => db.pool.connect()));
        try {
          return await work(...clients);
        } finally {
          for (const client of clients) client.release(true);
        }
      };
      const claim = (client: PoolClient, token: number) => client.query('select fencing.advance($1, $2)', [D, token]);

      it('holders of one token do not wait for each other, a raise waits for them, a stale one waits for nobody', async () => {
        await db.advance(5);
        await using(4, async (a = none(), b = none(), raiser = none(), late = none()) => {
          for (const each of [a, b, raiser]) await each.query('begin');
          await claim(a, 5);
          await claim(b, 5);
          const raised = claim(raiser, 6);
          await waiting(raiser);
          await refused(claim(late, 4), 'FT001');
          await a.query('commit');
          await b.query('commit');
          await raised;
          await raiser.query('commit');
          await refused(claim(a, 5), 'FT001');
        });
      });

      it('a raise that waits goes before holders who come later, so a stream of stale ones cannot keep it out', async () => {
        await db.advance(5);
        await using(3, async (holder = none(), raiser = none(), late = none()) => {
          await holder.query('begin');
          await claim(holder, 5);
          const raised = claim(raiser, 6);
          await waiting(raiser);
          const refusal = refused(claim(late, 5), 'FT001');
          await waiting(late);
          await holder.query('commit');
          await raised;
          await refusal;
        });
      });

      it.each(['repeatable read', 'serializable'])(
        'a snapshot from before a raise is not enough in %s',
        async (level) => {
          await db.advance(5);
          await using(1, async (old = none()) => {
            await old.query(`begin isolation level ${level}`);
            await old.query('select count(*) from stock');
            await db.advance(6);
            await refused(claim(old, 5), '40001');
            await old.query('rollback');
            await old.query(`begin isolation level ${level}`);
            await refused(claim(old, 5), 'FT001');
            await old.query('rollback');
            await old.query(`begin isolation level ${level}`);
            await claim(old, 6);
            await old.query('commit');
          });
        },
      );

      it('a raise that is rolled back was never there', async () => {
        await db.advance(5);
        await using(2, async (raiser = none(), holder = none()) => {
          await raiser.query('begin');
          await claim(raiser, 6);
          const passed = claim(holder, 5);
          await waiting(holder);
          await raiser.query('rollback');
          await passed;
        });
      });
    });

    it('limits what a client that stops can hold up, in every part', async () => {
      const { rows } = await db.pool.query<{ version: string; part: number }>(
        "select current_setting('server_version_num') as version, fencing.limit_transaction(3000) as part",
      );
      expect(rows[0]?.part).toBe(Number(rows[0]?.version) >= 170_000 ? 3_000 : 1_000);
      const client = await db.pool.connect();
      client.on('error', () => undefined);
      await client.query('begin');
      await client.query('select fencing.advance($1, 5)', [D]);
      await client.query('select fencing.limit_transaction(30)').catch(() => undefined);
      // The client says nothing any more; the server ends its transaction, and the successor is let in.
      expect(await db.advance(6)).toBe('6');
      await expect(client.query('commit')).rejects.toThrow();
      client.release(true);
      await refused(db.one('select fencing.limit_transaction(0)'), '22023');
    });
  });
});

function none(): never {
  throw new Error('no client');
}
