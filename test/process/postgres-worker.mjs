/**
 * A worker of `postgres-guard.test.ts`: acquires the lease of `stock`, takes one away from the stock, and says what became of
 * it, one line of JSON each. It never asks whether it still holds the lease: that is what the guard is for. After each
 * `pause` it waits for a line on standard input, and a test stops it there.
 */
import { once } from 'node:events';
import { createRequire } from 'node:module';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { URL } from 'node:url';
import { connect } from '../../dist/client/index.js';
import { postgresFence, postgresRows } from '../../dist/guard/postgres.js';

const { endpoints, connection, guard, pauseAt } = JSON.parse(process.argv[2] ?? '');
const pg = createRequire(new URL('../servers/package.json', import.meta.url))('pg');
const lines = createInterface({ input: process.stdin });
const say = (/** @type {object} */ news) => process.stdout.write(`${JSON.stringify(news)}\n`);
const pause = async (/** @type {string} */ at) => {
  if (at !== pauseAt) return;
  const told = once(lines, 'line');
  say({ type: 'pause' });
  await told;
};

const pool = new pg.Pool(connection);
pool.on('error', () => undefined);
const client = connect({ endpoints });
const lease = await client.acquire('stock', { ttlMs: 3_000, waitMs: 60_000 });
say({ type: 'held', token: lease.token.toString() });

const read = 'select qty from stock where id = 1';
const write = 'update stock set qty = $1, by = $2 where id = 1';
const qtyOf = (/** @type {{ rows: { qty: number }[] }} */ { rows }) => rows[0]?.qty ?? 0;
const by = lease.token.toString();

/** Each opens, reads, and writes by what it has read. */
const guards = {
  async fence() {
    const fence = postgresFence(pool);
    const opened = await fence.open(lease);
    if (opened.status !== 'applied') return opened;
    const seen = await opened.value.run(async (tx) => qtyOf(await tx.query(read)));
    if (seen.status !== 'applied') return seen;
    await pause('read');
    return opened.value.run(async (tx) => {
      await tx.change(write, [seen.value - 1, by]);
      await pause('inside');
    });
  },
  async rows() {
    const rows = postgresRows(pool, { table: 'stock', key: 'id' });
    const opened = await rows.open(lease, 1);
    if (opened.status !== 'applied') return opened;
    await pause('read');
    return opened.value.change({ set: 'qty = $1, by = $2', values: [opened.value.row.qty - 1, by] });
  },
  async none() {
    const seen = qtyOf(await pool.query(read));
    await pause('read');
    const held = await pool.connect();
    try {
      await held.query("begin; set local lock_timeout = '3s'");
      await held.query(write, [seen - 1, by]);
      await pause('inside');
      await held.query('commit');
    } finally {
      held.release(true);
    }
    return { status: 'applied' };
  },
};

try {
  const { status } = await guards[guard]();
  say({ type: 'done', status });
} catch (error) {
  say({ type: 'done', status: 'thrown', code: error.code, message: error.message });
}
await pool.end();
await client.close();
process.exit();
