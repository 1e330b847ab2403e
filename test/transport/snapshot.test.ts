import { afterEach, describe, expect, test } from 'vitest';
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { SnapshotMeta } from '../../src/raft/types.js';
import type { SnapshotReader } from '../../src/replica/ports.js';
import type { SnapshotChunk } from '../../src/replica/types.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import {
  addresses,
  addressOf,
  closeAll,
  closeLater,
  cluster,
  member,
  pause,
  redirect,
  TestNode,
  track,
  until,
} from './harness.js';
import { STATE_LIMITS } from '../../src/base/limits.js';

afterEach(closeAll);

const meta: SnapshotMeta = {
  index: 4_711,
  term: 3,
  configuration: { voters: [member('n1'), member('n2')], outgoing: [], learners: [] },
  configurationIndex: 0,
};

type Piece = Omit<SnapshotChunk, 'term' | 'request' | 'sequence'>;

/** A snapshot of `count` chunks of about 256 KiB, each with a record that names it. */
class Snapshot implements SnapshotReader {
  readonly #count: number;
  readonly #ragged: boolean;
  read = 0;
  closed = 0;

  /** `ragged`: ends without the last chunk, as only a defect does. */
  constructor(count: number, ragged = false) {
    this.#count = count;
    this.#ragged = ragged;
  }

  next(): Promise<Piece | undefined> {
    if (this.read === this.#count) return Promise.resolve(undefined);
    this.read += 1;
    const records = Array.from({ length: 64 }, (_, at) => ({
      type: 'domain' as const,
      domain: `chunk-${this.read}-${at}` as Domain,
      lease: {
        domain: `chunk-${this.read}-${at}` as Domain,
        token: (1_000 + this.read) as Revision,
        requestId: '00000000-0000-4000-8000-000000000000' as RequestId,
        holder: 'h',
        metadata: [['k', 'x'.repeat(4_000)]] as const,
        ttlMs: 15_000,
        coolDownMs: 0,
        grantedAtUnixMs: 1,
        owner: '',
        principal: 'p',
        version: 0,
        checkpointLeftMs: undefined,
      },
    }));
    return Promise.resolve({
      meta,
      summary: { forgotten: 0 as Revision, holding: false, limits: STATE_LIMITS },
      records,
      total:
        this.read === this.#count && !this.#ragged ? { count: 64 * this.#count, digest: 'd'.repeat(16) } : undefined,
    });
  }

  close(): Promise<void> {
    this.closed += 1;
    return Promise.resolve();
  }
}

/** n1 sends, n2 receives; `staging` decides when a chunk is durable at n2. */
async function transfer(
  snapshot: SnapshotReader | (() => SnapshotReader),
  staging: (node: TestNode, chunk: SnapshotChunk) => void,
): Promise<{ readonly n1: TestNode; readonly n2: TestNode; readonly chunks: () => SnapshotChunk[] }> {
  const nodes: TestNode[] = [];
  const [n1, n2] = (await cluster(['n1', 'n2'], {
    n1: { openSnapshot: () => (typeof snapshot === 'function' ? snapshot() : snapshot) },
    n2: {
      onEvent: (event) => {
        const n2 = nodes[1];
        if (event.type === 'chunk' && n2 !== undefined) staging(n2, event.chunk);
      },
    },
  })) as [TestNode, TestNode];
  nodes.push(n1, n2);
  return { n1, n2, chunks: () => n2.all('chunk').map(({ chunk }) => chunk) };
}

const staged = (node: TestNode, { request, sequence }: SnapshotChunk): void => {
  setImmediate(() => {
    node.transport.chunkStaged(request, sequence);
  });
};
const send = (n1: TestNode, request: number, to = member('n2')): void => {
  n1.transport.perform({ type: 'sendSnapshot', to, term: 3, request });
};
const sent = (n1: TestNode) => until('the end is told', () => n1.all('snapshotSent')[0]);

test('several megabytes arrive whole, in order, and end when the receiver has decided', async () => {
  const snapshot = new Snapshot(20);
  const { n1, n2, chunks } = await transfer(snapshot, staged);
  send(n1, 1);
  await until('the last chunk has come', () => chunks().at(-1)?.total !== undefined);
  expect(chunks().map(({ sequence, term, request }) => [sequence, term, request])).toEqual(
    Array.from({ length: 20 }, (_, at) => [at, 3, 1]),
  );
  for (const [at, { records, meta: each }] of chunks().entries()) {
    expect(each).toEqual(meta);
    expect(records).toHaveLength(64);
    expect(records[0]?.type === 'domain' ? records[0].domain : '').toBe(`chunk-${at + 1}-0`);
  }
  expect(n2.all('chunk').every(({ from }) => from.node === 'n1' && from.directory === n1.self.directory)).toBe(true);
  expect(n1.all('snapshotSent')).toEqual([]);
  n2.transport.perform({ type: 'chunksDone', from: n1.self, request: 1 });
  expect(await sent(n1)).toEqual({ type: 'snapshotSent', to: member('n2'), index: 4_711, ok: true });
  await until('the reader is closed', () => snapshot.closed === 1);
  expect(n2.all('chunksEnded')).toEqual([]);
});

test('the sender does not run ahead of a receiver that stages slowly', async () => {
  const snapshot = new Snapshot(200);
  const waiting: SnapshotChunk[] = [];
  const { n1, n2, chunks } = await transfer(snapshot, (_node, chunk) => waiting.push(chunk));
  send(n1, 1);
  await until('a chunk has come', () => chunks().length === 1);
  // Whatever gRPC and the sockets take ahead is taken now: until nothing moves.
  let before = -1;
  while (before !== snapshot.read) {
    before = snapshot.read;
    await pause(300);
  }
  expect(chunks()).toHaveLength(1);
  expect(snapshot.read).toBeLessThan(100);
  const [chunk] = waiting;
  if (chunk === undefined) throw new Error('no chunk waits');
  n2.transport.chunkStaged(chunk.request, chunk.sequence + 1);
  n2.transport.chunkStaged(chunk.request + 1, chunk.sequence);
  await pause(50);
  expect(chunks()).toHaveLength(1);
  n2.transport.chunkStaged(chunk.request, chunk.sequence);
  await until('the next chunk has come', () => chunks().length === 2);
});

test('an abort ends the transfer without a report; the receiver is told', async () => {
  const snapshot = new Snapshot(200);
  const { n1, n2, chunks } = await transfer(snapshot, (node, chunk) => {
    if (chunk.sequence < 3) staged(node, chunk);
  });
  send(n1, 1);
  await until('some chunks have come', () => chunks().length === 4);
  n1.transport.perform({ type: 'abortSnapshot', to: member('n2') });
  await until('the receiver knows', () => n2.all('chunksEnded').length === 1);
  await until('the reader is closed', () => snapshot.closed === 1);
  expect(n2.all('chunksEnded')[0]?.from).toEqual(n1.self);
  expect(n1.all('snapshotSent')).toEqual([]);
});

test('a new transfer to a follower takes the place of the one under way', async () => {
  const { n1, n2, chunks } = await transfer(
    () => new Snapshot(5),
    (node, chunk) => {
      if (chunk.request === 2) staged(node, chunk);
    },
  );
  send(n1, 1);
  await until('a chunk of the first has come', () => chunks().length === 1);
  n1.transport.perform({ type: 'abortSnapshot', to: member('n2') });
  send(n1, 2);
  await until('the second goes on', () => chunks().some(({ request }) => request === 2));
  const order = n2.events.flatMap((event) =>
    event.type === 'chunk' ? [`chunk of ${event.chunk.request}`] : event.type === 'chunksEnded' ? ['ended'] : [],
  );
  expect(order.slice(0, 3)).toEqual(['chunk of 1', 'ended', 'chunk of 2']);
});

test('a refusal reaches the sender with its reason', async () => {
  const snapshot = new Snapshot(50);
  const { n1, n2 } = await transfer(snapshot, (node, chunk) => {
    if (chunk.sequence < 2) staged(node, chunk);
    else node.transport.perform({ type: 'refuseChunks', from: member('n1'), reason: 'an old term' });
  });
  send(n1, 1);
  expect(await sent(n1)).toEqual({ type: 'snapshotSent', to: member('n2'), index: 4_711, ok: false });
  expect(
    String(n1.lines.find(({ message }) => message.startsWith('a snapshot was not taken'))?.fields['reason']),
  ).toContain('an old term');
  await until('the reader is closed', () => snapshot.closed === 1);
  expect(n2.all('chunksEnded')).toEqual([]);
});

describe('transfers that fail', () => {
  test('the receiver stops', async () => {
    const snapshot = new Snapshot(200);
    const { n1, n2, chunks } = await transfer(snapshot, (node, chunk) => {
      if (chunk.sequence < 3) staged(node, chunk);
    });
    send(n1, 1);
    await until('some chunks have come', () => chunks().length === 4);
    await n2.transport.close();
    expect((await sent(n1)).ok).toBe(false);
    await until('the reader is closed', () => snapshot.closed === 1);
  });

  test('the connection is reset', async () => {
    const list = await addresses('n1', 'n2');
    const proxy = closeLater(await TcpProxy.start(Number(addressOf(list, 'n2').split(':')[1])));
    const snapshot = new Snapshot(200);
    const n2 = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
    const n1 = track(
      new TestNode('n1', addressOf(list, 'n1'), redirect(list, 'n2', proxy.address), { openSnapshot: () => snapshot }),
    );
    await n1.start();
    send(n1, 1);
    await until('a chunk has come', () => n2.all('chunk').length === 1);
    proxy.reset();
    expect((await sent(n1)).ok).toBe(false);
    await until('the receiver knows', () => n2.all('chunksEnded').length === 1);
    await until('the reader is closed', () => snapshot.closed === 1);
  });

  test('nobody listens; the follower runs with another directory; the snapshot has no end; it cannot be opened', async () => {
    const list = await addresses('n1', 'n2');
    let reader = new Snapshot(3);
    const n1 = track(new TestNode('n1', addressOf(list, 'n1'), list, { openSnapshot: () => reader }));
    await n1.start();
    send(n1, 1);
    expect(await sent(n1)).toMatchObject({ index: 0, ok: false });
    expect(reader.read).toBe(0);

    const n2 = track(
      await new TestNode('n2', addressOf(list, 'n2'), list, {
        onEvent: (event) => {
          if (event.type === 'chunk') staged(n2, event.chunk);
        },
      }).start(),
    );
    const reasons = async (count: number): Promise<string> => {
      await until('the end is told', () => n1.all('snapshotSent').length === count);
      return String(
        n1.lines.findLast(({ message }) => message.startsWith('a snapshot was not taken'))?.fields['reason'],
      );
    };
    send(n1, 2, member('n2', 9));
    expect(await reasons(2)).toContain(`node n2 runs with directory ${n2.self.directory}`);
    reader = new Snapshot(3, true);
    send(n1, 3);
    expect(await reasons(3)).toContain('without its last chunk');
    await until('the receiver knows', () => n2.all('chunksEnded').length === 1);
    expect(reader.closed).toBe(1);
  });

  test('no address, or no incarnation yet', async () => {
    const [n1] = (await cluster(['n1'])) as [TestNode];
    send(n1, 1);
    expect(await sent(n1)).toEqual({ type: 'snapshotSent', to: member('n2'), index: 0, ok: false });
  });
});
