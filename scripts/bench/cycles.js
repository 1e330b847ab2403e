/** Unary acquire+release cycles against the leader: rate, and latency of the acquire. */
import { performance } from 'node:perf_hooks';
import { acquireOf, BenchCluster, quantile, RawClient } from './cluster.js';

const WARM_UP_MS = 2_000;
const MEASURE_MS = 6_000;

/** @param {readonly number[]} counts clients at a time */
export async function benchCycles(counts = [1, 64, 256]) {
  const cluster = await BenchCluster.start();
  try {
    // Let the compilers of nodes and client see the code before anything counts.
    await measure(cluster, 64);
    const rows = [];
    for (const count of counts) rows.push(await measure(cluster, count));
    return rows;
  } finally {
    await cluster.stop();
  }
}

/**
 * @param {BenchCluster} cluster
 * @param {number} count
 */
async function measure(cluster, count) {
  const { clientAddress } = await cluster.untilLeader();
  const clients = Array.from({ length: count }, () => new RawClient(clientAddress));
  /** @type {number[]} */
  const latencies = [];
  const from = performance.now() + WARM_UP_MS;
  const end = from + MEASURE_MS;
  let cycles = 0;
  await Promise.all(
    clients.map(async (client, at) => {
      while (performance.now() < end) {
        const begin = performance.now();
        const { outcome } = await client.call(acquireOf(`bench/${count}/${at}`));
        const took = performance.now() - begin;
        if (outcome.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(outcome)}`);
        const { domain, token } = outcome.lease;
        await client.call({ type: 'release', lease: { domain, token } });
        if (begin < from) continue;
        latencies.push(took);
        cycles++;
      }
    }),
  );
  for (const client of clients) client.close();
  return {
    clients: count,
    'cycles/s': Math.round(cycles / (MEASURE_MS / 1_000)),
    'acquire p50 ms': quantile(latencies, 0.5).toFixed(2),
    'acquire p99 ms': quantile(latencies, 0.99).toFixed(2),
  };
}
