import { describe, expect, it } from 'vitest';
import type { Effect } from '../../src/replica/types.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import { others } from './helpers.js';

describe('a cut', () => {
  it('waits until the entries that replaced a conflicting tail are handed to the log (S2.4)', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [name = ''] = others(cluster, leader);
    const node = cluster.node(name);
    await cluster.run(2_000);
    // From here the test alone says what happens to this member.
    node.running?.executor.halt();
    const replica = cluster.replica(name);
    const { raft } = replica.context;
    let nowMs = cluster.now;
    const step = (...events: Parameters<typeof replica.step>[1]): Effect[] =>
      replica.step({ nowMs, unixMs: 0 }, events);
    const noop = (index: number, term: number) => ({ index, term, kind: 'noop', payload: new Uint8Array() }) as const;
    const { term } = raft.hard;
    const last = { index: raft.commit, term: raft.log.entries.at(-1)?.term ?? 0 };
    const append = { type: 'append', from: cluster.node(leader).member, to: node.member, request: 1 } as const;
    // Two entries that nobody else has, and a write of them that takes its time.
    const tail = [noop(last.index + 1, term), noop(last.index + 2, term)];
    const first = step({
      type: 'message',
      message: { ...append, term, prev: last, entries: tail, commit: last.index },
    });
    expect(first.map(({ type }) => type)).toContain('persist');
    // The next leader replaces the second one; what it brings is committed already.
    const from = cluster.node(others(cluster, leader)[1] ?? '').member;
    const next = [noop(last.index + 1, term), noop(last.index + 2, term + 1)];
    const commit = last.index + 2;
    step({ type: 'message', message: { ...append, from, term: term + 1, prev: last, entries: next, commit } });
    expect(replica.context.applied).toBe(commit);
    nowMs += 10_000;
    // Durable before the log, it would be a table that no log contains: the member would refuse its own directory.
    expect(step({ type: 'tick' }).map(({ type }) => type)).not.toContain('cut');
    const written = step({ type: 'written', seq: raft.persistence.seq }).map(({ type }) => type);
    expect(written.filter((type) => type === 'persist' || type === 'cut')).toEqual(['persist', 'cut']);
  });
});
