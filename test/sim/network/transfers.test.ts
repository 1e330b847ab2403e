/** Snapshot transfers report what the real ones do: see test/transport/snapshot.test.ts. */
import { describe, expect, test } from 'vitest';
import { STATE_LIMITS } from '../../../src/base/limits.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import type { SnapshotMeta } from '../../../src/raft/types.js';
import type { SnapshotReader } from '../../../src/replica/ports.js';
import type { SnapshotChunk } from '../../../src/replica/types.js';
import { member, TestWorld } from './kit.js';
import type { TestProcess } from './kit.js';

const meta: SnapshotMeta = {
  index: 4_711,
  term: 3,
  configuration: { voters: [member('n1'), member('n2')], outgoing: [], learners: [] },
  configurationIndex: 0,
};

/** A snapshot of `count` chunks of one record each. */
class Snapshot implements SnapshotReader {
  readonly #count: number;
  readonly #ragged: boolean;
  read = 0;
  closed = 0;

  constructor(count: number, ragged = false) {
    this.#count = count;
    this.#ragged = ragged;
  }

  next(): Promise<Omit<SnapshotChunk, 'term' | 'request' | 'sequence'> | undefined> {
    if (this.read === this.#count) return Promise.resolve(undefined);
    const domain = `chunk-${this.read++}` as Domain;
    const lease = {
      domain,
      token: 1_000 as Revision,
      requestId: '00000000-0000-4000-8000-000000000000' as RequestId,
      holder: 'h',
      metadata: [] as const,
      ttlMs: 15_000,
      coolDownMs: 0,
      grantedAtUnixMs: 1,
      owner: '',
      principal: 'addr:10.0.0.7',
      version: 0,
      checkpointLeftMs: undefined,
    };
    return Promise.resolve({
      meta,
      summary: { forgotten: 0 as Revision, holding: false, limits: STATE_LIMITS },
      records: [{ type: 'domain' as const, domain, lease }],
      total: this.read === this.#count && !this.#ragged ? { count: this.#count, digest: 'd'.repeat(16) } : undefined,
    });
  }

  close(): Promise<void> {
    this.closed++;
    return Promise.resolve();
  }
}

interface Transfer {
  readonly world: TestWorld;
  readonly n1: TestProcess;
  readonly n2: TestProcess;
  readonly chunks: () => SnapshotChunk[];
}

/** n1 sends, n2 receives; a chunk is durable at n2 5 ms after it came, if `stages` says so. */
async function transfer(
  snapshot: () => SnapshotReader,
  stages: (chunk: SnapshotChunk) => boolean = () => true,
  codecs = true,
): Promise<Transfer> {
  const world = new TestWorld(['n1', 'n2'], { codecs });
  const [n1, n2] = (await world.cluster('n1', 'n2')) as [TestProcess, TestProcess];
  n1.snapshot = snapshot;
  n2.onEvent = (event) => {
    if (event.type !== 'chunk' || !stages(event.chunk)) return;
    const { request, sequence } = event.chunk;
    world.scheduler.after(5, () => {
      n2.peers.chunkStaged(request, sequence);
    });
  };
  return { world, n1, n2, chunks: () => n2.all('chunk').map(({ chunk }) => chunk) };
}

const send = (n1: TestProcess, request: number, to = member('n2')): void => {
  n1.peers.perform({ type: 'sendSnapshot', to, term: 3, request });
};

test.each([true, false])(
  'with codecs %s a snapshot arrives whole, and ends when the receiver has decided',
  async (codecs) => {
    const snapshot = new Snapshot(20);
    const { world, n1, n2, chunks } = await transfer(() => snapshot, undefined, codecs);
    send(n1, 1);
    await world.run(1_000);
    expect(chunks().map(({ sequence, term, request }) => [sequence, term, request])).toEqual(
      Array.from({ length: 20 }, (_, at) => [at, 3, 1]),
    );
    expect(chunks().map(({ records }) => (records[0]?.type === 'domain' ? records[0].domain : ''))).toEqual(
      Array.from({ length: 20 }, (_, at) => `chunk-${at}`),
    );
    expect(chunks().at(-1)?.total).toEqual({ count: 20, digest: 'd'.repeat(16) });
    expect(n2.all('chunk')[0]?.from).toEqual(n1.member);
    expect(n1.count('snapshotSent')).toBe(0);
    n2.peers.perform({ type: 'chunksDone', from: n1.member, request: 1 });
    await world.run(10);
    expect(n1.all('snapshotSent')).toEqual([{ type: 'snapshotSent', to: member('n2'), index: 4_711, ok: true }]);
    expect(snapshot.closed).toBe(1);
    expect(n2.count('chunksEnded')).toBe(0);
    expect(world.coverage.counts.get('snapshot transfer done')).toBe(1);
  },
);

test('the sender does not run ahead of a receiver that stages slowly', async () => {
  const snapshot = new Snapshot(200);
  const { world, n1, n2, chunks } = await transfer(
    () => snapshot,
    () => false,
  );
  send(n1, 1);
  await world.run(1_000);
  expect(chunks()).toHaveLength(1);
  expect(snapshot.read).toBeLessThan(10);
  n2.peers.chunkStaged(1, 1);
  n2.peers.chunkStaged(2, 0);
  await world.run(100);
  expect(chunks()).toHaveLength(1);
  n2.peers.chunkStaged(1, 0);
  await world.run(100);
  expect(chunks()).toHaveLength(2);
});

test('a chunk may come twice, the last one never does', async () => {
  const { world, n1, chunks } = await transfer(() => new Snapshot(5));
  const { wire } = world.network;
  wire.parameters = { ...wire.parameters, chunkTwice: 1_000 };
  send(n1, 1);
  await world.run(1_000);
  expect(chunks().map(({ sequence }) => sequence)).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4]);
  expect(world.coverage.counts.get('chunk doubled')).toBe(4);
});

test('severed connections lose what is under way, and both ends are told at once', async () => {
  const { world, n1, n2, chunks } = await transfer(() => new Snapshot(2_000));
  send(n1, 1);
  await world.run(100);
  const before = chunks().length;
  world.network.sever(n2.member.node);
  await world.run(10);
  expect(n1.all('snapshotSent').map(({ ok }) => ok)).toEqual([false]);
  expect(n2.count('chunksEnded')).toBe(1);
  expect(chunks()).toHaveLength(before);
});

test('an abort ends the transfer without a report; the receiver is told', async () => {
  const snapshot = new Snapshot(200);
  const { world, n1, n2, chunks } = await transfer(
    () => snapshot,
    ({ sequence }) => sequence < 3,
  );
  send(n1, 1);
  await world.run(500);
  expect(chunks()).toHaveLength(4);
  n1.peers.perform({ type: 'abortSnapshot', to: member('n2') });
  await world.run(100);
  expect(n2.all('chunksEnded')).toEqual([{ type: 'chunksEnded', from: n1.member }]);
  expect(snapshot.closed).toBe(1);
  expect(n1.count('snapshotSent')).toBe(0);
});

test('a new transfer to a follower takes the place of the one under way', async () => {
  const { world, n1, n2 } = await transfer(
    () => new Snapshot(5),
    ({ request }) => request === 2,
  );
  send(n1, 1);
  await world.run(100);
  send(n1, 2);
  await world.run(500);
  const order = n2.events.flatMap((event) =>
    event.type === 'chunk' ? [`chunk of ${event.chunk.request}`] : event.type === 'chunksEnded' ? ['ended'] : [],
  );
  expect(order.filter((what) => what === 'ended')).toHaveLength(1);
  expect(order.filter((what) => what === 'chunk of 2')).toHaveLength(5);
  expect(n1.count('snapshotSent')).toBe(0);
  n2.peers.perform({ type: 'chunksDone', from: n1.member, request: 2 });
  await world.run(10);
  expect(n1.all('snapshotSent').map(({ ok }) => ok)).toEqual([true]);
});

test('a refusal ends it at the sender, and nothing is told at the receiver', async () => {
  const snapshot = new Snapshot(50);
  const { world, n1, n2 } = await transfer(
    () => snapshot,
    ({ sequence }) => sequence < 2,
  );
  send(n1, 1);
  await world.run(100);
  n2.peers.perform({ type: 'refuseChunks', from: member('n1', 9), reason: 'another directory' });
  await world.run(100);
  expect(n1.count('snapshotSent')).toBe(0);
  n2.peers.perform({ type: 'refuseChunks', from: n1.member, reason: 'an old term' });
  await world.run(100);
  expect(n1.all('snapshotSent')).toEqual([{ type: 'snapshotSent', to: member('n2'), index: 4_711, ok: false }]);
  expect(snapshot.closed).toBe(1);
  expect(n2.count('chunksEnded')).toBe(0);
});

describe('transfers that fail', () => {
  test('the receiver is killed', async () => {
    const snapshot = new Snapshot(200);
    const { world, n1, n2 } = await transfer(() => snapshot);
    send(n1, 1);
    await world.run(100);
    world.network.detach(n2.member.node, n2.boot, 'closed');
    await world.run(100);
    expect(n1.all('snapshotSent')).toEqual([{ type: 'snapshotSent', to: member('n2'), index: 4_711, ok: false }]);
    expect(snapshot.closed).toBe(1);
  });

  test('the sender is killed: its reader is left as it was, and the receiver is told', async () => {
    const snapshot = new Snapshot(200);
    const { world, n1, n2 } = await transfer(() => snapshot);
    send(n1, 1);
    await world.run(100);
    world.network.detach(n1.member.node, n1.boot, 'closed');
    const { read } = snapshot;
    const told = n1.events.length;
    await world.run(1_000);
    expect([snapshot.read, snapshot.closed, n1.events.length]).toEqual([read, 0, told]);
    expect(n2.all('chunksEnded')).toEqual([{ type: 'chunksEnded', from: n1.member }]);
    expect(world.coverage.counts.get('snapshot transfer broken off')).toBe(1);
  });

  test('the sender is killed when the last chunk has come: what is there may still be installed', async () => {
    const { world, n1, n2, chunks } = await transfer(() => new Snapshot(3));
    send(n1, 1);
    await world.run(100);
    expect(chunks().at(-1)?.total?.count).toBe(3);
    world.network.detach(n1.member.node, n1.boot, 'closed');
    await world.run(100);
    expect(n2.count('streamEnded')).toBe(2);
    expect(n2.count('chunksEnded')).toBe(0);
  });

  test('the connection is reset, or silent for too long', async () => {
    for (const break_ of ['refuse', 'cut'] as const) {
      const snapshot = new Snapshot(2_000);
      const { world, n1, n2 } = await transfer(() => snapshot);
      send(n1, 1);
      await world.run(100);
      if (break_ === 'refuse') world.network.refuse(n2.member.node, true);
      else world.network.cut(n1.member.node, n2.member.node);
      await world.run(8_000);
      expect(n1.all('snapshotSent').map(({ ok }) => ok)).toEqual([false]);
      expect(n2.count('chunksEnded')).toBe(1);
      expect(snapshot.closed).toBe(1);
    }
  });

  test('nobody listens; nobody answers; another directory; the snapshot has no end; it cannot be opened', async () => {
    let reader: Snapshot | undefined = new Snapshot(3);
    const { world, n1, n2 } = await transfer(() => {
      if (reader === undefined) throw new Error('the disk refuses');
      return reader;
    });
    const sent = (): unknown[] => n1.all('snapshotSent').map(({ index, ok }) => [index, ok]);
    send(n1, 1, member('n2', 9));
    await world.run(100);
    expect(sent()).toEqual([[0, false]]);
    send(n1, 2, member('n9'));
    expect(sent()).toHaveLength(1);
    await world.run(100);
    expect(sent()).toEqual([
      [0, false],
      [0, false],
    ]);
    expect(reader.read).toBe(0);
    const opened = reader;
    reader = undefined;
    send(n1, 3);
    await world.run(100);
    expect(sent()).toHaveLength(3);
    expect(opened.read).toBe(0);
    reader = new Snapshot(3, true);
    send(n1, 4);
    await world.run(100);
    expect(sent().at(-1)).toEqual([4_711, false]);
    // Each stream that was admitted told the receiver of its end, as none had its last chunk.
    expect(n2.count('chunksEnded')).toBe(3);
    world.network.pause(n2.member.node, n2.boot);
    send(n1, 5);
    await world.run(1_900);
    expect(sent()).toHaveLength(4);
    await world.run(200);
    expect(sent().at(-1)).toEqual([0, false]);
    world.network.detach(n2.member.node, n2.boot, 'closed');
    send(n1, 6);
    await world.run(100);
    expect(sent()).toHaveLength(6);
    expect(sent().at(-1)).toEqual([0, false]);
  });
});
