/** A worker of `mysql-guard.test.ts`. */
import { createRequire } from 'node:module';
import { URL } from 'node:url';
import { mysqlFence, mysqlRows } from '../../dist/guard/mysql.js';
import { inRows, inTransactions, order, pause, read, work } from './database-worker.mjs';

const mysql = createRequire(new URL('../servers/package.json', import.meta.url))('mysql2/promise');
const pool = mysql.createPool(order.connection);

const set = 'qty = ?, changed_by = ?';
const write = `update stock set ${set} where id = 1`;

await work(
  {
    fence: (lease) => inTransactions(mysqlFence(pool), lease, write),
    rows: (lease) => inRows(mysqlRows(pool, { table: 'stock', key: 'id' }), lease, set),
    async none(_, by) {
      const [[{ qty }]] = await pool.query(read);
      await pause('read');
      const held = await pool.getConnection();
      try {
        await held.query('set innodb_lock_wait_timeout = 3');
        await held.query('start transaction');
        await held.query(write, [qty - 1, by]);
        await pause('inside');
        await held.query('commit');
      } finally {
        held.destroy();
      }
      return { status: 'applied' };
    },
  },
  pool,
);
