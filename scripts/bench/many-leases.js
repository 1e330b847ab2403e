/** What 100 000 live leases cost: memory of a node, and how long a node takes to start and to be caught up. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { acquireOf, BenchCluster, RawClient, residentMiB } from './cluster.js';

const IN_FLIGHT = 256;

/** @param {number} count leases */
export async function benchManyLeases(count = 100_000) {
  const cluster = await BenchCluster.start();
  try {
    const before = memoryOf(cluster);
    const leader = await cluster.untilLeader();
    await fill(leader.clientAddress, count);
    await cluster.untilEqual();
    // Two cuts later everything is in the table.
    await sleep(2_500);
    const after = memoryOf(cluster);
    const [victim] = cluster.nodes.filter((node) => node !== leader);
    if (victim === undefined) throw new Error('three nodes expected');
    await cluster.kill(victim);
    const begin = performance.now();
    cluster.startNode(victim);
    await cluster.untilEqual();
    const restart = performance.now() - begin;
    return [
      {
        leases: count,
        'MiB a node, none': before.map((each) => Math.round(each)).join(' / '),
        'MiB a node, all live': after.map((each) => Math.round(each)).join(' / '),
        'restart of a node until caught up, ms': Math.round(restart),
      },
    ];
  } finally {
    await cluster.stop();
  }
}

/** @param {BenchCluster} cluster */
function memoryOf(cluster) {
  return cluster.nodes.map(({ child }) => residentMiB(child?.pid));
}

/**
 * @param {string} address
 * @param {number} count
 */
async function fill(address, count) {
  const client = new RawClient(address);
  let next = 0;
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      while (next < count) {
        const { outcome } = await client.call(acquireOf(`many/${next++}`, 86_400_000), 30_000);
        if (outcome.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(outcome)}`);
      }
    }),
  );
  client.close();
}
