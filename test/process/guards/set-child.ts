/**
 * A worker of `lock-set.test.ts`: under one lease after the other it reads the set, waits a moment, and writes it back with one
 * element more. What it was told is in the set, it notes. Without the guard it does the same, and looks at its lease before it
 * reads, as many do.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as library from '../../../src/client/index.js';
import type * as postgres from '../../../src/guard/postgres.js';
import type { Pool } from '../../servers/postgres.js';
import { orderOf } from '../chaos/orders.js';

/** What a worker is started with. */
export interface SetOrder {
  readonly name: string;
  readonly package: string;
  readonly endpoints: readonly string[];
  /** For the driver. */
  readonly connection: object;
  readonly ttlMs: number;
  readonly guarded: boolean;
}

const order = orderOf() as SetOrder;
// An orphan must not outlive its test.
process.on('disconnect', () => process.exit());

const load = (path: string): Promise<unknown> => import(join(order.package, 'dist', path));
const { connect } = (await load('client/index.js')) as typeof library;
const { postgresFence } = (await load('guard/postgres.js')) as typeof postgres;
const pg = createRequire(join(order.package, 'test/servers/package.json'))('pg') as {
  readonly Pool: new (connection: object) => Pool;
};
const pool = new pg.Pool(order.connection).on('error', () => undefined);
const client = connect({ endpoints: order.endpoints, holder: order.name });
const fence = postgresFence(pool);

const ELEMENTS_A_TENURE = 5;
const READ = 'select elements from lock_set';
const WRITE = 'update lock_set set elements = $1, by = $2';
let count = 0;

async function write(lease: library.Lease, values: readonly unknown[]): Promise<string> {
  if (order.guarded) return (await fence.run(lease, (tx) => tx.change(WRITE, values))).status;
  await pool.query(WRITE, [...values]);
  return 'applied';
}

async function tenure(lease: library.Lease): Promise<void> {
  if (order.guarded && (await fence.open(lease)).status !== 'applied') return;
  for (let at = 0; at < ELEMENTS_A_TENURE && lease.isHeld(); at++) {
    const { rows } = await pool.query<{ readonly elements: readonly string[] }>(READ);
    await sleep(50 + Math.random() * 100);
    const element = `${order.name}-${count++}`;
    const status = await write(lease, [[...(rows[0]?.elements ?? []), element], order.name]);
    await pool.query('insert into answer values ($1, $2)', [element, status]);
  }
}

for (;;) {
  try {
    const lease = await client.acquire('set', { ttlMs: order.ttlMs, waitMs: 60_000 });
    await tenure(lease);
    await lease.release();
  } catch {
    // No leader for a moment, or a transaction that the server ended: nothing was told, so nothing is owed.
    await sleep(100);
  }
}
