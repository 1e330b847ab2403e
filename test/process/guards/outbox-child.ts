/** The two programs of `outbox.test.ts`: one that decides on a mail, and one that sends mails. Neither looks at its lease. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type * as library from '../../../src/client/index.js';
import type * as outbox from '../../../src/guard/outbox.js';
import type * as postgres from '../../../src/guard/postgres.js';
import type { Pool } from '../../servers/postgres.js';
import { orderOf } from '../chaos/orders.js';

/** What a child is started with. */
export interface OutboxOrder {
  readonly role: 'producer' | 'dispatcher';
  readonly name: string;
  readonly package: string;
  readonly endpoints: readonly string[];
  /** For the driver. */
  readonly connection: object;
  readonly ttlMs: number;
  readonly waitMs: number;
  /** Of the mail server. */
  readonly url: string;
  /** Of a producer: with the guard, or with the guard removed. */
  readonly guarded: boolean;
}

/** What a child says. */
export type OutboxNews =
  /** A producer has the lease of the order, and has read it. */
  | { readonly type: 'read'; readonly status: string }
  /** A producer has tried to change the order. */
  | { readonly type: 'wrote'; readonly status: string }
  /** A dispatcher has its lease. */
  | { readonly type: 'leads'; readonly token: string }
  /** A dispatcher was refused. */
  | { readonly type: 'refused'; readonly status: string };

/** What a producer is told: the new status of the order. */
export interface OutboxTask {
  readonly status: string;
}

const order = orderOf() as OutboxOrder;
// An orphan must not outlive its test.
process.on('disconnect', () => process.exit());

const load = (path: string): Promise<unknown> => import(join(order.package, 'dist', path));
const { connect } = (await load('client/index.js')) as typeof library;
const { enqueue, outboxDispatcher, outboxDomain } = (await load('guard/outbox.js')) as typeof outbox;
const { postgresFence } = (await load('guard/postgres.js')) as typeof postgres;
const pg = createRequire(join(order.package, 'test/servers/package.json'))('pg') as {
  readonly Pool: new (connection: object) => Pool;
};
const pool = new pg.Pool(order.connection).on('error', () => undefined);
const client = connect({ endpoints: order.endpoints, holder: order.name });
const { ttlMs, waitMs } = order;

async function dispatch(): Promise<void> {
  const lease = await client.acquire(outboxDomain('mail'), { ttlMs, waitMs });
  say({ type: 'leads', token: lease.token.toString() });
  const dispatcher = outboxDispatcher(pool, {
    queue: 'mail',
    // It stands still for longer than any delivery takes, and is to go on where it was.
    workTimeoutMs: 60_000,
    async deliver({ id, payload }) {
      const headers = { 'idempotency-key': id, 'x-dispatcher': order.name, connection: 'close' };
      const response = await fetch(order.url, { method: 'POST', headers, body: JSON.stringify(payload) });
      if (!response.ok) throw new Error(`the mail server says ${response.status}`);
    },
  });
  const refusal = await dispatcher.run(lease, new AbortController().signal);
  say({ type: 'refused', status: refusal?.status ?? '' });
}

async function produce(): Promise<void> {
  const lease = await client.acquire('orders/7', { ttlMs, waitMs });
  const fence = postgresFence(pool);
  if (order.guarded) await fence.open(lease);
  const { rows } = await pool.query<{ status: string }>('select status from orders where id = 7');
  const told = new Promise<OutboxTask>((done) => process.once('message', done));
  say({ type: 'read', status: rows[0]?.status ?? '' });
  const { status } = await told;
  const change = 'update orders set status = $1 where id = 7';
  const mail = { to: 'ann', text: `order 7 is ${status}` };
  if (order.guarded) {
    const done = await fence.run(lease, async (tx) => {
      await tx.change(change, [status]);
      await enqueue(tx, { queue: 'mail', domain: lease.domain, payload: mail });
    });
    say({ type: 'wrote', status: done.status });
    return;
  }
  const db = await pool.connect();
  await db.query('begin');
  await db.query(change, [status]);
  const row =
    'insert into fencing.outbox (queue, domain, token, payload, cancel_if_superseded) values ($1, $2, $3, $4, false)';
  await db.query(row, ['mail', lease.domain, lease.token, mail]);
  await db.query('commit');
  db.release();
  say({ type: 'wrote', status: 'applied' });
}

function say(news: OutboxNews): void {
  process.send?.(news);
}

await (order.role === 'producer' ? produce() : dispatch());
