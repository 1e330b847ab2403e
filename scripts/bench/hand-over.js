/**
 * How long a freed domain is nobody's: a chain of waiters is handed through, from each holder's release to the answer that
 * the next one has it. A hand-over is one entry, as an acquire of a free domain is; a Get is a round trip without one.
 * All are timed in one run.
 */
import { performance } from 'node:perf_hooks';
import { openGrpcChannel } from '../../dist/client/grpc-channel.js';
import { openPipelineChannel } from '../../dist/client/pipeline-channel.js';
import { call, granted } from './calls.js';
import { acquireOf, BenchCluster, quantile } from './cluster.js';

const CHAIN = 20;
const WARM_UP_CHAINS = 10;

/** @typedef {import('./calls.js').Channel} Channel */

/** @param {number} chains of {@link CHAIN} waiters each */
export async function benchHandOver(chains = 100) {
  const cluster = await BenchCluster.start();
  const { clientAddress } = await cluster.untilLeader();
  const ways = { pipelined: openPipelineChannel(clientAddress), unary: openGrpcChannel(clientAddress) };
  try {
    const rows = [];
    for (const [way, channel] of Object.entries(ways)) {
      await measure(channel, `warm/${way}`, WARM_UP_CHAINS);
      rows.push({ way, ...(await measure(channel, `chain/${way}`, chains)) });
    }
    return rows;
  } finally {
    for (const channel of Object.values(ways)) channel.close();
    await cluster.stop();
  }
}

/**
 * @param {Channel} channel
 * @param {string} prefix
 * @param {number} chains
 */
async function measure(channel, prefix, chains) {
  /** @type {number[]} */
  const handOvers = [];
  /** @type {number[]} */
  const gets = [];
  /** @type {number[]} */
  const acquires = [];
  for (let chain = 0; chain < chains; chain++) {
    const domain = `${prefix}/${chain}`;
    handOvers.push(...(await handThrough(channel, domain)));
    // As many of each, with nothing else under way, spread over the same time.
    for (let at = 0; at < CHAIN; at++) {
      gets.push(await timed(() => call(channel, { type: 'get', domain, freshness: 'linearizable' })));
      acquires.push(await timed(() => granted(channel, `${domain}/${at}`)));
    }
  }
  const ratio = (/** @type {number[]} */ times) => (quantile(handOvers, 0.5) / quantile(times, 0.5)).toFixed(2);
  return {
    'hand-overs': handOvers.length,
    'p50 ms': quantile(handOvers, 0.5).toFixed(2),
    'p99 ms': quantile(handOvers, 0.99).toFixed(2),
    'Get p50 ms': quantile(gets, 0.5).toFixed(2),
    'Get p99 ms': quantile(gets, 0.99).toFixed(2),
    'free acquire p50 ms': quantile(acquires, 0.5).toFixed(2),
    'p50 to a Get': ratio(gets),
    'p50 to a free acquire': ratio(acquires),
  };
}

/**
 * All waiters stand before the first release; each then releases as soon as it is told that it holds.
 * @param {Channel} channel
 * @param {string} domain
 */
async function handThrough(channel, domain) {
  let holder = await granted(channel, domain);
  const waiters = Array.from({ length: CHAIN }, () => call(channel, { ...acquireOf(domain), waitMs: 60_000 }));
  for (;;) {
    const { queueLength } = await call(channel, { type: 'get', domain, freshness: 'linearizable' });
    if (queueLength === CHAIN) break;
  }
  const times = [];
  const left = new Set(waiters);
  while (left.size > 0) {
    const begin = performance.now();
    const release = call(channel, { type: 'release', lease: holder });
    // Who is next is the queue's affair: the first to be answered.
    const { waiter, answer } = await Promise.race(
      [...left].map(async (each) => ({ waiter: each, answer: await each })),
    );
    times.push(performance.now() - begin);
    left.delete(waiter);
    if (answer.outcome.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(answer.outcome)}`);
    holder = { domain: answer.outcome.lease.domain, token: answer.outcome.lease.token };
    await release;
  }
  await call(channel, { type: 'release', lease: holder });
  return times;
}

/** @param {() => Promise<unknown>} action */
async function timed(action) {
  const begin = performance.now();
  await action();
  return performance.now() - begin;
}
