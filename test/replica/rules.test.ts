/** Rules that hold in one step of one member: what the test hands it is all that happens. */
import { describe, expect, it } from 'vitest';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { Effect, Event } from '../../src/replica/types.js';
import { lastIndex } from '../../src/raft/view.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import { acquireOf, granted, others, refOf } from './helpers.js';

interface Alone {
  readonly cluster: MemoryCluster;
  readonly leader: string;
  /** Steps the leader by hand, `ms` after everything else; what it does reaches nobody. */
  readonly step: (ms: number, ...events: Event[]) => Effect[];
}

/** A leader whose executor has stopped: from here the test alone says what happens to it. */
async function leaderByHand(before: (cluster: MemoryCluster, leader: string) => Promise<void>): Promise<Alone> {
  const cluster = new MemoryCluster();
  const leader = await cluster.untilLeader();
  await before(cluster, leader);
  const start = cluster.now;
  cluster.node(leader).running?.executor.halt();
  return {
    cluster,
    leader,
    step: (ms, ...events) => cluster.replica(leader).step({ nowMs: start + ms, unixMs: 0 }, events),
  };
}

const PRINCIPAL = { name: 'addr:test', authenticated: false };

describe('a renewal that waited in the inbox during a stall', () => {
  it('is seen before anything expires, in whatever order the two come', async () => {
    const { cluster, leader, step } = await leaderByHand(async (early, node) => {
      await granted(early, node, acquireOf('d', { ttlMs: 3_000 }));
      await early.run(3_000 * 1.01 + 100 - 50);
    });
    const lease = [...cluster.replica(leader).context.lease.leases.values()][0];
    if (lease === undefined) throw new Error('the lease has expired already');
    const call = { type: 'renew', leases: [refOf(lease)] } as const;
    step(60, { type: 'tick' }, { type: 'call', id: 1, principal: PRINCIPAL, timeoutMs: 10_000, call });
    const timed = cluster.replica(leader).context.leadership?.clock.timed.get(lease.domain);
    expect(timed?.expiring).toBeUndefined();
    expect(timed?.deadline).toBeGreaterThan(cluster.now + 3_000);
  });
});

describe('a node that passed calls on and is gone', () => {
  it('gets no answers, and its calls are forgotten', async () => {
    const { cluster, leader, step } = await leaderByHand(() => Promise.resolve());
    const [from] = others(cluster, leader);
    const { node } = cluster.node(from ?? '').member;
    const forwarded: Event = {
      type: 'forwarded',
      from: node,
      id: 7,
      term: cluster.replica(leader).context.raft.hard.term,
      principal: PRINCIPAL,
      timeoutMs: 10_000,
      holdMs: 1_500,
      call: acquireOf('d'),
    };
    step(1, forwarded);
    expect(cluster.replica(leader).context.leadership?.served.size).toBe(1);
    step(2, { type: 'forwarderLost', node });
    expect(cluster.replica(leader).context.leadership?.served.size).toBe(0);
    step(3, forwarded);
    step(4, { type: 'forwardCancelled', from: node, id: 7 });
    expect(cluster.replica(leader).context.leadership?.served.size).toBe(0);
  });
});

describe('a call that was passed on', () => {
  it('to an earlier leadership of this node goes back, and leaves nothing in the log', async () => {
    const { cluster, leader, step } = await leaderByHand(() => Promise.resolve());
    const [from] = others(cluster, leader);
    const { node } = cluster.node(from ?? '').member;
    const { raft } = cluster.replica(leader).context;
    const before = lastIndex(raft);
    const forwarded = {
      type: 'forwarded',
      from: node,
      id: 7,
      term: raft.hard.term - 1,
      principal: PRINCIPAL,
      timeoutMs: 10_000,
      holdMs: 1_500,
      call: acquireOf('d'),
    } as const;
    expect(step(1, forwarded)).toContainEqual({
      type: 'forwardResult',
      to: node,
      id: 7,
      result: { type: 'notLeader', outcome: 'not-done' },
    });
    expect(lastIndex(raft)).toBe(before);
    step(2, { ...forwarded, term: raft.hard.term });
    expect(lastIndex(raft)).toBe(before + 1);
  });
});

describe('chunks of a snapshot', () => {
  it('of an older term are refused', async () => {
    const { cluster, leader, step } = await leaderByHand(() => Promise.resolve());
    const [other] = others(cluster, leader);
    const from = cluster.node(other ?? '').member;
    const { raft, genesis, lease } = cluster.replica(leader).context;
    const configuration = { voters: genesis.members, outgoing: [], learners: [] };
    const chunk = {
      term: raft.hard.term - 1,
      request: 1,
      sequence: 0,
      meta: { index: 100, term: 1, configuration, configurationIndex: 0 },
      summary: { forgotten: ZERO_REVISION, holding: false, limits: lease.limits },
      records: [],
      total: { count: 0, digest: '0'.repeat(16) },
    };
    expect(step(1, { type: 'chunk', from, chunk }).map(({ type }) => type)).toEqual(['refuseChunks']);
  });

  it('out of order, or more or fewer records than were said, end the transfer', async () => {
    const { cluster, leader, step } = await leaderByHand(() => Promise.resolve());
    const [other] = others(cluster, leader);
    const from = cluster.node(other ?? '').member;
    const { raft, genesis, lease } = cluster.replica(leader).context;
    const configuration = { voters: genesis.members, outgoing: [], learners: [] };
    const chunk = {
      term: raft.hard.term,
      request: 1,
      meta: { index: 100, term: 1, configuration, configurationIndex: 0 },
      summary: { forgotten: ZERO_REVISION, holding: false, limits: lease.limits },
      records: [],
    };
    const types = (sequence: number, total?: { count: number; digest: string }): string[] =>
      step(1, { type: 'chunk', from, chunk: { ...chunk, sequence, total } }).map(({ type }) => type);
    expect(types(0)).toEqual(['stage']);
    expect(types(2)).toEqual(['refuseChunks']);
    expect(types(0)).toEqual(['stage']);
    expect(types(1, { count: 5, digest: '0'.repeat(16) })).toEqual(['refuseChunks']);
  });
});
