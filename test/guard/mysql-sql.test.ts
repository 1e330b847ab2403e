/** Fencing in MariaDB as a client in any language uses it: the procedures, and tables that refuse what was not advanced. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mysqlFence } from '../../src/guard/mysql.js';
import { MARIADB } from '../servers/mariadb.js';
import type { Pool, PoolConnection } from '../servers/mariadb.js';
import { D, FencedDatabase, lease, MIGRATION, MIGRATIONS } from './mysql-database.js';

/** The code of what it throws. */
const stateOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'passed',
    (error: unknown) => (error as { sqlState?: unknown }).sqlState,
  );

describe.each(MARIADB)('$name', (kind) => {
  describe.skipIf(kind.program === undefined)('fencing.sql', () => {
    let db: FencedDatabase;
    let pool: Pool;
    /** One, as a pool hands it from client to client. */
    let connection: PoolConnection;

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
      pool = db.pool;
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(async () => {
      await db.clear();
      connection = await pool.getConnection();
      return () => {
        connection.destroy();
      };
    });

    const advance = (token: number | bigint, domain = D, issuer?: string, incarnation?: string) =>
      connection.query('call fencing_advance(?, ?, ?, ?)', [domain, token.toString(), issuer, incarnation]);
    /** In a transaction of its own. */
    const advanced = async (...args: Parameters<typeof advance>) => {
      await connection.query('start transaction');
      try {
        await advance(...args);
      } finally {
        await connection.query('commit');
      }
    };
    const highest = (domain: string = D) => db.one('select token from fencing_fences where domain = ?', [domain]);
    const qty = () => db.one('select qty from stock where id = 1');

    it('is applied as often as one likes, and not over a newer version', async () => {
      await advanced(5);
      db.server.apply(MIGRATION);
      expect(await highest()).toBe(5);
      await pool.query('update fencing_settings set version = 2');
      expect(() => {
        db.server.apply(MIGRATION);
      }).toThrow(/newer version of fencing/);
      await pool.query('update fencing_settings set version = 1');
      expect(await db.one('select max_jump from fencing_settings')).toBe(631_152_000_000_000);
    });

    it('protect.sql is applied only behind fencing.sql of its version, and may be left out', async () => {
      const [first, second] = MIGRATIONS;
      const refused = /apply fencing.sql of the same package first/;
      await pool.query('create database plain');
      expect(() => {
        db.server.apply(`use plain\n${second}`);
      }).toThrow(refused);
      await pool.query('update fencing_settings set version = 0');
      expect(() => {
        db.server.apply(second);
      }).toThrow(refused);
      await pool.query('update fencing_settings set version = 1');
      db.server.apply(`use plain\n${first}`);
      const plain = db.server.pool({ database: 'plain' });
      expect((await mysqlFence(plain).open(lease(5))).status).toBe('applied');
    });

    it('advance: first, equal and greater pass; the others fail with a code each, and raise nothing', async () => {
      for (const token of [5, 5, 6]) await advanced(token, D, 'fencepost:prod', 'a');
      expect(await stateOf(advanced(5, D, 'fencepost:prod', 'a'))).toBe('FT001');
      expect(await stateOf(advanced(7, D, 'fencepost:dev', 'a'))).toBe('FT003');
      expect(await stateOf(advanced(6, D, 'fencepost:prod', 'b'))).toBe('FT004');
      expect(await stateOf(advanced(631_152_000_000_007n, D, 'fencepost:prod', 'a'))).toBe('FT005');
      expect(await stateOf(advanced(0))).toBe('22023');
      expect(await highest()).toBe(6);
      // What is not given is not compared.
      expect(await stateOf(advanced(6))).toBe('passed');
      expect(await stateOf(advanced(6, D, 'fencepost:prod', 'a'))).toBe('passed');
    });

    it('advance outside of a transaction would be over at once: refused', async () => {
      expect(await stateOf(advance(5))).toBe('FT006');
      await connection.query('set autocommit = 0');
      expect(await stateOf(advance(5))).toBe('passed');
    });

    it('names differ by case, and by blanks at their end', async () => {
      await advanced(9, 'a');
      for (const name of ['A', 'a ', 'á']) expect(await stateOf(advanced(1, name))).toBe('passed');
      expect(await highest('a')).toBe(9);
    });

    it('without its settings nothing is raised: there would be no cap', async () => {
      await advanced(5);
      await pool.query('delete from fencing_settings');
      expect(await stateOf(advanced(2n ** 62n))).toBe('45000');
      db.server.apply(MIGRATION);
      expect(await stateOf(advanced(2n ** 62n))).toBe('FT005');
      expect(await highest()).toBe(5);
    });

    it('a raise is rolled back with its transaction', async () => {
      await connection.query('start transaction');
      await advance(5);
      await connection.query('rollback');
      expect(await highest()).toBeUndefined();
    });

    it('reset and allow_issuer say why, and who', async () => {
      await advanced(9, D, 'fencepost:prod', 'a');
      expect(await stateOf(pool.query("call fencing_reset(?, 5, ' ', null, null)", [D]))).toBe('22023');
      await pool.query("call fencing_reset(?, 5, 'wrong client', null, null)", [D]);
      await pool.query("call fencing_allow_issuer(?, 'fencepost:new', 'moved')", [D]);
      const [history] = await pool.query(
        'select account, token_before, token_after, issuer_after, note from fencing_history order by id',
      );
      expect(history).toMatchObject([
        { token_before: 9, token_after: 5, note: 'wrong client', account: expect.stringContaining('root') as string },
        { token_before: 5, token_after: 5, issuer_after: Buffer.from('fencepost:new'), note: 'moved' },
      ]);
      expect(await stateOf(advanced(6, D, 'fencepost:prod'))).toBe('FT003');
      expect(await stateOf(advanced(6, D, 'fencepost:new'))).toBe('passed');
    });

    describe('a protected table', () => {
      beforeEach(() => pool.query("call fencing_protect('stock', ?)", [D]));
      const write = () => stateOf(connection.query('update stock set qty = qty + 1 where id = 1'));

      it('refuses every kind of write to a row without advance, also one that ignores errors', async () => {
        for (const sql of [
          "insert into stock values (3, 'orders/eu', 1)",
          "insert ignore into stock values (3, 'orders/eu', 1)",
          "insert into stock values (1, 'orders/eu', 1) on duplicate key update qty = 1",
          "replace into stock values (1, 'orders/eu', 1)",
          'update stock set qty = 0',
          'update ignore stock set qty = 0',
          'delete from stock',
          'delete stock from stock join (select 1) x',
        ])
          expect(await stateOf(connection.query(sql)), sql).toBe('FT002');
        expect(await qty()).toBe(10);
        expect(await db.one('select count(*) from fencing_protected')).toBe(3);
        await pool.query("call fencing_unprotect('stock')");
        expect(await write()).toBe('passed');
      });

      it('takes writes after advance, of many rows and several statements, and of this domain only', async () => {
        await connection.query('start transaction');
        await advance(5, 'orders/us');
        expect(await write()).toBe('FT002');
        await advance(5);
        expect([await write(), await write()]).toEqual(['passed', 'passed']);
        await connection.query('insert into stock select seq, null, 0 from seq_10_to_20');
        await connection.query('commit');
        expect(await qty()).toBe(12);
      });

      it.each([
        ['commit', ['commit']],
        ['rollback', ['rollback']],
        ['a transaction that begins', ['start transaction']],
        ['autocommit that is set', ['set autocommit = 0', 'commit', 'set autocommit = 1']],
      ])('what was advanced does not leak to the next client of the connection: after %s', async (_, ends) => {
        await connection.query('start transaction');
        await advance(5);
        expect(await write()).toBe('passed');
        for (const sql of ends) await connection.query(sql);
        expect(await write()).toBe('FT002');
        await connection.query('start transaction');
        expect(await write()).toBe('FT002');
      });

      it('autocommit that ends the transaction ends what was advanced', async () => {
        await connection.query('set autocommit = 0');
        await advance(5);
        expect(await write()).toBe('passed');
        await connection.query('set autocommit = 1');
        expect(await write()).toBe('FT002');
      });

      it('a variable by itself lets no stale token pass: the fence is compared at each statement', async () => {
        await connection.query('start transaction');
        await advance(5);
        // Ends the transaction unseen.
        await connection.query('create or replace table other (i int)');
        expect(await write()).toBe('passed');
        await mysqlFence(pool).open(lease(6));
        expect(await write()).toBe('FT001');
        expect(await qty()).toBe(11);
      });

      it('the guard of this package leaves nothing behind in the connection', async () => {
        const one = db.server.pool({ connectionLimit: 1 });
        const sql = 'update stock set qty = qty + 1 where id = 1';
        for (let times = 0; times < 2; times++)
          expect((await mysqlFence(one).run(lease(5), (tx) => tx.change(sql))).status).toBe('applied');
        expect(await stateOf(one.query(sql))).toBe('FT002');
        expect((await mysqlFence(one).run(lease(4), () => undefined)).status).toBe('stale');
        expect(await stateOf(one.query(sql))).toBe('FT002');
        expect(await qty()).toBe(12);
      });

      it('by column: the domain of each row, before and after', async () => {
        await pool.query("call fencing_protect_by_column('stock', 'domain')");
        await connection.query('start transaction');
        await advance(5);
        expect(await write()).toBe('passed');
        const move = "update stock set domain = 'orders/us' where id = 1";
        expect(await stateOf(connection.query(move))).toBe('FT002');
        expect(await stateOf(connection.query('update stock set qty = 0'))).toBe('FT002');
        expect(await stateOf(connection.query('insert into stock values (5, null, 0)'))).toBe('FT002');
        await advance(5, 'orders/us');
        expect(await stateOf(connection.query(move))).toBe('passed');
      });

      it('by column: names that differ by case, or by blanks, are others within one statement too', async () => {
        await pool.query("call fencing_protect_by_column('stock', 'domain')");
        await connection.query('start transaction');
        await advance(5);
        for (const other of ['ORDERS/EU', 'orders/eu ', 'orders/éu'])
          for (const sql of [
            "insert into stock values (7, 'orders/eu', 1), (8, ?, 1)",
            'update stock set domain = ? where id = 1',
          ])
            expect(await stateOf(connection.query(sql, [other])), `${sql} ${other}`).toBe('FT002');
      });

      it('a session whose clock stands still: the fence is compared all the same', async () => {
        await connection.query('set timestamp = 1700000000');
        await connection.query('start transaction');
        await advance(5);
        expect(await write()).toBe('passed');
        await connection.query('commit');
        await mysqlFence(pool).open(lease(6));
        expect(await write()).toBe('FT001');
        expect(await qty()).toBe(11);
      });

      it('does not see truncate, nor the cascades of foreign keys, as the documentation says', async () => {
        await pool.query(
          'create or replace table child (id int, foreign key (id) references stock (id) on delete cascade)',
        );
        await pool.query('insert into child values (1)');
        await pool.query("call fencing_protect('child', 'orders/us')");
        await connection.query('start transaction');
        await advance(5);
        expect(await stateOf(connection.query('delete from stock where id = 1'))).toBe('passed');
        await connection.query('commit');
        expect(await db.one('select count(*) from child')).toBe(0);
        expect(await stateOf(connection.query('truncate child'))).toBe('passed');
        await pool.query('drop table child');
      });
    });
  });
});
