/** A worker of `postgres-guard.test.ts`. */
import { createRequire } from 'node:module';
import { URL } from 'node:url';
import { postgresFence, postgresRows } from '../../dist/guard/postgres.js';
import { inRows, inTransactions, order, pause, read, work } from './database-worker.mjs';

const pg = createRequire(new URL('../servers/package.json', import.meta.url))('pg');
const pool = new pg.Pool(order.connection);
pool.on('error', () => undefined);

const set = 'qty = $1, by = $2';
const write = `update stock set ${set} where id = 1`;

await work(
  {
    fence: (lease) => inTransactions(postgresFence(pool), lease, write),
    rows: (lease) => inRows(postgresRows(pool, { table: 'stock', key: 'id' }), lease, set),
    async none(_, by) {
      const { rows } = await pool.query(read);
      await pause('read');
      const held = await pool.connect();
      try {
        await held.query("begin; set local lock_timeout = '3s'");
        await held.query(write, [rows[0].qty - 1, by]);
        await pause('inside');
        await held.query('commit');
      } finally {
        held.release(true);
      }
      return { status: 'applied' };
    },
  },
  pool,
);
