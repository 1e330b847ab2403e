import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from 'vitest';
import { sqliteFence } from '../../src/guard/sqlite.js';
import type { Fenced, FencedLease, SqliteFence } from '../../src/guard/sqlite.js';
import { SQLITE } from '../servers/sqlite.js';
import type { SqliteConnection } from '../servers/sqlite.js';

const lease = (token: number | bigint, more: Partial<FencedLease> = {}): FencedLease => ({
  domain: 'orders/eu',
  token: BigInt(token),
  cluster: 'prod',
  incarnation: 'a'.repeat(32),
  ...more,
});

describe.each(SQLITE)('$name', ({ open }) => {
  describe.skipIf(open === undefined)('a guard over it', () => {
    let directory: string;
    let file: string;
    let db: SqliteConnection;
    let fence: SqliteFence<SqliteConnection>;
    const others: SqliteConnection[] = [];

    const connect = (): SqliteConnection => {
      if (open === undefined) throw new Error('no driver');
      const connection = open(file);
      connection.exec('pragma synchronous = full');
      others.push(connection);
      return connection;
    };

    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), 'fencepost-sqlite-'));
      file = join(directory, 'orders.db');
      db = connect();
      db.exec('pragma journal_mode = wal');
      db.exec('create table stock (sku text primary key, qty text)');
      fence = sqliteFence(db);
    });
    afterEach(async () => {
      for (const connection of others.splice(0)) connection.close();
      await rm(directory, { recursive: true, force: true });
    });

    const put = (of: FencedLease | readonly FencedLease[], qty: string) =>
      fence.run(of, (tx) => {
        tx.prepare('insert into stock values (?, ?) on conflict do update set qty = excluded.qty').run('pen', qty);
        return qty;
      });
    const stock = () => (db.prepare('select qty from stock').get() as { qty: string } | undefined)?.qty;

    it('takes what is not lower and raises; the fence and the data are in one transaction', () => {
      expect(put(lease(5), '1')).toEqual({ status: 'applied', value: '1', earlierIncarnation: undefined });
      expect(put(lease(5), '2').status).toBe('applied');
      expect(put(lease(6), '3').status).toBe('applied');
      expect(put(lease(5), 'late')).toEqual({ status: 'stale', fence: 6n });
      expect(stock()).toBe('3');
      expect(fence.fence('orders/eu')).toEqual({ token: 6n, issuer: 'fencepost:prod', incarnation: 'a'.repeat(32) });
      expect(() =>
        fence.run(lease(7), (tx) => {
          tx.exec("update stock set qty = 'torn'");
          throw new Error('no paper');
        }),
      ).toThrow('no paper');
      expect(stock()).toBe('3');
      expect(put(lease(6), '4').status).toBe('applied');
    });

    it('outlives the data, and the connection', () => {
      put(lease(6), '1');
      fence.run(lease(6), (tx) => {
        tx.exec('delete from stock');
      });
      db = connect();
      fence = sqliteFence(db);
      expect(put(lease(5), 'late')).toEqual({ status: 'stale', fence: 6n });
      expect(stock()).toBeUndefined();
    });

    it('gives a tenure that ends when a greater one has opened', () => {
      const opened = fence.open(lease(5));
      if (opened.status !== 'applied') throw new Error(opened.status);
      expect(opened.value.run(stock)).toMatchObject({ status: 'applied', value: undefined });
      expect(fence.open(lease(6)).status).toBe('applied');
      expect(opened.value.run(stock)).toEqual({ status: 'stale', fence: 6n });
      expect(fence.open(lease(5))).toEqual({ status: 'stale', fence: 6n });
    });

    it('has one fence for all connections, and says retry when another keeps the write lock', () => {
      const other = connect();
      other.exec('pragma busy_timeout = 0');
      db.exec('pragma busy_timeout = 0');
      expect(sqliteFence(other).open(lease(6)).status).toBe('applied');
      expect(put(lease(5), 'late').status).toBe('stale');
      other.exec('begin immediate');
      const busy = put(lease(7), '1');
      expect(busy).toMatchObject({ status: 'retry', attempts: 1 });
      other.exec('rollback');
      expect(put(lease(7), '1').status).toBe('applied');
    });

    it('says retry, and rolls back, when a reader keeps the commit from its end', () => {
      db.exec('pragma journal_mode = delete');
      db.exec('pragma busy_timeout = 0');
      put(lease(5), '1');
      const reader = connect();
      reader.exec('begin');
      reader.prepare('select * from stock').get();
      expect(put(lease(6), '2')).toMatchObject({ status: 'retry' });
      reader.exec('commit');
      expect(stock()).toBe('1');
      expect(fence.fence('orders/eu')?.token).toBe(5n);
      expect(put(lease(6), '2').status).toBe('applied');
    });

    it('leaves a transaction of its user alone', () => {
      db.exec('begin');
      db.exec("insert into stock values ('mine', '1')");
      expect(() => put(lease(5), '1')).toThrow('within a transaction');
      db.exec('commit');
      expect(stock()).toBe('1');
      expect(put(lease(5), '2').status).toBe('applied');
    });

    it('throws when the work has caught a failure that ended the transaction, and raises nothing', () => {
      put(lease(5), '1');
      const work = (): unknown =>
        fence.run(lease(6), (tx) => {
          try {
            tx.exec("insert or rollback into stock values ('pen', '2')");
          } catch {
            // As work should not.
          }
        });
      expect(work).toThrow('no transaction is active');
      expect(fence.fence('orders/eu')?.token).toBe(5n);
    });

    it('takes no work that goes on later', () => {
      const later = () => Promise.reject(new Error('nobody hears this'));
      expect(() => fence.run(lease(5), later)).toThrow('must be synchronous');
      expect(fence.fence('orders/eu')).toBeUndefined();
    });

    it('keeps to one cluster until an operator says otherwise; a reset by hand alone', () => {
      put(lease(5), '1');
      expect(put(lease(9, { cluster: 'staging' }), '2')).toMatchObject({ status: 'rejected', reason: 'issuer' });
      expect(fence.allowIssuer('nobody', 'staging')).toBe(false);
      expect(fence.allowIssuer('orders/eu', 'staging')).toBe(true);
      expect(put(lease(9, { cluster: 'staging' }), '3').status).toBe('applied');
      fence.reset(lease(7));
      expect(put(lease(6), 'late')).toEqual({ status: 'stale', fence: 7n });
      expect(() => {
        fence.reset(lease(0));
      }).toThrow('token');
      expect(() => put(lease(0), '1')).toThrow('token');
      expect(stock()).toBe('3');
    });

    it.each([
      ['synchronous = normal', 'PRAGMA synchronous = FULL'],
      ['synchronous = off', 'PRAGMA synchronous = FULL'],
      ['journal_mode = memory', 'journal_mode is memory'],
    ])('is not made over a connection with %s', (setting, says) => {
      db.exec('pragma journal_mode = delete');
      db.exec(`pragma ${setting}`);
      expect(() => sqliteFence(db)).toThrow(says);
    });

    it('is not made over a connection without a journal', () => {
      // Drivers refuse to set it.
      const off = { get: () => ({ journal_mode: 'off' }), run: () => ({ changes: 0 }) };
      const prepare = (sql: string) => (sql === 'pragma journal_mode' ? off : db.prepare(sql));
      expect(() => sqliteFence({ exec: (sql: string) => db.exec(sql), prepare })).toThrow('journal_mode is off');
    });

    it('keeps its commits when somebody switches the file to a write-ahead log later', () => {
      db.exec('pragma journal_mode = delete');
      // As a program opens it that sets nothing: FULL, which some drivers lower with a write-ahead log.
      const bare = open?.(file);
      if (bare === undefined) throw new Error('no driver');
      others.push(bare);
      const guard = sqliteFence(bare);
      db.exec('pragma journal_mode = wal');
      expect(guard.open(lease(5)).status).toBe('applied');
      expect(bare.prepare('pragma synchronous').get()).toEqual({ synchronous: 2 });
    });

    it.each([
      ['an empty token', "''", 'token is no integer from 1 to 2^63 - 1'],
      ['a token of 0', '0', 'token is no integer'],
      ['a token that was a double', '1.7e15', 'token is no integer'],
      ['a token that is missing', 'null', 'token is no integer'],
      ['no issuer', "5, ''", 'issuer is no text'],
      ['no incarnation', "5, 'fencepost:prod', null", 'incarnation is no text'],
    ])('refuses a row that is no fence, and leaves it alone: %s', (_, values, message) => {
      // A table that a person made, without the types.
      db.exec('drop table fencepost_fence');
      db.exec('create table fencepost_fence (domain text primary key, token, issuer, incarnation)');
      const columns = ['domain', 'token', 'issuer', 'incarnation'].slice(0, values.split(',').length + 1).join();
      db.exec(`insert into fencepost_fence (${columns}) values ('orders/eu', ${values})`);
      const row = () => db.prepare('select * from fencepost_fence').get();
      const before = row();
      const guard = sqliteFence(db);
      expect(() => guard.run(lease(5), () => undefined)).toThrow(message);
      expect(() => guard.fence('orders/eu')).toThrow('the row orders/eu of fencepost_fence is no fence');
      expect(row()).toEqual(before);
    });

    it('does not ask that of a database in memory', () => {
      const memory = open?.(':memory:');
      if (memory === undefined) throw new Error('no driver');
      others.push(memory);
      expect(sqliteFence(memory).open(lease(5)).status).toBe('applied');
    });

    it('goes by the same rules as the statement that its documentation gives to other languages', () => {
      const sql = /```sql\n(.*?)```/s.exec(readFileSync('src/guard/README.md', 'utf8'))?.[1] ?? '';
      const statement = (of: FencedLease) => {
        const values = { domain: of.domain, token: of.token.toString(), incarnation: of.incarnation };
        const text = Object.entries({ ...values, issuer: `fencepost:${of.cluster}` }).reduce(
          (left, [name, value]) => left.replace(`:${name}`, name === 'token' ? value : `'${value}'`),
          sql,
        );
        return db.prepare(text).get() === undefined ? 'refused' : 'applied';
      };
      const far = 631_152_000_000_000;
      const leases = [
        lease(5),
        lease(5),
        lease(5, { incarnation: 'b' }),
        lease(4),
        lease(6, { incarnation: 'b' }),
        lease(6),
        lease(7, { cluster: 'staging' }),
        lease(7 + far),
        lease(6 + far),
      ];
      for (const each of leases) {
        const there = { ...each, domain: 'there' };
        const here = { ...each, domain: 'here' };
        expect([each, statement(there)]).toEqual([each, put(here, '1').status === 'applied' ? 'applied' : 'refused']);
        expect(fence.fence('there')).toEqual(fence.fence('here'));
      }
      expect(fence.fence('there')?.token).toBe(BigInt(6 + far));
    });

    it('marks the connection within a run, so that a function can ask for it', () => {
      const guarded = (tx: Fenced<SqliteConnection>): unknown => tx.prepare('select 1 as one').get();
      expect(fence.run(lease(5), guarded)).toMatchObject({ status: 'applied', value: { one: 1 } });
      expectTypeOf<SqliteConnection>().not.toExtend<Fenced<SqliteConnection>>();
      expectTypeOf<Fenced<SqliteConnection>>().toExtend<SqliteConnection>();
    });
  });
});
