/** The guard of PostgreSQL: how long anything may last. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { postgresFence } from '../../src/guard/postgres.js';
import type { FencedLease, FencedTransaction, PostgresFence } from '../../src/guard/postgres.js';
import { until } from '../process/cluster.js';
import { POSTGRES } from '../servers/postgres.js';
import type { Pool } from '../servers/postgres.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { D, FencedDatabase } from './postgres-database.js';

const lease = (token: number): FencedLease => ({
  domain: D,
  token: BigInt(token),
  cluster: 'prod',
  incarnation: 'a'.repeat(32),
});
const set = (qty: number) => `update stock set qty = ${qty} where id = 1`;
const put = (qty: number) => (tx: FencedTransaction) => tx.query(set(qty)).then(() => undefined);

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('limits of postgresFence', () => {
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

    const qty = () => db.one('select qty from stock where id = 1');

    it('work that takes too long is given up, and its successor is let in', async () => {
      const short = postgresFence(pool, { limitMs: 300 });
      let release: (() => void) | undefined;
      const slow = short.run(lease(5), async (tx) => {
        await tx.query(set(5));
        await new Promise<void>((done) => (release = done));
        await tx.query(set(55));
      });
      await expect(slow).rejects.toThrow(/not done within .*limitMs is 300/);
      release?.();
      expect((await fence.run(lease(6), put(6))).status).toBe('applied');
      expect(await qty()).toBe(6);
    });

    it('a statement that takes too long is ended by the server', async () => {
      const short = postgresFence(pool, { limitMs: 300 });
      await expect(short.run(lease(5), (tx) => tx.query('select pg_sleep(60)'))).rejects.toThrow();
      await until('the end of the statement', async () => {
        const sql =
          "select count(*)::int from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid()";
        return (await db.one(`${sql} and state = 'active'`)) === 0;
      });
      expect(await fence.fence(D)).toBeUndefined();
    });

    it('a network that is silent in the middle: given up in time, and the server ends what it knows of', async () => {
      const proxy = await TcpProxy.start(db.server.connection.port);
      const far = db.server.pool({ port: proxy.port });
      const cut = postgresFence(far, { limitMs: 300 }).run(lease(5), async (tx) => {
        await tx.query(set(5));
        proxy.block('toClient');
        await tx.query(set(55));
      });
      await expect(cut).rejects.toThrow(/not done within/);
      expect((await fence.run(lease(6), put(6))).status).toBe('applied');
      expect(await qty()).toBe(6);
      await proxy.close();
    });

    it('limits of the role that are lower stay, and nothing stays behind in the pool', async () => {
      const one = db.server.pool({ max: 1, options: '-c statement_timeout=250ms' });
      const shown =
        "select current_setting('statement_timeout') as s, current_setting('idle_in_transaction_session_timeout') as i, " +
        "current_setting('transaction_timeout', true) as t";
      const inside = await postgresFence(one, { limitMs: 900 }).run(
        lease(5),
        async (tx) => (await tx.query(shown)).rows[0],
      );
      const { rows } = await one.query<{ readonly t: string | null }>(shown);
      const whole = rows[0]?.t !== null;
      expect(inside).toMatchObject({
        value: whole ? { s: '250ms', i: '0', t: '900ms' } : { s: '250ms', i: '300ms', t: null },
      });
      expect((await one.query(shown)).rows[0]).toEqual({ s: '250ms', i: '0', t: whole ? '0' : null });
    });

    it('a predecessor that keeps its fence for longer than the limit: retry', async () => {
      const holder = await pool.connect();
      await holder.query('begin');
      await holder.query('select fencing.advance($1, 5)', [D]);
      const outcome = await postgresFence(pool, { limitMs: 200 }).open(lease(6));
      expect(outcome).toMatchObject({ status: 'retry', attempts: 1, cause: { code: '55P03' } });
      await holder.query('rollback');
      holder.release();
    });
  });
});
