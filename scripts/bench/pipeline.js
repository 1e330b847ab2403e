/**
 * Acquire+release cycles against the leader by one client over one connection, pipelined beside unary, and renewals in
 * batches of 1 000. Every figure of a table is from one run, so that they can be compared.
 */
import { performance } from 'node:perf_hooks';
import { openGrpcChannel } from '../../dist/client/grpc-channel.js';
import { openPipelineChannel } from '../../dist/client/pipeline-channel.js';
import { BATCH, call, granted, renew } from './calls.js';
import { BenchCluster, quantile } from './cluster.js';

const WARM_UP_MS = 1_500;
const MEASURE_MS = 4_000;
const IN_FLIGHT = [1, 16, 64, 256, 1_024];
/** Renewals under way. */
const BATCHES = 8;

/** @typedef {import('./calls.js').Channel} Channel */

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
        await renew(channel, mine);
        if (begin >= from) renewed += mine.length;
      }
    }),
  );
  return { 'in flight': `${BATCHES} of ${BATCH}`, 'renewals/s': Math.round(renewed / (MEASURE_MS / 1_000)) };
}
