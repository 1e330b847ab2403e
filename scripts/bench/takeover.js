/**
 * From the kill of a leader to the first renewal that its successor acknowledges, and until it has acknowledged one of
 * every lease: with few live leases and with many, in one run.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { openPipelineChannel } from '../../dist/client/pipeline-channel.js';
import { fill, renew, renewAll } from './calls.js';
import { BenchCluster, quantile } from './cluster.js';

/** @typedef {import('./calls.js').LeaseRef} LeaseRef */

/**
 * @param {readonly number[]} counts live leases, ascending
 * @param {number} runs with each
 */
export async function benchTakeover(counts = [200, 200_000], runs = 7) {
  const cluster = await BenchCluster.start();
  try {
    /** @type {LeaseRef[]} */
    let leases = [];
    const rows = [];
    for (const count of counts) {
      const channel = openPipelineChannel((await cluster.untilLeader()).clientAddress);
      leases = leases.concat(await fill(channel, 'takeover', leases.length, count));
      channel.close();
      rows.push(await measure(cluster, leases, runs));
    }
    const [few] = rows;
    return rows.map((row) => ({
      ...row,
      'median to that of the first row': (row.median / (few?.median ?? 1)).toFixed(2),
    }));
  } finally {
    await cluster.stop();
  }
}

/**
 * @param {BenchCluster} cluster
 * @param {readonly LeaseRef[]} leases
 * @param {number} runs
 */
async function measure(cluster, leases, runs) {
  const first = [];
  const all = [];
  for (let run = 0; run < runs; run++) {
    await cluster.untilEqual();
    const leader = await cluster.untilLeader();
    const entry = cluster.nodes.find((node) => node !== leader);
    if (entry === undefined) throw new Error('three nodes expected');
    const channel = openPipelineChannel(entry.clientAddress);
    // The connection stands, and so does that between the two nodes.
    await renew(channel, leases.slice(0, 1));
    await sleep(200);
    const begin = performance.now();
    leader.child?.kill('SIGKILL');
    await renew(channel, leases.slice(0, 1));
    first.push(performance.now() - begin);
    await renewAll(channel, leases);
    all.push(performance.now() - begin);
    channel.close();
    await cluster.kill(leader);
    cluster.startNode(leader);
  }
  return {
    'live leases': leases.length,
    runs,
    median: Math.round(quantile(first, 0.5)),
    'worst ms': Math.round(quantile(first, 1)),
    'all renewed, median ms': Math.round(quantile(all, 0.5)),
    'all renewed, worst ms': Math.round(quantile(all, 1)),
  };
}
