/** The guard of MariaDB with one fence for each domain: what is MariaDB's own. The rules of every guard are the kit's. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mysqlFence } from '../../src/guard/mysql.js';
import type { FencedTransaction, MysqlFence, MysqlFenceOptions } from '../../src/guard/mysql.js';
import { until } from '../process/cluster.js';
import { MARIADB } from '../servers/mariadb.js';
import type { Pool, PoolOptions } from '../servers/mariadb.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { D, FencedDatabase, lease } from './mysql-database.js';

const set = (qty: number, id = 1) => `update stock set qty = ${qty} where id = ${id}`;
const put = (qty: number) => (tx: FencedTransaction) => tx.query(set(qty)).then(() => undefined);
const applied = { status: 'applied', value: undefined, earlierIncarnation: undefined };

describe('options', () => {
  const pool = undefined as unknown as Pool;
  it('are refused with every fault', () => {
    const wrong = { limitMs: 1_999, isolation: 'read uncommitted' as 'serializable' };
    expect(() => mysqlFence(pool, wrong)).toThrow(/limitMs must be .* not 1999; isolation must be one of/);
    expect(() => mysqlFence(pool, { limitMs: 3_600_001 })).toThrow(TypeError);
  });
  it('and a lease that is none never reaches the database', async () => {
    const fence = mysqlFence(pool);
    await expect(fence.run({ ...lease(1), token: 0n, cluster: '' }, () => 1)).rejects.toThrow(
      /token must .* cluster must/,
    );
    await expect(fence.run([lease(1), lease(2)], () => 1)).rejects.toThrow(/one of each domain/);
  });
});

describe.each(MARIADB)('$name', (kind) => {
  describe.skipIf(kind.program === undefined)('mysqlFence', () => {
    let db: FencedDatabase;
    let pool: Pool;
    let fence: MysqlFence;

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
      pool = db.pool;
      fence = mysqlFence(pool);
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(() => db.clear());

    const qty = (id = 1) => db.one('select qty from stock where id = ?', [id]);
    /** One whose work does not run out of its time when the machine is slow. */
    const patient = (more: MysqlFenceOptions = {}, through = pool) => mysqlFence(through, { limitMs: 60_000, ...more });

    describe('whatever the options of the pool', () => {
      const options: [string, PoolOptions][] = [
        ['the default', {}],
        ['not found rows', { flags: ['-FOUND_ROWS'] }],
        ['big numbers as text', { supportBigNumbers: true, bigNumberStrings: true }],
        ['rows as lists', { rowsAsArray: true }],
        ['several statements', { multipleStatements: true }],
        ['values by its own rule', { typeCast: () => 'something' }],
        ['latin1', { charset: 'LATIN1_SWEDISH_CI' }],
      ];
      it.each(options)('%s: the equal token passes, one that differs in its last bit does not', async (_, more) => {
        const one = mysqlFence(db.server.pool(more));
        const token = 2n ** 53n + 1n;
        const strange = { cluster: `o'ne \\ "zwö" 鎖`, incarnation: "'; drop table stock; -- " };
        for (let times = 0; times < 3; times++) expect(await one.run(lease(token, strange), put(7))).toEqual(applied);
        expect(await one.run(lease(token - 1n, strange), put(8))).toEqual({ status: 'stale', fence: token });
        const issuer = `fencepost:${strange.cluster}`;
        expect(await one.fence(D)).toEqual({ token, issuer, incarnation: strange.incarnation });
        // Met, and nothing changed.
        expect(await one.run(lease(token, strange), (tx) => tx.change(set(7)).then(() => undefined))).toEqual(applied);
        expect(await one.run(lease(token, strange), (tx) => tx.change(set(7, 99)))).toEqual({ status: 'missing' });
        expect(await qty()).toBe(7);
      });

      it('a connection without autocommit, or with a transaction that somebody left behind, comes back as it was', async () => {
        const one = db.server.pool({ connectionLimit: 1 });
        await one.query('set autocommit = 0, innodb_lock_wait_timeout = 7, max_statement_time = 0.5');
        await one.query(set(99));
        expect(await mysqlFence(one).run(lease(5), put(5))).toEqual(applied);
        await mysqlFence(one).run(lease(4), put(4));
        const [rows] = await one.query(
          'select @@autocommit a, @@innodb_lock_wait_timeout l, @@max_statement_time s, @@idle_transaction_timeout i, ' +
            '@@idle_write_transaction_timeout w, @@idle_readonly_transaction_timeout r, @@in_transaction t',
        );
        expect(rows).toEqual([{ a: 0, l: 7, s: 0.5, i: 0, w: 0, r: 0, t: 0 }]);
        expect(await qty()).toBe(5);
      });
    });

    describe('one transaction or none', () => {
      it('work that throws, and a statement that fails: neither data nor fence; a failure that is caught takes back itself', async () => {
        await fence.run(lease(5), put(5));
        const failing = fence.run(lease(6), async (tx) => {
          await tx.query(set(6));
          throw new Error('no paper');
        });
        await expect(failing).rejects.toThrow('no paper');
        await expect(fence.run(lease(6), (tx) => tx.query('insert into stock (id) values (1)'))).rejects.toMatchObject({
          code: 'ER_DUP_ENTRY',
        });
        expect([await qty(), (await fence.fence(D))?.token]).toEqual([5, 5n]);
        const caught = fence.run(lease(6), async (tx) => {
          await tx.query('insert into stock (id) values (1)').catch(() => undefined);
          await tx.query(set(66));
        });
        expect([await caught, await qty()]).toEqual([applied, 66]);
      });

      it('change that meets no row is missing, also when the work hides it, and for an insert that was ignored', async () => {
        const both = async (tx: FencedTransaction): Promise<void> => {
          await tx.query(set(1));
          await tx.change(set(1, 99));
        };
        expect(await fence.run(lease(5), both)).toEqual({ status: 'missing' });
        expect(await fence.run(lease(5), (tx) => both(tx).catch(() => undefined))).toEqual({ status: 'missing' });
        const ignored = 'insert ignore into stock (id) values (1), (2)';
        expect(await fence.run(lease(5), (tx) => tx.change(ignored))).toEqual({ status: 'missing' });
        expect([await qty(), await fence.fence(D)]).toEqual([10, undefined]);
      });

      it('statements give rows, counts and identities; procedures their first rows', async () => {
        await pool.query('create or replace table parts (id int auto_increment primary key, qty int)');
        await pool.query("create or replace procedure two() begin select 1 as a; select 'b' as b; end");
        const work = async (tx: FencedTransaction) => [
          await tx.query('insert into parts (qty) values (?), (?)', [1, 2]),
          await tx.query('select * from parts order by id'),
          await tx.query('call two()'),
          await tx.query('select 1 from parts where id = 0'),
        ];
        expect(await fence.run(lease(5), work)).toMatchObject({
          value: [
            { rows: [], rowCount: 2, insertId: 1 },
            { rows: [{ id: 1, qty: 1 }, { qty: 2 }], rowCount: 2 },
            { rows: [{ a: 1 }], rowCount: 1 },
            { rows: [], rowCount: 0 },
          ],
        });
      });

      it('refuses what would end the transaction; savepoints and temporary tables are the work’s own', async () => {
        const words =
          'commit; COMMIT work;begin;rollback;start transaction;xa commit "x";/* a */ commit;-- a\ncommit;#a\n  commit;--\ncommit;' +
          '/*! commit */;/*M!100100 commit */;create table x (i int);drop table stock;alter table stock add x int;' +
          'truncate stock;rename table stock to x;lock tables stock write;unlock tables;set autocommit = 1;' +
          'set @a = 1, @@autocommit = 1;set session autocommit = 1;set @@session.innodb_lock_wait_timeout = 50;use mysql;' +
          'create or replace table x (i int);create index x on stock (qty);call fencing_leave(true);call `app`.`fencing_leave`(1);' +
          'grant all on *.* to x;analyze table stock;set transaction read only';
        const done = await fence.run(lease(5), async (tx) => {
          await tx.query('savepoint s');
          await tx.query(set(1));
          await tx.query('rollback to savepoint s');
          await tx.query('rollback work to s');
          await tx.query('/* why */ create temporary table t (i int)');
          await tx.query('drop temporary table t');
          await tx.query('set @mine = 1');
          await tx.query(set(5));
          for (const word of words.split(';'))
            await expect(tx.query(word), word).rejects.toThrow(/begins and ends this transaction/);
        });
        expect([done.status, await qty()]).toEqual(['applied', 5]);
      });

      it('a commit that gets past it, in a procedure: thrown, and nothing behind it is kept', async () => {
        await pool.query('create or replace procedure sly() commit');
        const done = patient().run(lease(5), async (tx) => {
          await tx.query(set(5));
          await tx.query('call sly()');
          await tx.query(set(55));
        });
        await expect(done).rejects.toThrow(/ended its transaction: what came before it is committed, under the fence/);
        expect([await qty(), (await fence.fence(D))?.token]).toEqual([5, 5n]);
      });

      it('several statements in one text: thrown, and nothing is kept', async () => {
        const several = mysqlFence(db.server.pool({ multipleStatements: true }));
        await expect(several.run(lease(5), (tx) => tx.query(`${set(5)}; ${set(6)}`))).rejects.toThrow(
          /one statement at a time/,
        );
        const hidden = several.run(lease(5), (tx) => tx.query(`${set(5)}; ${set(6)}`).catch(() => undefined));
        await expect(hidden).rejects.toThrow(/one statement at a time/);
        expect(await qty()).toBe(10);
      });

      it('a handle is of no use after its run, and is no pool', async () => {
        let kept: FencedTransaction | undefined;
        await fence.run(lease(5), (tx) => {
          kept = tx;
        });
        await expect(kept?.query(set(1))).rejects.toThrow(/is over/);
        const deduct = (tx: FencedTransaction) => tx.query(set(1));
        // @ts-expect-error a pool is not fenced
        expect(() => deduct(undefined as unknown as Pool)).toThrow();
      });
    });

    it.each(['read committed', 'repeatable read', 'serializable'] as const)(
      'what the work reads is not older than its fence, %s: a successor that had to wait sees what it waited for',
      async (isolation) => {
        const guard = patient({ isolation });
        await guard.run(lease(5), put(5));
        let release: (() => void) | undefined;
        const first = guard.run(lease(5), async (tx) => {
          await new Promise<void>((done) => (release = done));
          await tx.query(set(55));
        });
        await until('the first to be inside', () => release !== undefined);
        const second = guard.run(
          lease(6),
          async (tx) => (await tx.query('select qty from stock where id = 1')).rows[0],
        );
        await until('the second to wait', async () => (await db.waiting()) === 1);
        release?.();
        expect([await first, await second]).toMatchObject([{ status: 'applied' }, { value: { qty: 55 } }]);
      },
    );

    it('holders of the equal token go side by side', async () => {
      await fence.open(lease(5));
      let inside = 0;
      const both = async () => {
        inside++;
        await until('the other to be inside', () => inside === 2);
      };
      const done = await Promise.all([patient().run(lease(5), both), patient().run(lease(5), both)]);
      expect(done).toEqual([applied, applied]);
    });

    describe('limits', () => {
      it('work that takes too long is given up, and its successor is let in', async () => {
        const short = mysqlFence(pool, { limitMs: 2_000 });
        let release: (() => void) | undefined;
        const slow = short.run(lease(5), async (tx) => {
          await tx.query(set(5));
          await new Promise<void>((done) => (release = done));
          await tx.query(set(55));
        });
        await expect(slow).rejects.toThrow(/not done within 500 ms \(limitMs is 2000\)/);
        release?.();
        expect((await fence.run(lease(6), put(6))).status).toBe('applied');
        expect(await qty()).toBe(6);
      });

      it('a statement that takes too long is ended by the server, and its transaction with the run', async () => {
        const slow = patient({ limitMs: 2_000 }).run(lease(5), async (tx) => {
          await tx.query(set(5));
          await tx.query('select sleep(60)');
        });
        await expect(slow).rejects.toThrow();
        await until('the end of the statement', async () => {
          return (
            (await db.one("select count(*) from information_schema.processlist where info = 'select sleep(60)'")) === 0
          );
        });
        expect([await qty(), await fence.fence(D)]).toEqual([10, undefined]);
      });

      it('a network that is silent in the middle: given up in time, and the server ends what it knows of', async () => {
        const proxy = await TcpProxy.start(db.server.connection.port);
        const cut = mysqlFence(db.server.pool({ port: proxy.port }), { limitMs: 2_000 }).run(lease(5), async (tx) => {
          await tx.query(set(5));
          proxy.block('toClient');
          await tx.query(set(55));
        });
        await expect(cut).rejects.toThrow(/not done within/);
        expect((await fence.run(lease(6), put(6))).status).toBe('applied');
        expect(await qty()).toBe(6);
        await proxy.close();
      });

      it('are parts of limitMs inside of a run, by whatever rule the server counts idleness; lower ones stay', async () => {
        const shown =
          'select @@idle_transaction_timeout i, @@idle_write_transaction_timeout w, @@idle_readonly_transaction_timeout r, ' +
          '@@max_statement_time s, @@innodb_lock_wait_timeout l';
        const inside = async (one: Pool) =>
          mysqlFence(one, { limitMs: 10_000 }).run(lease(5), async (tx) => (await tx.query(shown)).rows[0]);
        expect(await inside(pool)).toMatchObject({ value: { i: 3, w: 3, r: 3, s: 3.5, l: 10 } });
        const lower = db.server.pool({ connectionLimit: 1 });
        await lower.query(
          'set idle_transaction_timeout = 2, idle_write_transaction_timeout = 1, max_statement_time = 0.5',
        );
        await lower.query('set innodb_lock_wait_timeout = 1');
        expect(await inside(lower)).toMatchObject({ value: { i: 2, w: 1, r: 3, s: 0.5, l: 1 } });
      });

      it('a connection that the server ends in the middle: thrown, nothing written, the process lives', async () => {
        const ended = fence.run(lease(5), async (tx) => {
          await tx.query(set(5));
          const id = Number((await tx.query('select connection_id() as id')).rows[0]?.['id']);
          await pool.query(`kill connection ${id}`);
          await until('the end of the connection', async () => {
            return (await db.one('select count(*) from information_schema.processlist where id = ?', [id])) === 0;
          });
        });
        await expect(ended).rejects.toThrow();
        expect([await qty(), await fence.fence(D)]).toEqual([10, undefined]);
      });
    });

    it('says what to do where the procedures, or the right to them, are missing', async () => {
      db.server.apply(
        'drop database if exists bare; create database bare; create or replace user stranger; grant select on app.stock to stranger',
      );
      await expect(mysqlFence(db.server.pool({ database: 'bare' })).open(lease(5))).rejects.toThrow(
        /apply fencing.sql/,
      );
      const stranger = mysqlFence(db.server.pool({ user: 'stranger' }));
      await expect(stranger.open(lease(5))).rejects.toThrow(/see the grants at the end of fencing.sql/);
      // The grants that the file names are enough.
      for (const name of ['fencing_enter', 'fencing_leave', 'fencing_show'])
        db.server.apply(`grant execute on procedure app.${name} to stranger`);
      expect(await stranger.run(lease(5), () => undefined)).toEqual(applied);
      expect((await stranger.fence(D))?.token).toBe(5n);
      await expect(stranger.reset(lease(4), 'no')).rejects.toThrow(/see the grants/);
    });
  });
});
