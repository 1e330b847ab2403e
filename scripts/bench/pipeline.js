/**
 * Acquire+release cycles against the leader by one client over one connection, pipelined beside unary, and renewals in
 * batches of 1 000. Every figure of a table is from one run, so that they can be compared.
 */
import { performance } from 'node:perf_hooks';
import { openGrpcChannel } from '../../dist/client/grpc-channel.js';
import { openPipelineChannel } from '../../dist/client/pipeline-channel.js';
import { acquireOf, BenchCluster, quantile } from './cluster.js';

const WARM_UP_MS = 1_500;
const MEASURE_MS = 4_000;
const IN_FLIGHT = [1, 16, 64, 256, 1_024];
/** Leases of a renewal, and renewals under way. */
const BATCH = 1_000;
const BATCHES = 8;

/** @typedef {import('../../dist/client/channel.js').Channel} Channel */

export async function benchPipeline(counts = IN_FLIGHT) {
  const cluster = await BenchCluster.start();
  const { clientAddress } = await cluster.untilLeader();
  const ways = { pipelined: openPipelineChannel(clientAddress), unary: openGrpcChannel(clientAddress) };
  try {
    // Let the compilers of nodes and client see the code before anything counts.
    for (const channel of Object.values(ways)) await cycles(channel, 'warm', 256);
    const rows = [];
    for (const count of counts) {
      for (const [way, channel] of Object.entries(ways)) rows.push({ way, ...(await cycles(channel, way, count)) });
    }
    for (const [way, channel] of Object.entries(ways)) rows.push({ way, ...(await renewals(channel, way)) });
    return rows;
  } finally {
    for (const channel of Object.values(ways)) channel.close();
    await cluster.stop();
  }
}

/**
 * @param {Channel} channel
 * @param {string} way
 * @param {number} count in flight
 */
async function cycles(channel, way, count) {
  /** @type {number[]} */
  const latencies = [];
  const from = performance.now() + WARM_UP_MS;
  const end = from + MEASURE_MS;
  let done = 0;
  await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      for (let begin = performance.now(); begin < end; begin = performance.now()) {
        const lease = await granted(channel, `bench/${way}/${count}/${at}`);
        const took = performance.now() - begin;
        await call(channel, { type: 'release', lease });
        if (begin < from) continue;
        latencies.push(took);
        done++;
      }
    }),
  );
  return {
    'in flight': count,
    'cycles/s': Math.round(done / (MEASURE_MS / 1_000)),
    'acquire p50 ms': quantile(latencies, 0.5).toFixed(2),
    'acquire p99 ms': quantile(latencies, 0.99).toFixed(2),
  };
}

/**
 * @param {Channel} channel
 * @param {string} way
 */
async function renewals(channel, way) {
  const names = Array.from({ length: BATCHES * BATCH }, (_, at) => `keep/${way}/${at}`);
  const leases = await Promise.all(names.map((name) => granted(channel, name)));
  const from = performance.now() + WARM_UP_MS;
  const end = from + MEASURE_MS;
  let renewed = 0;
  await Promise.all(
    Array.from({ length: BATCHES }, async (_, at) => {
      const mine = leases.slice(at * BATCH, (at + 1) * BATCH);
      for (let begin = performance.now(); begin < end; begin = performance.now()) {
        const { results } = await call(channel, { type: 'renew', leases: mine });
        const lost = results.filter((/** @type {any} */ { type }) => type !== 'live').length;
        if (lost > 0) throw new Error(`${lost} leases are not live`);
        if (begin >= from) renewed += results.length;
      }
    }),
  );
  return { 'in flight': `${BATCHES} of ${BATCH}`, 'renewals/s': Math.round(renewed / (MEASURE_MS / 1_000)) };
}

/**
 * @param {Channel} channel
 * @param {string} domain
 */
async function granted(channel, domain) {
  const { outcome } = await call(channel, acquireOf(domain));
  if (outcome.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(outcome)}`);
  return { domain: outcome.lease.domain, token: outcome.lease.token };
}

/**
 * @param {Channel} channel
 * @param {any} of
 * @returns {Promise<any>} the answer
 */
function call(channel, of) {
  return new Promise((done, fail) => {
    channel.send(of, 30_000, (reply) => {
      if (reply.type === 'answer') done(reply.answer);
      else fail(new Error(JSON.stringify(reply)));
    });
  });
}
