import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AcquireCall } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import { ProcessCluster, until } from './cluster.js';
import type { ProcessNode } from './cluster.js';
import { PLAIN } from '../support/answers.js';

function acquireOf(domain: string, ttlMs = 60_000): AcquireCall {
  const requestId = randomUUID() as RequestId;
  return {
    type: 'acquire',
    domain: domain as Domain,
    requestId,
    holder: 'test',
    ttlMs,
    metadata: [],
    ...PLAIN,
    seenRevision: ZERO_REVISION,
  };
}

/** A stock client that retries nothing, on one node. */
describe('a call at any node', () => {
  let cluster: ProcessCluster;
  beforeAll(async () => {
    cluster = await ProcessCluster.started();
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
  });

  async function granted(node: ProcessNode, domain: string): Promise<number> {
    const { answer, header } = await cluster.call(node, acquireOf(domain), 20_000);
    expect(answer.outcome.type, `${domain} at ${node.name}`).toBe('granted');
    expect(header?.node).toBe(node.name);
    return answer.outcome.type === 'granted' ? answer.outcome.lease.token : 0;
  }

  it('is answered with who took it, who leads and at which revision', async () => {
    const leader = await cluster.untilLeader();
    for (const node of cluster.nodes) {
      const { header, answer } = await cluster.call(node, acquireOf(`who/${node.name}`));
      expect(header).toMatchObject({ cluster: 'test', node: node.name, leader: leader.name });
      expect(answer.outcome.type === 'granted' && answer.outcome.lease.token).toBe(header?.revision);
    }
  });

  it('sees a kill of the leader as a delay when it is connected to another node', async () => {
    const leader = await cluster.untilLeader();
    const [entry] = cluster.others(leader);
    if (entry === undefined) throw new Error('three nodes expected');
    await granted(entry, 'kill/before');
    cluster.signal(leader, 'SIGKILL');
    // Sent while the entry node may still believe in the dead leader, and while there is none.
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, at) => granted(entry, `kill/${at}`)));
    expect(new Set(tokens).size).toBe(20);
    await leader.exited;
    cluster.start(leader);
    await cluster.untilLeader();
  });

  it('sees a hand-over as a delay when it is connected to the leader', async () => {
    const leader = await cluster.untilLeader();
    const transfer = cluster.call(leader, { type: 'transferLeadership', to: undefined });
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, at) => granted(leader, `transfer/${at}`)));
    expect(new Set(tokens).size).toBe(20);
    const { answer } = await transfer;
    expect(answer.leader).not.toBe(leader.name);
    expect((await cluster.untilLeader()).name).toBe(answer.leader);
  });

  it('sees a leader that steps down as a delay when it is connected to it', async () => {
    const leader = await cluster.untilLeader();
    const followers = cluster.others(leader);
    for (const node of followers) cluster.signal(node, 'SIGSTOP');
    const call = granted(leader, 'step-down');
    await until('the leader to step down', async () => (await cluster.status(leader)).role !== 'leader');
    for (const node of followers) cluster.signal(node, 'SIGCONT');
    expect(await call).toBeGreaterThan(0);
  });

  it('sees a stop of the leader for longer than its time as a delay, and gets nothing from the past', async () => {
    const leader = await cluster.untilLeader();
    const [entry] = cluster.others(leader);
    if (entry === undefined) throw new Error('three nodes expected');
    const token = await granted(entry, 'paused');
    cluster.signal(leader, 'SIGSTOP');
    const atOld = cluster.call(
      leader,
      { type: 'verify', lease: { domain: 'paused' as Domain, token: token as never }, freshness: 'linearizable' },
      30_000,
    );
    await until('another leader', async () => {
      const found = await cluster.status(entry);
      return found.leader !== undefined && found.leader !== leader.name;
    });
    const released = await cluster.call(entry, {
      type: 'release',
      lease: { domain: 'paused' as Domain, token: token as never },
    });
    expect(released.answer.released).toBe(true);
    cluster.signal(leader, 'SIGCONT');
    const { answer } = await atOld;
    expect(answer.outcome).toMatchObject({ type: 'ended', ended: { reason: 'released' } });
  });

  it('members agree on the state', async () => {
    await cluster.untilLeader();
    await until('equal hashes', async () => {
      const hashes = await Promise.all(
        cluster.nodes.map(async (node) => (await cluster.call(node, { type: 'getStateHash' })).answer),
      );
      return new Set(hashes.map(({ revision, hash }) => `${revision} ${hash}`)).size === 1;
    });
  });

  it('a leader that is asked to stop hands over first and exits with 0', async () => {
    const leader = await cluster.untilLeader();
    const [entry] = cluster.others(leader);
    if (entry === undefined) throw new Error('three nodes expected');
    cluster.signal(leader, 'SIGTERM');
    await Promise.all(Array.from({ length: 10 }, (_, at) => granted(entry, `stop/${at}`)));
    expect(await leader.exited, leader.log).toBe(0);
    cluster.start(leader);
    await cluster.untilLeader();
  });
});
