/**
 * What the workers of `database-guards.ts` have in common: each acquires the lease of `stock`, takes one away from the stock,
 * and says what became of it, one line of JSON each. It never asks whether it still holds the lease: that is what the guard is
 * for. After each `pause` it waits for a line on standard input, and a test stops it there.
 */
import { once } from 'node:events';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { connect } from '../../dist/client/index.js';

export const read = 'select qty from stock where id = 1';

/** What the test has ordered. */
export const order = JSON.parse(process.argv[2] ?? '');

const lines = createInterface({ input: process.stdin });
const say = (/** @type {object} */ news) => process.stdout.write(`${JSON.stringify(news)}\n`);

/**
 * Stops here if that was ordered.
 * @param {string} at
 */
export async function pause(at) {
  if (at !== order.pauseAt) return;
  const told = once(lines, 'line');
  say({ type: 'pause' });
  await told;
}

/**
 * @param {Readonly<Record<string, (lease: any, by: string) => Promise<{ status: string }>>>} guards each opens, reads, and
 *   writes by what it has read
 * @param {{ end(): Promise<unknown> }} pool
 */
export async function work(guards, pool) {
  const client = connect({ endpoints: order.endpoints });
  const lease = await client.acquire('stock', { ttlMs: 3_000, waitMs: 60_000 });
  say({ type: 'held', token: lease.token.toString() });
  try {
    const { status } = await guards[order.guard](lease, lease.token.toString());
    say({ type: 'done', status });
  } catch (error) {
    say({ type: 'done', status: 'thrown', code: error.code, message: error.message });
  }
  await pool.end();
  await client.close();
  process.exit();
}

/**
 * Through the guard that keeps the fences beside the data.
 * @param {any} fence
 * @param {any} lease
 * @param {string} write with two values: the new quantity, and the token
 */
export async function inTransactions(fence, lease, write) {
  const opened = await fence.open(lease);
  if (opened.status !== 'applied') return opened;
  const seen = await opened.value.run(async (/** @type {any} */ tx) => (await tx.query(read)).rows[0].qty);
  if (seen.status !== 'applied') return seen;
  await pause('read');
  return opened.value.run(async (/** @type {any} */ tx) => {
    await tx.change(write, [seen.value - 1, lease.token.toString()]);
    await pause('inside');
  });
}

/**
 * Through the guard that keeps the fence in the row.
 * @param {any} rows
 * @param {any} lease
 * @param {string} set with two values: the new quantity, and the token
 */
export async function inRows(rows, lease, set) {
  const opened = await rows.open(lease, 1);
  if (opened.status !== 'applied') return opened;
  await pause('read');
  return opened.value.change({ set, values: [opened.value.row.qty - 1, lease.token.toString()] });
}
