/** A user of the client library in a process of its own: acquires one lease, looks at it all the time, writes under it. */
import { existsSync } from 'node:fs';
import type * as library from '../../src/client/index.js';
import { now } from './chaos/clock.js';
import { orderOf } from './chaos/orders.js';
import type { HolderNews, HolderOrder, HolderTask, Written } from './holder-process.js';

/** Between two looks, in milliseconds. */
const LOOK_MS = 5;

const order = orderOf() as HolderOrder;
// An orphan must not outlive its test.
process.on('disconnect', () => process.exit());

const { connect } = (await import(`${order.package}/dist/client/index.js`)) as typeof library;
const client = connect({ endpoints: order.endpoints, holder: `process ${process.pid}` });
say({ type: 'asking' });
const { domain, ttlMs, waitMs, coolDownMs } = order;
const lease = await client.acquire(domain, { ttlMs, waitMs, coolDownMs });
const written = await write('open');
// Before it says so: it may be stopped as soon as that is heard.
let last = now();
say({ type: 'held', token: lease.token.toString(), written });
look();
process.on('message', (task: HolderTask) => {
  switch (task.type) {
    case 'block': {
      const from = now();
      while (now() < from + task.ms || !existsSync(task.until)) sleep(20);
      check();
      return;
    }
    case 'look':
      say({ type: 'looked', wallMs: Date.now(), state: lease.state, aborted: lease.signal.aborted });
      return;
  }
});

function look(): void {
  check();
  setTimeout(look, LOOK_MS);
}

/** One look at the handle; the first one after the loop stood still for more than the TTL is told, with a write that does not care. */
function check(): void {
  const stoodStillMs = now() - last;
  const held = lease.isHeld();
  last = now();
  if (stoodStillMs <= ttlMs) return;
  const seen = { held, state: lease.state, aborted: lease.signal.aborted };
  write('write').then(
    (written) => {
      say({ type: 'woken', stoodStillMs, ...seen, written });
    },
    (error: unknown) => {
      throw error;
    },
  );
}

async function write(path: 'open' | 'write'): Promise<Written> {
  if (order.resource === '') return 'none';
  const { token, cluster, incarnation } = lease;
  const body = JSON.stringify({ domain, token: token.toString(), cluster, incarnation });
  // A connection of its own: one that is kept would be over after a long stop.
  const headers = { connection: 'close' };
  const response = await fetch(`${order.resource}/${path}`, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(await response.text());
  return ((await response.json()) as { status: Written }).status;
}

/** Nothing of this process runs meanwhile. */
function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function say(news: HolderNews): void {
  process.send?.(news);
}
