import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { patchedPackage, ProcessCluster } from './cluster.js';
import { Soak } from './soak.js';

interface Plan {
  readonly rounds: number;
  /** Every so many-th round kills all nodes at the same moment. */
  readonly allEvery: number;
  /** At the end all disks are deleted and the cluster formed again. */
  readonly wipe: boolean;
  /** Ends at the first round in which something was noticed. */
  readonly untilNoticed?: boolean;
}

/** Kills the leader under load, round after round; returns the account. */
async function killRounds(cluster: ProcessCluster, plan: Plan): Promise<Soak> {
  const soak = new Soak(cluster);
  soak.start();
  for (let round = 1; round <= plan.rounds; round++) {
    const leader = await cluster.untilLeader();
    await sleep(300);
    const victims = round % plan.allEvery === 0 ? [...cluster.nodes] : [leader];
    await cluster.kill(...victims);
    if (victims.length < cluster.nodes.length) await cluster.untilLeader();
    for (const node of victims) cluster.start(node);
    await cluster.untilLeader();
    await soak.pause();
    await soak.verifyKept();
    soak.resume();
    if (plan.untilNoticed === true && soak.violations.length > 0) break;
  }
  await soak.stop();
  if (plan.wipe) {
    await cluster.kill(...cluster.nodes);
    for (const node of cluster.nodes) {
      await cluster.wipe(node);
      cluster.start(node);
    }
    await cluster.untilLeader();
    soak.forgetLeases();
    await soak.takeAllAgain();
  }
  return soak;
}

describe('killing the leader under load', () => {
  it('20 times, all at once in every fourth, all wiped at the end: no acknowledged lease is lost, every token grows', async () => {
    await using cluster = await ProcessCluster.started();
    const soak = await killRounds(cluster, { rounds: 20, allEvery: 4, wipe: true });
    expect(soak.violations.slice(0, 10), cluster.logs()).toEqual([]);
    expect(soak.grants).toBeGreaterThan(500);
  });
});

/** Every write waits a moment before it is issued, as behind a busy disk: what is in memory only stays so for longer. */
const SLOW_DISK = {
  file: 'storage/queue.js',
  text: 'await Promise.resolve();',
  replacement: 'await new Promise((resolve) => setTimeout(resolve, 30));',
};

describe('that check notices', () => {
  it('a history without a base, at the wipe', async () => {
    await using broken = await patchedPackage({
      file: 'replica/forming.js',
      text: 'const base = Math.max(clock, options.floor ?? 0);',
      replacement: 'const base = 1;',
    });
    await using cluster = await ProcessCluster.started({ package: broken.path });
    const soak = await killRounds(cluster, { rounds: 1, allEvery: 4, wipe: true });
    expect(soak.violations.join('\n')).toMatch(/was granted with \d+ after \d+/);
  });

  it('followers that answer before their write is issued, at the kill of all', async () => {
    await using broken = await patchedPackage(SLOW_DISK, {
      file: 'raft/persist.js',
      text: 'persistence.held.push({ needs, term: raft.hard.term, message });',
      replacement: 'send(raft, message);',
    });
    await using cluster = await ProcessCluster.started({ package: broken.path });
    const soak = await killRounds(cluster, { rounds: 10, allEvery: 1, wipe: false, untilNoticed: true });
    // A lost release shows as a domain that is held although its release was acknowledged.
    expect(soak.violations.join('\n')).toMatch(/lost|was granted with|is free and was not granted/);
  });

  it('and on that slow disk without the break nothing is lost', async () => {
    await using slow = await patchedPackage(SLOW_DISK);
    await using cluster = await ProcessCluster.started({ package: slow.path });
    const soak = await killRounds(cluster, { rounds: 3, allEvery: 1, wipe: false });
    expect(soak.violations.slice(0, 10), cluster.logs()).toEqual([]);
  });
});
