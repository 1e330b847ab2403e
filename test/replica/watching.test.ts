import { describe, expect, it } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import { WATCH_LIMITS } from '../../src/base/limits.js';
import type { Revision } from '../../src/base/revision.js';
import { createWatching } from '../../src/replica/watchers.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import { changesSeen, inWords, seenUpTo } from '../support/memory-watches.js';
import type { MemoryWatch } from '../support/memory-watches.js';
import { acquireOf, answerOf, granted, others, release } from './helpers.js';
import { heldScene, scene, TTL_MS, wait } from './queue-kit.js';
import { historyOf } from './watch-kit.js';

const LONG = { ttlMs: TTL_MS } as const;

function words(watch: MemoryWatch): string[] {
  return changesSeen(watch).map(inWords);
}

function applied(cluster: MemoryCluster, node: string): number {
  return cluster.replica(node).context.lease.revision;
}

async function untilSeen(cluster: MemoryCluster, watch: MemoryWatch, revision: number): Promise<void> {
  await cluster.until(`watch ${watch.id} to know revision ${revision}`, () => seenUpTo(watch) >= revision);
}

/** Everything that is applied now, and more that follows at once, is known. */
async function untilKnown(cluster: MemoryCluster, watch: MemoryWatch): Promise<void> {
  await untilSeen(cluster, watch, applied(cluster, watch.node));
}

describe('a watch', () => {
  it('tells grants, ends with their cause, and the length of queues, each at its revision', async () => {
    const { cluster, leader } = await scene();
    const watch = cluster.watches.open(leader, '', 0);
    const metadata = [['zone', 'eu']] as const;
    const first = await granted(cluster, leader, acquireOf('d', { ...LONG, holder: 'first', metadata }));
    await wait(cluster, leader, 'second');
    await release(cluster, leader, first);
    await cluster.until('the hand-over', () => changesSeen(watch).length === 5);
    const [grant, queued, ended, next, left] = changesSeen(watch);
    expect(grant).toEqual({ revision: first.token, type: 'granted', lease: first });
    expect(queued).toEqual({ revision: first.token + 1, type: 'queueChanged', domain: 'd', queueLength: 1 });
    expect(ended).toEqual({
      revision: first.token + 2,
      type: 'ended',
      ended: {
        lease: { domain: 'd', token: first.token },
        reason: 'released',
        by: '',
        note: '',
        // Handed over by the very entry that ended it.
        currentToken: first.token + 2,
      },
    });
    expect(next).toMatchObject({ revision: first.token + 2, type: 'granted', lease: { holder: 'second' } });
    expect(left).toEqual({ revision: first.token + 2, type: 'queueChanged', domain: 'd', queueLength: 0 });
  });

  it('says who ended a lease by force, and why', async () => {
    const { cluster, leader, followers } = await scene();
    const watch = cluster.watches.open(followers[0], '', 0);
    const { domain, token } = await granted(cluster, leader, acquireOf('d', LONG));
    await cluster.answered(cluster.call(leader, { type: 'forceRelease', domain, token, note: 'stuck' }));
    await cluster.until('the end', () => changesSeen(watch).length === 2);
    expect(changesSeen(watch)[1]).toMatchObject({
      type: 'ended',
      ended: { reason: 'force_released', by: 'addr:test', note: 'stuck', currentToken: 0 },
    });
  });

  it('tells expiries, withdrawals and slots', async () => {
    const { cluster, leader } = await scene();
    const watch = cluster.watches.open(leader, '', 0);
    await granted(cluster, leader, acquireOf('gone', { ttlMs: 3_000 }));
    const slot = acquireOf('gpu', { ...LONG, slots: 2 });
    await granted(cluster, leader, slot);
    await cluster.answered(cluster.call(leader, { type: 'withdraw', domain: slot.domain, requestId: slot.requestId }));
    await cluster.until('the expiry', () => words(watch).some((line) => line.endsWith('expired')));
    await untilKnown(cluster, watch);
    expect(words(watch)).toEqual(historyOf(cluster, leader, '', seenUpTo(watch) - 1_000));
    expect(words(watch).some((line) => /ended gpu#0 \d+ withdrawn/.test(line))).toBe(true);
  });

  it('has only what begins with its prefix, as bytes', async () => {
    const { cluster, leader } = await scene();
    const prefixes = ['', 'orders', 'orders/', 'orders/eu', 'orders/eu/1', 'x', 'ö'];
    const watches = prefixes.map((prefix) => cluster.watches.open(leader, prefix, 0));
    for (const domain of ['orders', 'orders/eu', 'orders/eu/1', 'orders/us', 'order', 'x'])
      await granted(cluster, leader, acquireOf(domain, LONG));
    await cluster.run(20_000);
    for (const [number, watch] of watches.entries())
      expect(words(watch), watch.id.toString()).toEqual(historyOf(cluster, leader, prefixes[number], 1));
    expect(watches.map((watch) => words(watch).length)).toEqual([6, 4, 3, 2, 1, 1, 0]);
  });

  it('is served by every node alike, each batch complete up to its header', async () => {
    const { cluster, leader } = await scene();
    const watches = [...cluster.nodes.keys()].map((node) => cluster.watches.open(node, '', 0));
    for (let i = 0; i < 30; i++) {
      const lease = await granted(cluster, leader, acquireOf(`d${i % 4}`, LONG));
      await release(cluster, leader, lease);
    }
    await cluster.run(1_000);
    const expected = historyOf(cluster, leader);
    expect(expected.length).toBeGreaterThanOrEqual(60);
    for (const watch of watches) {
      expect(words(watch)).toEqual(expected);
      for (const { header, news } of watch.messages) {
        expect(header.node).toBe(watch.node);
        expect(header.leader).toBe(leader);
        if (news.type === 'events')
          for (const event of news.events) expect(event.revision <= header.revision).toBe(true);
      }
    }
  });
});

describe('progress', () => {
  it('is told at once, then at least every ten seconds, and moves on although nothing happens below the prefix', async () => {
    const { cluster, leader } = await scene();
    const watch = cluster.watches.open(leader, 'quiet/', 0);
    await cluster.until('the first mark', () => watch.messages.length === 1);
    const first = watch.messages[0];
    expect(first?.news).toEqual({ type: 'progress' });
    expect(first?.header.revision).toBe(applied(cluster, leader));
    for (let round = 1; round <= 3; round++) {
      const lease = await granted(cluster, leader, acquireOf('other', LONG));
      await cluster.run(10_000);
      expect(watch.messages.length).toBeGreaterThan(round);
      expect(seenUpTo(watch)).toBeGreaterThanOrEqual(lease.token);
      await release(cluster, leader, lease);
    }
    expect(words(watch)).toEqual([]);
  });

  it('is not told of a start that the node has not reached, and such a watch ends within the ten seconds', async () => {
    const { cluster, leader, followers } = await scene();
    const [far] = followers;
    const from = applied(cluster, leader) + 50;
    const watch = cluster.watches.open(far, '', from);
    await cluster.run(9_000);
    expect(watch.messages).toEqual([]);
    expect(watch.failure).toBeUndefined();
    await cluster.until('the end', () => watch.failure !== undefined, 1_500);
    expect(watch.failure).toMatchObject({ reason: 'NODE_BEHIND', outcome: 'not-done' });
    expect(watch.failure?.message).toContain(String(from));
  });
});

describe('a start in the past', () => {
  it('is read from the ring, each change once, at any node and over a leader change', async () => {
    const { cluster, leader } = await scene();
    const start = applied(cluster, leader);
    for (let i = 0; i < 10; i++) await granted(cluster, leader, acquireOf(`d${i}`, LONG));
    const before = cluster.watches.open(leader, '', start + 1);
    await untilKnown(cluster, before);
    const resume = seenUpTo(before) + 1;
    cluster.kill(leader);
    const next = await cluster.untilLeader();
    for (let i = 10; i < 20; i++) await granted(cluster, next, acquireOf(`d${i}`, LONG));
    const [third = ''] = others(cluster, next).filter((node) => node !== leader);
    for (const node of [next, third]) {
      await cluster.until('it to be applied', () => applied(cluster, node) >= applied(cluster, next));
      const after = cluster.watches.open(node, '', resume);
      await untilKnown(cluster, after);
      expect([...words(before), ...words(after)]).toEqual(historyOf(cluster, next, '', start + 1));
      expect(changesSeen(after)[0]?.revision).toBeGreaterThanOrEqual(resume);
    }
  });

  it('that lies ahead of the node is waited for, and nothing before it is told', async () => {
    const { cluster, leader, followers } = await scene();
    const from = applied(cluster, leader) + 4;
    const watch = cluster.watches.open(followers[0], '', from);
    for (let i = 0; i < 8; i++) await granted(cluster, leader, acquireOf(`d${i}`, LONG));
    await cluster.run(500);
    expect(words(watch)).toEqual(historyOf(cluster, leader, '', from));
    expect(words(watch)).toHaveLength(5);
  });

  it('that is no longer kept is answered compacted, with the oldest revision that is; from there it works', async () => {
    const options = { watch: { ...WATCH_LIMITS, ringBytes: 1_000 } };
    const { cluster, leader } = await scene({ options });
    const start = applied(cluster, leader) + 1;
    for (let i = 0; i < 30; i++) await granted(cluster, leader, acquireOf(`d${i}`, LONG));
    const watch = cluster.watches.open(leader, '', start);
    await cluster.until('an answer', () => watch.messages.length === 1);
    const news = watch.messages[0]?.news;
    if (news?.type !== 'compacted') throw new Error(`not compacted: ${JSON.stringify(news)}`);
    expect(news.oldest).toBeGreaterThan(start);
    const again = cluster.watches.open(leader, '', news.oldest);
    await untilKnown(cluster, again);
    expect(words(again)).toEqual(historyOf(cluster, leader, '', news.oldest));
    expect(words(again).length).toBeGreaterThan(3);
    const older = cluster.watches.open(leader, '', news.oldest - 1);
    await cluster.until('an answer', () => older.messages.length === 1);
    expect(older.messages[0]?.news.type).toBe('compacted');
  });

  it('before a restart of the node is compacted unless the node has applied it since', async () => {
    const { cluster, leader } = await scene();
    const start = applied(cluster, leader) + 1;
    for (let i = 0; i < 5; i++) await granted(cluster, leader, acquireOf(`d${i}`, LONG));
    // A cut is made.
    await cluster.run(3_000);
    cluster.kill(leader);
    await cluster.untilLeader();
    cluster.start(leader);
    await cluster.until('it to follow', () => cluster.replica(leader).context.raft.leader !== undefined);
    const watch = cluster.watches.open(leader, '', start);
    await cluster.until('an answer', () => watch.messages.length === 1);
    expect(watch.messages[0]?.news.type).toBe('compacted');
  });
});

describe('a snapshot that is installed', () => {
  const EAGER = { cutMs: 50, cutBytes: 500, logKeepBytes: 500 };

  it('ends the watches of its node as compacted: nobody knows what changed in between', async () => {
    const { cluster, leader, followers } = await scene({ options: EAGER });
    const [away, other] = followers;
    const watch = cluster.watches.open(away, '', 0);
    const deaf = cluster.watches.open(away, 'nothing/', 0);
    const ahead = cluster.watches.open(away, '', applied(cluster, leader) + 100);
    await cluster.until('the first marks', () => watch.messages.length === 1 && deaf.messages.length === 1);
    cluster.cut(away, leader, other);
    // Shorter than an election time-out, so that the watches stay open.
    for (let i = 0; i < 60; i++) void cluster.call(leader, acquireOf(`d${i}`, LONG));
    await cluster.run(200);
    expect(cluster.replica(leader).context.raft.log.anchor.index).toBeGreaterThan(20);
    cluster.heal();
    const installed = 'installed a snapshot';
    await cluster.until('a snapshot', () => cluster.node(away).logs.some(({ message }) => message === installed));
    await cluster.until('both ends', () => [watch, deaf].every((each) => each.messages.length === 2));
    const oldest = cluster.replica(away).context.watching.ring.oldest;
    for (const each of [watch, deaf]) expect(each.messages[1]?.news).toEqual({ type: 'compacted', oldest });
    expect(ahead.messages).toEqual([]);
    for (let i = 100; i < 150; i++) await granted(cluster, leader, acquireOf(`d${i}`, LONG));
    await cluster.until('what lay ahead', () => changesSeen(ahead).length > 0);
    expect(changesSeen(ahead)[0]?.type).toBe('granted');
    const since = cluster.watches.open(away, '', oldest);
    await untilSeen(cluster, since, applied(cluster, leader));
    expect(changesSeen(since).at(-1)).toMatchObject({ lease: { domain: 'd149' } });
  });
});

describe('a slow watcher', () => {
  it('holds up nobody, takes no memory, and is told compacted when it reads again', async () => {
    const ringBytes = 20_000;
    const { cluster, leader } = await scene({ options: { watch: { ...WATCH_LIMITS, ringBytes } } });
    const slow = cluster.watches.open(leader, '', 0);
    cluster.watches.read(slow, false);
    const fast = cluster.watches.open(leader, '', 0);
    for (let i = 0; i < 1_000; i += 50) {
      for (let j = i; j < i + 50; j++) cluster.call(leader, acquireOf(`d${j}`, LONG));
      await cluster.until('the grants', () => changesSeen(fast).length === i + 50);
    }
    expect(slow.messages).toHaveLength(1);
    const { ring, watchers } = cluster.replica(leader).context.watching;
    expect(ring.bytes).toBeLessThanOrEqual(ringBytes);
    expect(ring.recent.length).toBeLessThan(250);
    // Nothing is kept for it but its place.
    for (const value of Object.values(watchers.get(slow.id) ?? {})) expect(typeof value).not.toBe('object');
    cluster.watches.read(slow, true);
    await cluster.until('the answer', () => slow.messages.length === 2);
    expect(slow.messages[1]?.news).toEqual({ type: 'compacted', oldest: ring.oldest });
  });

  it('that has not fallen out of the ring gets what it missed, in batches of bounded size', async () => {
    const batchBytes = 2_000;
    const { cluster, leader } = await scene({ options: { watch: { ...WATCH_LIMITS, batchBytes } } });
    const slow = cluster.watches.open(leader, 'd', 0);
    cluster.watches.read(slow, false);
    for (let i = 0; i < 300; i++) cluster.call(leader, acquireOf(`${i % 3 === 0 ? 'e' : 'd'}${i}`, LONG));
    await cluster.run(1_000);
    cluster.watches.read(slow, true);
    await untilKnown(cluster, slow);
    expect(words(slow)).toEqual(historyOf(cluster, leader, 'd'));
    const sizes = slow.messages.flatMap(({ news }) => (news.type === 'events' ? [news.events.length] : []));
    expect(sizes.length).toBeGreaterThan(5);
    // About 110 bytes each.
    expect(Math.max(...sizes)).toBeLessThanOrEqual(20);
  });

  it('with a large backlog does not hold up those that keep up', async () => {
    const { cluster, leader } = await scene();
    const first = applied(cluster, leader) + 1;
    for (let i = 0; i < 5_000; i++) cluster.call(leader, acquireOf(`d${i}`, LONG));
    await cluster.until('all grants', () => historyLength(cluster, leader) >= 5_000);
    const lagging = Array.from({ length: 30 }, () => cluster.watches.open(leader, 'none', first));
    const live = cluster.watches.open(leader, 'x', 0);
    await cluster.until('the first mark', () => live.messages.length === 1);
    const lease = await granted(cluster, leader, acquireOf('x', LONG));
    await untilSeen(cluster, live, lease.token);
    for (const watch of lagging) await untilSeen(cluster, watch, lease.token - 1);
  });
});

function historyLength(cluster: MemoryCluster, node: string): number {
  return cluster.replica(node).context.watching.ring.recent.length;
}

describe('a revision with more changes than a message may have', () => {
  it('comes in parts, of which only the last says that it is complete', async () => {
    const watch = { ...WATCH_LIMITS, batchBytes: 400, messageBytes: 1_000 };
    const { cluster, leader } = await scene({ options: { watch } });
    const seen = cluster.watches.open(leader, 'd', 0);
    for (let i = 0; i < 40; i++) cluster.call(leader, acquireOf(`${i % 4 === 0 ? 'e' : 'd'}${i}`, { ttlMs: 3_000 }));
    await cluster.until('the expiries', () => changesSeen(seen).filter(({ type }) => type === 'ended').length === 30);
    expect(words(seen)).toEqual(historyOf(cluster, leader, 'd'));
    const counts = new Map<number, number>();
    for (const { revision, type } of changesSeen(seen))
      if (type === 'ended') counts.set(revision, (counts.get(revision) ?? 0) + 1);
    const [large] = [...counts].sort(([, a], [, b]) => b - a);
    if (large === undefined || large[1] < 20) throw new Error('the leases did not expire together');
    const parts = seen.messages.filter(
      ({ news }) => news.type === 'events' && news.events.some(({ revision }) => revision === large[0]),
    );
    expect(parts.length).toBeGreaterThan(2);
    expect(parts.slice(0, -1).every(({ header }) => header.revision === large[0] - 1)).toBe(true);
    expect(parts.at(-1)?.header.revision).toBeGreaterThanOrEqual(large[0]);
    // What was sent of one revision is forgotten with it.
    await granted(cluster, leader, acquireOf('d', LONG));
    await cluster.until('one more', () => words(seen).at(-1)?.endsWith('granted d to test') === true);
    // Who starts at that revision gets all of it.
    const again = cluster.watches.open(leader, 'd', large[0]);
    await untilKnown(cluster, again);
    expect(words(again)).toEqual(historyOf(cluster, leader, 'd', large[0]));
  });
});

describe('limits of watches', () => {
  it('by which what was gathered could exceed a message are refused', () => {
    const applied = 7 as Revision;
    const limits = { ...WATCH_LIMITS, batchBytes: 1_000, messageBytes: 999 };
    expect(() => createWatching(applied, limits)).toThrow('a batch of 1000 bytes does not fit into a message of 999');
    expect(createWatching(applied, { ...limits, messageBytes: 1_000 }).ring.oldest).toBe(8);
  });
});

describe('List, then watch', () => {
  it('from the revision behind the list misses nothing and repeats nothing', async () => {
    const { cluster, leader, followers } = await heldScene();
    const load = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) await granted(cluster, leader, acquireOf(`d${i}`, LONG));
    };
    await load(0, 10);
    const [node] = followers;
    const result = await cluster.answered(
      cluster.call(node, { type: 'list', prefix: '', pageSize: 1_000, after: '', freshness: 'linearizable' }),
    );
    const answer = answerOf(result);
    if (answer.type !== 'list' || result.type !== 'answer') throw new Error('no list');
    await load(10, 20);
    const watch = cluster.watches.open(node, '', result.revision + 1);
    await cluster.until('all', () => seenUpTo(watch) >= applied(cluster, leader));
    const known = new Set<Domain>(answer.domains.map(({ domain }) => domain));
    for (const change of changesSeen(watch)) {
      if (change.type !== 'granted') throw new Error(`unexpected ${change.type}`);
      expect(known.has(change.lease.domain)).toBe(false);
      known.add(change.lease.domain);
    }
    expect(known.size).toBe(21);
  });
});
