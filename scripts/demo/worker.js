/**
 * A worker: holds the lease of an account, reads its balance, computes the new one, and writes it. Does one thing for
 * each message that it is sent, so that the play decides when.
 */
import { connect } from 'fencepost';
import { askStore } from './ask.js';

const [name = '', endpoints = '', store = '', mode = '', domain = ''] = process.argv.slice(2);
const client = connect({ endpoints: endpoints.split(','), holder: `worker ${name}` });
const guarded = mode === 'guarded';

/** @type {Awaited<ReturnType<typeof client.acquire>> | undefined} */
let lease;

/** @param {object} message */
function say(message) {
  return new Promise((resolve) => {
    process.send?.(message, resolve);
  });
}

/** What the store needs of the lease. */
function credentials() {
  if (lease === undefined) throw new Error('no lease');
  const { token, cluster, incarnation } = lease;
  return { domain, token: token.toString(), cluster, incarnation };
}

/** @param {{ do: string, amount?: number, pauseMs?: number, ttlMs?: number }} order */
async function act(order) {
  switch (order.do) {
    case 'acquire':
      lease = await client.acquire(domain, { ttlMs: order.ttlMs ?? 3_000, waitMs: 20_000 });
      // Raise the fence before the first look at the data.
      if (guarded) await askStore(store, '/guarded/open', { lease: credentials() });
      return { type: 'acquired', token: lease.token.toString() };
    case 'pay': {
      if (lease === undefined) throw new Error('no lease');
      const before = Number((await askStore(store, `/${encodeURIComponent(domain)}`)).value);
      const believes = lease.isHeld();
      const after = before - (order.amount ?? 0);
      await say({ type: 'computed', before, after, believes });
      // Between the look at the lease and the write anything can happen: a collection of garbage, a swap, a
      // suspended machine. No check in this process can see a pause that comes after it.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, order.pauseMs ?? 0);
      const write = { key: encodeURIComponent(domain), value: String(after) };
      const outcome = guarded
        ? await askStore(store, '/guarded/write', { lease: credentials(), ...write })
        : await askStore(store, '/plain/write', write);
      return { type: 'paid', outcome, state: lease.state };
    }
    case 'release':
      await lease?.release();
      return { type: 'released' };
    default:
      throw new Error(`${order.do} is nothing that a worker does`);
  }
}

process.on('message', (/** @type {any} */ order) => {
  act(order).then(say, (error) => say({ type: 'error', message: String(error?.message ?? error) }));
});
// Without the play there is nothing to do.
process.on('disconnect', () => process.exit());
