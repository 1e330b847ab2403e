import { describe, expect, it } from 'vitest';
import type { BootId } from '../../src/base/ids.js';
import type { Event } from '../../src/replica/types.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import { others } from './helpers.js';

/** A follower that the test alone speaks to from here; `down` tells whether it takes its leader's process for gone. */
async function follower(): Promise<{ step: (...events: Event[]) => string[]; down: () => boolean; events: Events }> {
  const cluster = new MemoryCluster();
  const leader = await cluster.untilLeader();
  await cluster.run(1_000);
  const [name = ''] = others(cluster, leader);
  const { member, running } = cluster.node(name);
  running?.executor.halt();
  const replica = cluster.replica(name);
  const { raft } = replica.context;
  const from = cluster.node(leader).member;
  const { node, directory } = from;
  const heartbeat = { type: 'heartbeat', from, to: member, term: raft.hard.term, commit: 0, round: 0 } as const;
  return {
    step: (...events) => replica.step({ nowMs: cluster.now, unixMs: 0 }, events).map(({ type }) => type),
    down: () => raft.timer.heardAt === undefined,
    events: {
      ended: { type: 'streamEnded', node },
      refused: { type: 'probed', node, outcome: 'refused' },
      other: { type: 'probed', node, outcome: 'other' },
      message: { type: 'message', message: heartbeat },
      hello: { type: 'hello', node, directory, boot: 'f'.repeat(32) as BootId },
    },
  };
}

type Events = Record<'ended' | 'refused' | 'other' | 'message' | 'hello', Event>;

describe("a leader's process is taken for gone (S1)", () => {
  it('when its stream has ended and a connect begun after that was refused', async () => {
    const { step, down, events } = await follower();
    expect(step(events.ended)).toContain('probe');
    expect(down()).toBe(false);
    step(events.refused);
    expect(down()).toBe(true);
    step(events.message);
    expect(down()).toBe(false);
  });

  it('when its stream has ended and another process says hello in its name', async () => {
    const { step, down, events } = await follower();
    step(events.ended);
    step(events.hello);
    expect(down()).toBe(true);
  });

  it.each<[string, (events: Events) => Event[]]>([
    ['a connect was refused and its stream stands', ({ refused }) => [refused]],
    ['another process says hello and its stream stands', ({ hello }) => [hello]],
    ['its stream has ended and somebody listens', ({ ended, other }) => [ended, other]],
    ['something arrived between end and refusal', ({ ended, message, refused }) => [ended, message, refused]],
    ['something arrived between end and hello', ({ ended, message, hello }) => [ended, message, hello]],
  ])('but not when %s', async (_name, order) => {
    const { step, down, events } = await follower();
    for (const event of order(events)) step(event);
    expect(down()).toBe(false);
  });
});
