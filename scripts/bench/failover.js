/** From the end of a leader to the next grant, as a client of another node sees it: killed, and stopped. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { acquireOf, BenchCluster, quantile, RawClient } from './cluster.js';

/** @param {number} runs of each kind */
export async function benchFailover(runs = 20) {
  const cluster = await BenchCluster.start();
  try {
    return [await measure(cluster, 'SIGKILL', runs), await measure(cluster, 'SIGSTOP', runs)];
  } finally {
    for (const node of cluster.nodes) node.child?.kill('SIGCONT');
    await cluster.stop();
  }
}

/**
 * @param {BenchCluster} cluster
 * @param {'SIGKILL' | 'SIGSTOP'} signal
 * @param {number} runs
 */
async function measure(cluster, signal, runs) {
  const times = [];
  for (let run = 0; run < runs; run++) {
    await cluster.untilEqual();
    const leader = await cluster.untilLeader();
    const entry = cluster.nodes.find((node) => node !== leader);
    if (entry === undefined) throw new Error('three nodes expected');
    const client = new RawClient(entry.clientAddress);
    await client.call(acquireOf(`warm/${signal}/${run}`));
    await sleep(200);
    const begin = performance.now();
    leader.child?.kill(signal);
    const { outcome } = await client.call(acquireOf(`failover/${signal}/${run}`), 30_000);
    if (outcome.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(outcome)}`);
    times.push(performance.now() - begin);
    client.close();
    if (signal === 'SIGSTOP') leader.child?.kill('SIGCONT');
    else {
      await cluster.kill(leader);
      cluster.startNode(leader);
    }
  }
  return {
    leader: signal,
    runs,
    'median ms': Math.round(quantile(times, 0.5)),
    'worst ms': Math.round(quantile(times, 1)),
  };
}
