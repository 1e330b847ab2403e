/**
 * What a live lease takes in a node: state machine, clock, request table and the table on its way to the disk, all of one
 * real node, a leader alone in its cluster. Measured after a full collection, a while after the last cut.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { openPipelineChannel } from '../../dist/client/pipeline-channel.js';
import { fill } from './calls.js';
import { BenchCluster } from './cluster.js';

const REPORT = new URL('memory-report.js', import.meta.url).href;
const MIB = 1024 * 1024;
/** From the last grant until everything is in the table: a cut is due after one second and takes less than another. */
const SETTLED_MS = 3_000;

/** @param {readonly number[]} counts live leases, ascending */
export async function benchMemory(counts = [100_000, 1_000_000]) {
  const cluster = await BenchCluster.start(1, ['--expose-gc', '--import', REPORT]);
  const { clientAddress } = await cluster.untilLeader();
  const channel = openPipelineChannel(clientAddress);
  try {
    const none = await memoryOf(cluster);
    const rows = [rowOf(0, none, 0, none)];
    let last = { count: 0, used: none };
    for (const count of counts) {
      await fill(channel, 'memory', last.count, count);
      const used = await memoryOf(cluster);
      rows.push(rowOf(count, used, last.count, last.used));
      last = { count, used };
    }
    return rows;
  } finally {
    channel.close();
    await cluster.stop();
  }
}

/**
 * @param {number} count
 * @param {NodeJS.MemoryUsage} used
 * @param {number} before
 * @param {NodeJS.MemoryUsage} usedBefore
 */
function rowOf(count, used, before, usedBefore) {
  const each = (/** @type {number} */ gained) =>
    count === before ? '' : Math.round(gained / (count - before)).toString();
  return {
    'live leases': count,
    'heap MiB': (used.heapUsed / MIB).toFixed(0),
    'external MiB': (used.external / MIB).toFixed(0),
    'RSS MiB': (used.rss / MIB).toFixed(0),
    'heap bytes a lease, since the row above': each(used.heapUsed - usedBefore.heapUsed),
    'RSS bytes a lease, since the row above': each(used.rss - usedBefore.rss),
  };
}

/**
 * @param {BenchCluster} cluster of one node
 * @returns {Promise<NodeJS.MemoryUsage>}
 */
async function memoryOf({ nodes: [node] }) {
  if (node?.child === undefined) throw new Error('the node is gone');
  await sleep(SETTLED_MS);
  const answer = once(node.child, 'message');
  node.child.send('memory');
  const [used] = await answer;
  return used;
}
