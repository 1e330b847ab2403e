/** The guard of PostgreSQL with one fence for each domain. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { postgresFence } from '../../src/guard/postgres.js';
import type { FencedLease, FencedTransaction, PostgresFence } from '../../src/guard/postgres.js';
import { until } from '../process/cluster.js';
import { POSTGRES } from '../servers/postgres.js';
import type { Pool } from '../servers/postgres.js';
import { D, FencedDatabase } from './postgres-database.js';

const PROD = { cluster: 'prod', incarnation: 'a'.repeat(32) };
const lease = (token: number | bigint, more: Partial<FencedLease> = {}): FencedLease => ({
  domain: D,
  token: BigInt(token),
  ...PROD,
  ...more,
});
const set = (qty: number, id = 1) => `update stock set qty = ${qty} where id = ${id}`;
const put = (qty: number) => (tx: FencedTransaction) => tx.query(set(qty)).then(() => undefined);

describe('options', () => {
  const pool = undefined as unknown as Pool;
  it('are refused with every fault', () => {
    const wrong = { limitMs: 99, isolation: 'read uncommitted' as 'serializable' };
    expect(() => postgresFence(pool, wrong)).toThrow(/limitMs must be .* not 99; isolation must be one of/);
    expect(() => postgresFence(pool, { limitMs: 3_600_001 })).toThrow(TypeError);
  });
  it('and a lease that is none never reaches the database', async () => {
    const fence = postgresFence(pool);
    await expect(fence.run({ ...lease(1), token: 0n, cluster: '' }, () => 1)).rejects.toThrow(
      /token must .* cluster must/,
    );
    await expect(fence.run([], () => 1)).rejects.toThrow(/needs one at least/);
    await expect(fence.run([lease(1), lease(2)], () => 1)).rejects.toThrow(/takes one of each domain/);
  });
});

const WAITS = "select count(*) from pg_locks where locktype = 'advisory' and not granted";

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('postgresFence', () => {
    let db: FencedDatabase;
    let pool: Pool;
    let fence: PostgresFence;

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
      pool = db.pool;
      fence = postgresFence(pool);
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(() => db.clear());

    const qty = (id = 1) => db.one('select qty from stock where id = $1', [id]);

    it('applies the first, the equal and a greater token; of a lower one not even the work is called', async () => {
      expect(await fence.fence(D)).toBeUndefined();
      const applied = { status: 'applied', value: undefined, earlierIncarnation: undefined };
      for (const token of [5, 5, 6]) expect(await fence.run(lease(token), put(token))).toEqual(applied);
      let called = false;
      const late = await fence.run(lease(5), () => {
        called = true;
      });
      expect(late).toEqual({ status: 'stale', fence: 6n });
      expect([called, await qty()]).toEqual([false, 6]);
      expect(await fence.fence(D)).toEqual({ token: 6n, issuer: 'fencepost:prod', incarnation: PROD.incarnation });
    });

    it.each([2n ** 53n, 2n ** 63n - 2n])('compares all bits, at %s', async (token) => {
      await fence.run(lease(token + 1n), put(1));
      expect(await fence.run(lease(token), put(2))).toEqual({ status: 'stale', fence: token + 1n });
      expect((await fence.run(lease(token + 1n), put(3))).status).toBe('applied');
    });

    it('a tenure raises before it reads, and ends when a greater one has opened', async () => {
      const first = await fence.open(lease(5));
      const second = await fence.open(lease(6));
      if (first.status !== 'applied' || second.status !== 'applied') throw new Error('not opened');
      expect(await first.value.run(put(5))).toEqual({ status: 'stale', fence: 6n });
      const read = await second.value.run(
        async (tx) => (await tx.query('select qty from stock where id = $1', [1])).rows,
      );
      expect(read).toMatchObject({ status: 'applied', value: [{ qty: 10 }] });
      expect(await fence.open(lease(5))).toEqual({ status: 'stale', fence: 6n });
    });

    it('keeps issuer and incarnation apart (S8); strange names of clusters are only text', async () => {
      const strange = { cluster: `o'ne \\ "two"`, incarnation: `'; drop table stock; --` };
      await fence.run(lease(5, strange), put(5));
      expect(await fence.fence(D)).toEqual({
        token: 5n,
        issuer: `fencepost:${strange.cluster}`,
        incarnation: strange.incarnation,
      });
      expect(await fence.run(lease(9), put(9))).toMatchObject({ status: 'rejected', reason: 'issuer' });
      expect(await fence.allowIssuer(D, 'prod', 'moved')).toBe(true);
      expect(await fence.allowIssuer('nobody', 'prod', 'moved')).toBe(false);
      expect(await fence.run(lease(4), put(4))).toMatchObject({ status: 'stale' });
      expect(await fence.run(lease(5), put(5))).toMatchObject({ status: 'rejected', reason: 'incarnation' });
      expect(await fence.run(lease(6), put(6))).toMatchObject({ earlierIncarnation: strange.incarnation });
      expect(await fence.run(lease(6), put(7))).toMatchObject({ status: 'applied', earlierIncarnation: undefined });
    });

    it('rejects a jump, and an operator resets a poisoned fence', async () => {
      await fence.run(lease(2n ** 62n), put(1));
      await fence.reset(lease(5), 'wrong client');
      expect(await fence.run(lease(2n ** 62n), put(2))).toMatchObject({ status: 'rejected', reason: 'jump' });
      expect(await fence.run(lease(4), put(4))).toEqual({ status: 'stale', fence: 5n });
      expect((await fence.run(lease(6), put(6))).status).toBe('applied');
    });

    it('several domains: all or none', async () => {
      const us = (token: number) => lease(token, { domain: 'orders/us' });
      await fence.run(us(7), put(7));
      expect(await fence.run([us(6), lease(5)], put(1))).toEqual({ status: 'stale', fence: 7n });
      expect(await fence.fence(D)).toBeUndefined();
      expect((await fence.run([us(8), lease(5)], put(1))).status).toBe('applied');
      expect([(await fence.fence(D))?.token, (await fence.fence('orders/us'))?.token]).toEqual([5n, 8n]);
    });

    it('several domains: the time of a fence that stands runs while another is waited for', async () => {
      const leases = [lease(6), lease(6, { domain: 'orders/us' })];
      const holder = await pool.connect();
      await holder.query('begin');
      await holder.query("select fencing.advance('orders/us', 5)");
      const short = await postgresFence(pool, { limitMs: 400 }).run(leases, () => undefined);
      expect(short).toMatchObject({ status: 'retry', attempts: 5, cause: { code: '55P03' } });
      const sql =
        "select min(setting::int) as limited from pg_settings where name in ('statement_timeout', 'transaction_timeout') and setting <> '0'";
      const outcome = postgresFence(pool, { limitMs: 60_000 }).run(
        leases,
        async (tx) => (await tx.query(sql)).rows[0]?.['limited'],
      );
      await until('it waits', async () => Number(await db.one(WAITS)) > 0);
      await holder.query('select pg_sleep(0.2)');
      await holder.query('commit');
      holder.release();
      const done = await outcome;
      if (done.status !== 'applied') throw new Error(done.status);
      const { rows } = await pool.query<{ whole: boolean }>(
        "select current_setting('server_version_num')::int >= 170000 as whole",
      );
      expect(done.value).toBeLessThan(rows[0]?.whole === true ? 60_000 : 20_000);
    });

    it('several domains are entered in one order, whoever gives them how, so that no two wait for each other', async () => {
      const asked: string[] = [];
      const connection = {
        query: (text: string) => Promise.reject(new Error(String(asked.push(text)))),
        release: () => undefined,
        on: () => undefined,
        removeListener: () => undefined,
      };
      const recording = postgresFence({ connect: () => Promise.resolve(connection), query: connection.query });
      const leases = ['b', 'a', 'c'].map((domain) => lease(5, { domain }));
      await expect(recording.run(leases, () => 1)).rejects.toThrow();
      await expect(recording.run([...leases].reverse(), () => 1)).rejects.toThrow();
      const begins = asked.filter((text) => text.startsWith('begin'));
      expect(begins[0]).toMatch(/'a', 5.*'b', 5.*'c', 5/);
      expect(begins[1]).toBe(begins[0]);
    });

    describe('one transaction or none', () => {
      it('work that throws, a statement that fails, and one whose failure is swallowed: neither data nor fence', async () => {
        await fence.run(lease(5), put(5));
        const failing = fence.run(lease(6), async (tx) => {
          await tx.query(set(6));
          throw new Error('no paper');
        });
        await expect(failing).rejects.toThrow('no paper');
        await expect(fence.run(lease(6), (tx) => tx.query('select 1/0'))).rejects.toMatchObject({ code: '22012' });
        const swallowed = fence.run(lease(6), async (tx) => {
          await tx.query(set(6));
          await tx.query('select 1/0').catch(() => undefined);
        });
        await expect(swallowed).rejects.toThrow(/the work went on: nothing was written/);
        expect([await qty(), (await fence.fence(D))?.token]).toEqual([5, 5n]);
      });

      it('change that meets no row is missing, also when the work hides it', async () => {
        const both = async (tx: FencedTransaction): Promise<void> => {
          await tx.query(set(1));
          await tx.change(set(1, 99));
        };
        expect(await fence.run(lease(5), both)).toEqual({ status: 'missing' });
        expect(await fence.run(lease(5), (tx) => both(tx).catch(() => undefined))).toEqual({ status: 'missing' });
        expect([await qty(), await fence.fence(D)]).toEqual([10, undefined]);
        expect((await fence.run(lease(5), (tx) => tx.change(set(1)).then(() => undefined))).status).toBe('applied');
      });

      it('savepoints are the work’s own; the transaction is not', async () => {
        const done = await fence.run(lease(5), async (tx) => {
          await tx.query('savepoint s');
          await tx.query('select 1/0').catch(() => undefined);
          await tx.query('rollback to savepoint s');
          await tx.query(set(5));
          const words = [
            'commit',
            ' COMMIT',
            'begin',
            'rollback',
            'end',
            'abort',
            'start transaction',
            "prepare transaction 'x'",
            '/* so /* nested */ much */ commit',
            '-- done\ncommit',
            ' ; commit',
          ];
          for (const word of words) await expect(tx.query(word)).rejects.toThrow(/begins and ends this transaction/);
        });
        expect([done.status, await qty()]).toEqual(['applied', 5]);
      });

      it('an end of the transaction among several statements: thrown, and nothing comes behind it unguarded', async () => {
        for (const words of ['commit', 'rollback']) {
          const done = fence.run(lease(5), async (tx) => {
            await tx.query(`select 1; ${words}`).catch(() => undefined);
            await tx.query(set(99)).catch(() => undefined);
          });
          await expect(done).rejects.toThrow(/among several statements/);
        }
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

      it('a connection that the server ends in the middle: thrown, nothing written, the process lives', async () => {
        const ended = fence.run(lease(5), async (tx) => {
          await tx.query(set(5));
          const { rows } = await tx.query('select pg_backend_pid() as pid');
          await db.one('select pg_terminate_backend($1)', [rows[0]?.['pid']]);
          await until('the end of the backend', async () => {
            return (
              (await db.one('select count(*)::int from pg_stat_activity where pid = $1', [rows[0]?.['pid']])) === 0
            );
          });
        });
        await expect(ended).rejects.toThrow();
        expect([await qty(), await fence.fence(D)]).toEqual([10, undefined]);
      });
    });

    describe('run again', () => {
      /** Two that have each changed a row before they change the other's. */
      const crossing = async (guard: PostgresFence, count: (times: number) => void) => {
        let arrived = 0;
        let calls = 0;
        const both = (first: number, second: number) => async (tx: FencedTransaction) => {
          count(++calls);
          await tx.query(`update stock set qty = qty + 1 where id = ${first}`);
          arrived++;
          await until('the other', () => arrived >= 2);
          await tx.query(`update stock set qty = qty + 1 where id = ${second}`);
        };
        return Promise.all([guard.run(lease(5), both(1, 2)), guard.run(lease(5), both(2, 1))]);
      };

      it('a deadlock: both are applied in the end, once each', async () => {
        // The first run of a token raises, and has the fence for itself.
        await fence.open(lease(5));
        let calls = 0;
        const patient = postgresFence(pool, { limitMs: 60_000 });
        const done = await crossing(patient, (times) => (calls = times));
        expect(done.map(({ status }) => status)).toEqual(['applied', 'applied']);
        expect(calls).toBe(3);
        expect([await qty(1), await qty(2)]).toEqual([12, 22]);
      });

      it('a serialization failure: the whole, guard included, so that it finds out that it is stale by now', async () => {
        const strict = postgresFence(pool, { isolation: 'repeatable read', limitMs: 60_000 });
        await fence.run(lease(5), put(5));
        let calls = 0;
        const outcome = await strict.run(lease(5), async (tx) => {
          calls++;
          if (calls === 1) await db.pool.query('update stock set qty = 77 where id = 1');
          if (calls === 2) throw new Error('must not be called: the lease is stale');
          const failed = tx.query(set(1));
          // From another transaction that does not wait for the fence: a newer holder on another way.
          await failed.catch(() =>
            db.pool.query("update fencing.fence set token = 6 where domain = 'orders/eu'").catch(() => 0),
          );
          await failed;
        });
        expect([outcome, calls, await qty()]).toEqual([{ status: 'stale', fence: 6n }, 1, 77]);
      });

      it.each(['repeatable read', 'serializable'] as const)(
        'work in %s reads what its predecessor committed while the raise waited for it',
        async (isolation) => {
          await fence.open(lease(5));
          const holder = await pool.connect();
          await holder.query('begin');
          await holder.query('select fencing.advance($1, 5)', [D]);
          await holder.query(set(3));
          const read = 'select qty from stock where id = 1';
          const strict = postgresFence(pool, { isolation, limitMs: 60_000 });
          const done = strict.run(lease(6), async (tx) => (await tx.query(read)).rows[0]);
          await until('the raise waits', async () => Number(await db.one(WAITS)) > 0);
          await holder.query('commit');
          holder.release();
          expect(await done).toMatchObject({ status: 'applied', value: { qty: 3 } });
        },
      );

      it('a bounded number of times, then retry', async () => {
        const strict = postgresFence(pool, { isolation: 'repeatable read', limitMs: 60_000 });
        let calls = 0;
        const outcome = await strict.run(lease(5), async (tx) => {
          calls++;
          await db.pool.query('update stock set qty = qty + 1 where id = 1');
          await tx.query(set(1));
        });
        expect(outcome).toMatchObject({ status: 'retry', attempts: 5, cause: { code: '40001' } });
        expect([calls, await qty()]).toEqual([5, 15]);
      });
    });

    it('holders that race: no lower token is ever written after a greater one', async () => {
      await db.pool.query('create table if not exists parts (at serial, token int)');
      const append = (token: number) =>
        fence.run(lease(token), (tx) => tx.query('insert into parts (token) values ($1)', [token]));
      for (let round = 0; round < 30; round++) {
        const [low, high] = [100 + 2 * round, 101 + 2 * round];
        const outcomes = await Promise.all([append(low), append(low), append(high), append(low), append(high)]);
        expect(outcomes.filter(({ status }) => status !== 'applied' && status !== 'stale')).toEqual([]);
      }
      // The serial number is taken under the fence, so it has the order of the transactions of different tokens.
      const tokens = (await db.pool.query<{ token: number }>('select token from parts order by at')).rows.map(
        (row) => row.token,
      );
      expect(tokens.length).toBeGreaterThan(59);
      expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    });

    it('says what to do where the schema, or the right to it, is missing', async () => {
      await db.pool.query('drop role if exists nobody_yet; create role nobody_yet login');
      const stranger = postgresFence(db.server.pool({ user: 'nobody_yet' }));
      await expect(stranger.open(lease(5))).rejects.toThrow(/see the grants at the end of fencing.sql/);
      await db.pool.query('create database bare');
      await expect(postgresFence(db.server.pool({ database: 'bare' })).open(lease(5))).rejects.toThrow(
        /apply fencing.sql/,
      );
    });
  });
});
