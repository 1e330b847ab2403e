/** Each operation on a connection of its own, of a table that the database itself protects too. */
import { afterAll, beforeAll, describe } from 'vitest';
import { postgresFence } from '../../src/guard/postgres.js';
import type { FencedLease, PostgresConnection, PostgresPool, PostgresWork } from '../../src/guard/postgres.js';
import type { Between, GuardedStore, GuardSubject } from '../../src/guard/conformance/index.js';
import { POSTGRES } from '../servers/postgres.js';
import { FencedDatabase } from './postgres-database.js';
import { describeConformance } from './suite.js';

/** Beyond the pauses of the kit. */
const LIMIT_MS = 30_000;

/** A pool whose next commit is carried out, and whose answer does not arrive. */
class LosingPool implements PostgresPool {
  readonly #pool: PostgresPool;
  constructor(pool: PostgresPool) {
    this.#pool = pool;
  }
  query(text: string, values?: unknown[]): ReturnType<PostgresPool['query']> {
    return this.#pool.query(text, values);
  }
  async connect(): Promise<PostgresConnection> {
    const connection = await this.#pool.connect();
    return {
      async query(text, values) {
        const result = await connection.query(text, values);
        if (text === 'commit') throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
        return result;
      },
      release: (destroy) => {
        connection.release(destroy);
      },
      on: (event, listener) => connection.on(event, listener),
      removeListener: (event, listener) => connection.removeListener(event, listener),
    };
  }
}

function put(leases: readonly FencedLease[], item: string, value: string, between?: Between): PostgresWork<void> {
  return async (tx) => {
    await between?.();
    // In one order: rows that two transactions lock crosswise are theirs to avoid, as they are without a guard.
    for (const domain of leases.map((lease) => lease.domain).sort()) {
      await tx.query(
        'insert into item values ($1, $2, $3) on conflict (domain, name) do update set value = excluded.value',
        [domain, item, value],
      );
    }
  };
}

async function create(db: FencedDatabase): Promise<GuardedStore> {
  await db.clear();
  await db.pool.query(`
    drop table if exists item;
    create table item (domain text, name text, value text, primary key (domain, name));
    select fencing.protect('item', domain_column => 'domain', mode => 'enforce')`);
  let pool = db.server.pool();
  let fence = postgresFence(pool, { limitMs: LIMIT_MS });
  return {
    async open(lease) {
      const opened = await fence.open(lease);
      if (opened.status !== 'applied') return opened;
      return { ...opened, value: { write: (...args) => opened.value.run(put([lease], ...args)) } };
    },
    write: (lease, item, value, between) => fence.run(lease, put([lease], item, value, between)),
    async read(domain, item) {
      const { rows } = await db.pool.query<{ value: string }>(
        'select value from item where domain = $1 and name = $2',
        [domain, item],
      );
      return rows[0]?.value;
    },
    // Its connections end with the server.
    close: () => Promise.resolve(),
    remove: (lease, item) =>
      fence.run(lease, (tx) => tx.query('delete from item where domain = $1 and name = $2', [lease.domain, item])),
    writeAll: (leases, item, value) => fence.run(leases, put(leases, item, value)),
    async writeAndCrash(lease, item, value) {
      const killed = fence.run(lease, async (tx) => {
        await put([lease], item, value)(tx);
        const { rows } = await tx.query('select pg_backend_pid() as pid');
        await db.pool.query('select pg_terminate_backend($1)', [rows[0]?.['pid']]);
      });
      await killed.then(
        () => {
          throw new Error('the operation came through without its connection');
        },
        () => undefined,
      );
    },
    writeLosingResponse: (lease, item, value) =>
      postgresFence(new LosingPool(pool), { limitMs: LIMIT_MS }).run(lease, put([lease], item, value)),
    restart() {
      pool = db.server.pool();
      fence = postgresFence(pool, { limitMs: LIMIT_MS });
      return Promise.resolve();
    },
    async age() {
      await db.pool.query('vacuum full');
    },
    maxJump: 631_152_000_000_000n,
    reset: (lease) => fence.reset(lease, 'conformance'),
    async allowIssuer(domain, cluster) {
      await fence.allowIssuer(domain, cluster, 'conformance');
    },
    async writeWithoutLease(domain, item, value) {
      await pool.query('insert into item values ($1, $2, $3)', [domain, item, value]);
    },
  };
}

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('postgresFence', () => {
    let db: FencedDatabase;
    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    const subject: GuardSubject = { name: 'PostgreSQL', create: () => create(db) };
    describeConformance(subject);
  });
});
