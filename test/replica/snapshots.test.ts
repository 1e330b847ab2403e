import { describe, expect, it } from 'vitest';
import { ZERO_REVISION } from '../../src/base/revision.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import {
  acquire,
  acquireOf,
  answerOf,
  endedOf,
  expectEqualStates,
  failureOf,
  granted,
  others,
  release,
  renew,
} from './helpers.js';

/** Cuts often, keeps almost no log: who is away for a moment needs a snapshot. */
const EAGER = { cutMs: 50, cutBytes: 500, logKeepBytes: 500 };

describe('snapshots', () => {
  it('bring a member that was away for longer than the log is kept', async () => {
    const cluster = new MemoryCluster({ options: EAGER, limits: { finishedRequests: 20 } });
    const leader = await cluster.untilLeader();
    const [away] = others(cluster, leader);
    if (away === undefined) throw new Error('three nodes expected');
    const before = acquireOf('before', { ttlMs: 600_000 });
    const first = await granted(cluster, leader, before);
    cluster.kill(away);
    for (let i = 0; i < 60; i++) {
      const keep = i % 7 === 3;
      const lease = await granted(cluster, leader, acquireOf(keep ? `kept${i}` : 'd', { ttlMs: 600_000 }));
      if (keep) await cluster.run(60);
      else await release(cluster, leader, lease);
    }
    expect(cluster.replica(leader).context.raft.log.anchor.index).toBeGreaterThan(20);
    cluster.start(away);
    await cluster.until(
      'the member to catch up',
      () => cluster.replica(away).context.applied === cluster.replica(leader).context.applied,
    );
    expect(cluster.node(away).logs.map(({ message }) => message)).toContain('installed a snapshot');
    await expectEqualStates(cluster);
    // The request table came with it (S6): a repetition gets the same lease from the member, and no second one.
    cluster.kill(leader);
    await cluster.untilLeader();
    const again = await granted(cluster, away, before);
    expect(again.token).toBe(first.token);
    await cluster.run(500);
    await expectEqualStates(cluster);
  });

  it('survive a crash of the receiver at any moment', async () => {
    for (let step = 0; step < 12; step++) {
      const cluster = new MemoryCluster({ options: EAGER, seed: step + 1, limits: { finishedRequests: 10 } });
      const leader = await cluster.untilLeader();
      const [away] = others(cluster, leader);
      if (away === undefined) throw new Error('three nodes expected');
      cluster.kill(away);
      for (let i = 0; i < 40; i++)
        await granted(cluster, leader, acquireOf(`d${i}`, { ttlMs: 600_000, metadata: [['k', 'x'.repeat(200)]] }));
      await cluster.run(200);
      cluster.start(away);
      await cluster.until('a snapshot on its way', () => cluster.replica(away).context.incoming !== undefined);
      await cluster.run(step);
      cluster.kill(away);
      await cluster.run(300);
      cluster.start(away);
      await cluster.until(
        'the member to catch up',
        () => cluster.replica(away).context.applied === cluster.replica(leader).context.applied,
      );
      await expectEqualStates(cluster);
    }
  });

  it('a late acquire whose record was evicted is refused as too old, not granted twice (F6)', async () => {
    const cluster = new MemoryCluster({ limits: { finishedRequests: 3 } });
    const leader = await cluster.untilLeader();
    const seen = await granted(cluster, leader, acquireOf('seen'));
    const call = acquireOf('d', { seenRevision: seen.token });
    await release(cluster, leader, await granted(cluster, leader, call));
    for (let i = 0; i < 8; i++) await release(cluster, leader, await granted(cluster, leader, acquireOf(`e${i}`)));
    const failure = failureOf(await cluster.answered(cluster.call(leader, call)));
    expect(failure).toMatchObject({ reason: 'REQUEST_TOO_OLD', outcome: 'unknown' });
    const fresh = acquireOf('d', { seenRevision: failure.revision as never });
    await granted(cluster, leader, fresh);
  });
});

describe('a snapshot under way', () => {
  it('that keeps too much log is ended, and the member gets another one later (S4.4)', async () => {
    const cluster = new MemoryCluster({ options: { ...EAGER, logKeepTransferBytes: 2_000 } });
    const leader = await cluster.untilLeader();
    const [away = ''] = others(cluster, leader);
    cluster.kill(away);
    for (let i = 0; i < 40; i++) await granted(cluster, leader, acquireOf(`d${i}`, { ttlMs: 600_000 }));
    await cluster.run(200);
    cluster.start(away);
    await cluster.until('a transfer', () => cluster.replica(leader).context.outgoing.size > 0);
    // Nothing that leaves for the member arrives while the log grows.
    cluster.cut(leader, away);
    const message = 'ended a snapshot transfer that kept too much log';
    for (let i = 40; !cluster.node(leader).logs.some((line) => line.message === message); i++) {
      if (i > 200) throw new Error('the transfer was not ended');
      await granted(cluster, leader, acquireOf(`d${i}`, { ttlMs: 600_000 }));
    }
    cluster.heal();
    await cluster.until(
      'the member to catch up',
      () => cluster.replica(away).context.applied === cluster.replica(leader).context.applied,
    );
    expect(cluster.leader()).toBe(leader);
    await expectEqualStates(cluster);
  });
});

describe('a snapshot that has arrived', () => {
  it('is followed by the log behind it, not by another snapshot, under load too (S4.4)', async () => {
    const cluster = new MemoryCluster({ options: EAGER });
    const leader = await cluster.untilLeader();
    const [away = ''] = others(cluster, leader);
    cluster.kill(away);
    for (let i = 0; i < 40; i++) await granted(cluster, leader, acquireOf(`d${i}`, { ttlMs: 600_000 }));
    await cluster.run(200);
    let made = 0;
    const load = (): void => {
      made++;
      cluster.call(leader, acquireOf(`load${made}`, { ttlMs: 600_000 }));
      if (made < 2_000) cluster.after(1, load);
    };
    load();
    cluster.start(away);
    // Between the last chunk and the first entry behind it there is time for many cuts.
    cluster.latency = [20, 40];
    await cluster.until('the load to end', () => made === 2_000);
    await cluster.run(200);
    const installed = cluster.node(away).logs.filter(({ message }) => message === 'installed a snapshot');
    expect(installed.length).toBe(1);
    await expectEqualStates(cluster);
  });
});

describe('a snapshot that comes while another is being installed', () => {
  it('is refused: staging it would empty what the switch is about to use', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [name] = others(cluster, leader);
    const node = cluster.node(name ?? '');
    // From here the test alone says what happens to this member.
    node.running?.executor.halt();
    const replica = cluster.replica(name ?? '');
    const { raft, genesis, lease } = replica.context;
    const from = cluster.node(leader).member;
    const term = raft.hard.term;
    const time = { nowMs: cluster.now, unixMs: 0 };
    const last = raft.log.entries.at(-1);
    const prev = { index: last?.index ?? 0, term: last?.term ?? 0 };
    const entry = { index: prev.index + 1, term, kind: 'noop', payload: new Uint8Array() } as const;
    // A write is under way, and stays so.
    const append = {
      type: 'append',
      from,
      to: node.member,
      term,
      prev,
      entries: [entry],
      commit: 0,
      request: 1,
    } as const;
    expect(replica.step(time, [{ type: 'message', message: append }]).map(({ type }) => type)).toContain('persist');
    const configuration = { voters: genesis.members, outgoing: [], learners: [] };
    const meta = { index: 500, term, configuration, configurationIndex: 0 };
    const summary = { forgotten: ZERO_REVISION, holding: false, limits: lease.limits };
    const chunk = {
      term,
      request: 7,
      sequence: 0,
      meta,
      summary,
      records: [],
      total: { count: 0, digest: '0'.repeat(16) },
    };
    expect(replica.step(time, [{ type: 'chunk', from, chunk }]).map(({ type }) => type)).toContain('stage');
    const installing = replica.step(time, [{ type: 'staged', request: 7, sequence: 0 }]).map(({ type }) => type);
    expect(installing).not.toContain('persist');
    expect(replica.context.applied).toBe(500);
    const next = { ...chunk, request: 8, meta: { ...meta, index: 600 } };
    const effects = replica.step(time, [{ type: 'chunk', from, chunk: next }]).map(({ type }) => type);
    expect(effects).toContain('refuseChunks');
    expect(effects).not.toContain('stage');
  });
});

describe('a snapshot that is refused', () => {
  it('leaves nothing behind of what has come of it', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [name = ''] = others(cluster, leader);
    cluster.node(name).running?.executor.halt();
    const replica = cluster.replica(name);
    const { raft, genesis, lease } = replica.context;
    const from = cluster.node(leader).member;
    const time = { nowMs: cluster.now, unixMs: 0 };
    const { term } = raft.hard;
    const configuration = { voters: genesis.members, outgoing: [], learners: [] };
    const chunk = {
      term,
      request: 7,
      sequence: 0,
      meta: { index: 500, term, configuration, configurationIndex: 0 },
      summary: { forgotten: ZERO_REVISION, holding: false, limits: lease.limits },
      records: [],
      total: undefined,
    };
    replica.step(time, [{ type: 'chunk', from, chunk }]);
    expect(replica.context.incoming).toBeDefined();
    // Another leader takes over in the middle of it.
    const [, second = ''] = others(cluster, leader);
    const next = cluster.node(second).member;
    const heartbeat = {
      type: 'heartbeat',
      from: next,
      to: raft.options.self,
      term: term + 1,
      commit: 0,
      round: 0,
    } as const;
    replica.step(time, [{ type: 'message', message: heartbeat }]);
    const effects = replica.step(time, [{ type: 'chunk', from, chunk: { ...chunk, sequence: 1 } }]);
    expect(effects.map(({ type }) => type)).toContain('refuseChunks');
    expect(replica.context.incoming).toBeUndefined();
  });
});

describe('the disk floor', () => {
  const LOW = { diskFloorBytes: 1_000 };

  it('on the leader refuses new leases, keeps renewals, releases and known ids going, and clears itself', async () => {
    const cluster = new MemoryCluster({ options: LOW });
    const leader = await cluster.untilLeader();
    const call = acquireOf('d', { ttlMs: 60_000 });
    const lease = await granted(cluster, leader, call);
    cluster.dispatchTo(cluster.node(leader), { type: 'diskFree', bytes: 999 });
    expect(failureOf(await cluster.answered(cluster.call(leader, acquireOf('e')))).reason).toBe('DISK_FULL');
    expect(await renew(cluster, leader, lease)).toMatchObject([{ type: 'live' }]);
    expect((await granted(cluster, leader, call)).token).toBe(lease.token);
    expect((await release(cluster, leader, lease)).released).toBe(true);
    cluster.dispatchTo(cluster.node(leader), { type: 'diskFree', bytes: 1_000 });
    await granted(cluster, leader, acquireOf('e'));
  });

  it('on so many followers that no majority has more refuses too; on one of three it does not', async () => {
    const cluster = new MemoryCluster({ options: LOW });
    const leader = await cluster.untilLeader();
    const [one, two] = others(cluster, leader);
    cluster.dispatchTo(cluster.node(one ?? ''), { type: 'diskFree', bytes: 0 });
    await cluster.run(300);
    await granted(cluster, leader, acquireOf('d'));
    cluster.dispatchTo(cluster.node(two ?? ''), { type: 'diskFree', bytes: 0 });
    await cluster.run(300);
    expect(failureOf(await cluster.answered(cluster.call(leader, acquireOf('e')))).reason).toBe('DISK_FULL');
  });
});

describe('a disk that stalls', () => {
  it('makes a leader step down, and it leads or follows again when the disk answers (P15)', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const [entry] = others(cluster, leader);
    cluster.node(leader).running?.store.stall();
    const call = cluster.call(entry ?? '', acquireOf('d'));
    await cluster.until('another leader', () => cluster.leader() !== undefined && cluster.leader() !== leader);
    expect(answerOf(await cluster.answered(call))).toMatchObject({ outcome: { type: 'granted' } });
    cluster.node(leader).running?.store.resume();
    await expectEqualStates(cluster);
  });

  it('a failed write ends the node, and nothing that it acknowledged is lost (P13, P14)', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const lease = await granted(cluster, leader, acquireOf('d', { ttlMs: 60_000 }));
    cluster.node(leader).running?.store.fail('ENOSPC');
    cluster.call(leader, acquireOf('e'));
    await cluster.until('the failure', () => cluster.node(leader).failed?.cause === 'disk');
    cluster.kill(leader);
    const next = await cluster.untilLeader();
    expect(await renew(cluster, next, lease)).toMatchObject([{ type: 'live' }]);
    cluster.start(leader);
    await expectEqualStates(cluster);
  });
});

describe('a store that reports writes before they are synced', () => {
  /** Kills all at once after grants were acknowledged; how many of those are gone. */
  async function lostAfterPowerLoss(sync: boolean): Promise<number> {
    let lost = 0;
    for (let seed = 1; seed <= 5; seed++) {
      const cluster = new MemoryCluster({ seed, sync });
      const leader = await cluster.untilLeader();
      const leases = [];
      for (let i = 0; i < 10; i++) leases.push(await granted(cluster, leader, acquireOf(`d${i}`, { ttlMs: 600_000 })));
      for (const name of cluster.nodes.keys()) cluster.kill(name);
      for (const name of cluster.nodes.keys()) cluster.start(name);
      const next = await cluster.untilLeader();
      for (const state of await renew(cluster, next, ...leases)) if (state.type === 'ended') lost++;
    }
    return lost;
  }

  it('loses acknowledged leases when the power fails, and this check notices', async () => {
    expect(await lostAfterPowerLoss(false)).toBeGreaterThan(0);
  });

  it('with syncs nothing is lost', async () => {
    expect(await lostAfterPowerLoss(true)).toBe(0);
  });
});

describe('an ended request', () => {
  it('is known after every member was restarted', async () => {
    const cluster = new MemoryCluster({ options: EAGER });
    const leader = await cluster.untilLeader();
    const call = acquireOf('d');
    const lease = await granted(cluster, leader, call);
    await release(cluster, leader, lease);
    await cluster.run(500);
    for (const name of cluster.nodes.keys()) cluster.kill(name);
    for (const name of cluster.nodes.keys()) cluster.start(name);
    const next = await cluster.untilLeader();
    expect(endedOf(await acquire(cluster, next, call)).reason).toBe('released');
  });
});
