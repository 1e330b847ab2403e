/**
 * Each operation on a connection of its own, of a table that the database itself protects too; the server is killed and started
 * again with the same data.
 */
import { afterAll, beforeAll, describe } from 'vitest';
import { mysqlFence } from '../../src/guard/mysql.js';
import type { FencedLease, MysqlConnection, MysqlPool, MysqlWork } from '../../src/guard/mysql.js';
import type { Between, GuardedStore, GuardSubject } from '../../src/guard/conformance/index.js';
import { MARIADB } from '../servers/mariadb.js';
import { FencedDatabase } from './mysql-database.js';
import { describeConformance } from './suite.js';

/** Beyond the pauses of the kit. */
const LIMIT_MS = 30_000;

/** A pool whose next commit is carried out, and whose answer does not arrive. */
class LosingPool implements MysqlPool {
  readonly #pool: MysqlPool;
  constructor(pool: MysqlPool) {
    this.#pool = pool;
  }
  query(...args: Parameters<MysqlPool['query']>): ReturnType<MysqlPool['query']> {
    return this.#pool.query(...args);
  }
  async getConnection(): Promise<MysqlConnection> {
    const connection = await this.#pool.getConnection();
    return {
      async query(statement, values) {
        const result = await connection.query(statement, values);
        if (statement.sql === 'call fencing_leave(true)')
          throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
        return result;
      },
      release: () => {
        connection.release();
      },
      destroy: () => {
        connection.destroy();
      },
    };
  }
}

function put(leases: readonly FencedLease[], item: string, value: string, between?: Between): MysqlWork<void> {
  return async (tx) => {
    await between?.();
    // In one order: rows that two transactions lock crosswise are theirs to avoid, as they are without a guard.
    for (const domain of leases.map((lease) => lease.domain).sort()) {
      const sql = 'insert into item values (?, ?, ?) on duplicate key update value = values(value)';
      await tx.query(sql, [domain, item, value]);
    }
  };
}

async function create(db: FencedDatabase): Promise<GuardedStore> {
  await db.clear();
  await db.pool.query('drop table if exists item');
  await db.pool.query(
    'create table item (domain varbinary(255), name varchar(64), value text, primary key (domain, name))',
  );
  await db.pool.query("call fencing_protect_by_column('item', 'domain')");
  let pool = db.server.pool();
  let fence = mysqlFence(pool, { limitMs: LIMIT_MS });
  return {
    async open(lease) {
      const opened = await fence.open(lease);
      if (opened.status !== 'applied') return opened;
      return { ...opened, value: { write: (...args) => opened.value.run(put([lease], ...args)) } };
    },
    write: (lease, item, value, between) => fence.run(lease, put([lease], item, value, between)),
    async read(domain, item) {
      const value = await db.one('select value from item where domain = ? and name = ?', [domain, item]);
      return value as string | undefined;
    },
    close: () => pool.end(),
    remove: (lease, item) =>
      fence.run(lease, (tx) => tx.query('delete from item where domain = ? and name = ?', [lease.domain, item])),
    writeAll: (leases, item, value) => fence.run(leases, put(leases, item, value)),
    async writeAndCrash(lease, item, value) {
      const killed = fence.run(lease, async (tx) => {
        await put([lease], item, value)(tx);
        const { rows } = await tx.query('select connection_id() as id');
        await db.pool.query(`kill connection ${String(rows[0]?.['id'])}`);
      });
      await killed.then(
        () => {
          throw new Error('the operation came through without its connection');
        },
        () => undefined,
      );
    },
    writeLosingResponse: (lease, item, value) =>
      mysqlFence(new LosingPool(pool), { limitMs: LIMIT_MS }).run(lease, put([lease], item, value)),
    async restart() {
      await pool.end();
      await db.server.kill();
      await db.server.run();
      pool = db.server.pool();
      fence = mysqlFence(pool, { limitMs: LIMIT_MS });
    },
    async age() {
      await db.pool.query('optimize table item, fencing_fence');
    },
    maxJump: 631_152_000_000_000n,
    reset: (lease) => fence.reset(lease, 'conformance'),
    async allowIssuer(domain, cluster) {
      await fence.allowIssuer(domain, cluster, 'conformance');
    },
    async writeWithoutLease(domain, item, value) {
      await pool.query('insert into item values (?, ?, ?)', [domain, item, value]);
    },
  };
}

describe.each(MARIADB)('$name', (kind) => {
  describe.skipIf(kind.program === undefined)('mysqlFence', () => {
    let db: FencedDatabase;
    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    const subject: GuardSubject = { name: 'MariaDB', create: () => create(db) };
    describeConformance(subject);
  });
});
