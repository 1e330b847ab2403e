/** Watching a cluster of real processes: what was acknowledged is seen, each once and in order, whichever node dies. */
import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { credentials, loadPackageDefinition } from '@grpc/grpc-js';
import type { ClientReadableStream, ServiceClientConstructor, ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { describe, expect, it } from 'vitest';
import { connect } from '../../src/client/index.js';
import type { Client, DomainChange, Observation } from '../../src/client/index.js';
import { ProcessCluster, until } from './cluster.js';
import type { ProcessNode } from './cluster.js';

const ROOT = resolve(import.meta.dirname, '../..');

/** What was acknowledged to clients that acquire and release all the time. */
class Load {
  readonly granted = new Map<bigint, string>();
  readonly released = new Set<bigint>();
  readonly #client: Client;
  readonly #workers: Promise<void>[];
  #stopping = false;

  constructor(client: Client) {
    this.#client = client;
    this.#workers = [0, 1, 2, 3].map((worker) => this.#work(worker));
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#workers);
  }

  async #work(worker: number): Promise<void> {
    for (let round = 0; !this.#stopping; round++) {
      const domain = `load/${worker}/${round % 5}`;
      try {
        const lease = await this.#client.acquire(domain, { ttlMs: 30_000, waitMs: 10_000 });
        this.granted.set(lease.token, domain);
        if (await this.#client.release(domain, lease.token)) this.released.add(lease.token);
        await lease.release();
      } catch {
        // Its node died under it; what was not acknowledged may have happened or not.
      }
    }
  }
}

interface Followed {
  readonly told: Observation[];
  readonly changes: () => DomainChange[];
  readonly knows: () => bigint;
  error: unknown;
}

function follow(client: Client, from?: bigint): Followed {
  const told: Observation[] = [];
  const followed: Followed = {
    told,
    changes: () => told.flatMap(({ changes }) => changes),
    knows: () => told.at(-1)?.revision ?? 0n,
    error: undefined,
  };
  const run = async (): Promise<void> => {
    const options = from === undefined ? {} : { from };
    for await (const observation of client.observe('load/', options)) told.push(observation);
  };
  run().catch((error: unknown) => {
    followed.error ??= error;
  });
  return followed;
}

/** A change in one line. */
function line(change: DomainChange): string {
  switch (change.type) {
    case 'granted':
      return `${change.revision} granted ${change.lease.domain}`;
    case 'ended':
      return `${change.revision} ended ${change.domain} ${change.token} ${change.ended.reason}`;
    case 'queueChanged':
      return `${change.revision} queue ${change.domain} ${change.queueLength}`;
  }
}

/** Each grant once, each end once, in the order of revisions, and by turns in each domain. */
function expectComplete(changes: readonly DomainChange[], load: Load): void {
  const live = new Map<string, bigint>();
  const granted = new Set<bigint>();
  const ended = new Set<bigint>();
  let before = 0n;
  for (const change of changes) {
    expect(change.revision >= before, `${line(change)} behind ${before}`).toBe(true);
    before = change.revision;
    if (change.type === 'granted') {
      const { domain, token } = change.lease;
      expect(token).toBe(change.revision);
      expect(live.get(domain), line(change)).toBeUndefined();
      live.set(domain, token);
      granted.add(token);
    } else if (change.type === 'ended') {
      expect(live.get(change.domain), line(change)).toBe(change.token);
      live.delete(change.domain);
      ended.add(change.token);
    }
  }
  for (const [token, domain] of load.granted) expect(granted.has(token), `grant ${token} of ${domain}`).toBe(true);
  for (const token of load.released) expect(ended.has(token), `release of ${token}`).toBe(true);
}

describe('an observer', () => {
  it('sees every acknowledged grant and release once and in order, while one node after the other is killed', async () => {
    await using cluster = await ProcessCluster.started();
    const endpoints = cluster.nodes.map(({ clientAddress }) => clientAddress);
    await using client = connect({ endpoints });
    const followed = [follow(client), follow(client), follow(client)];
    await until('all observers to begin', () => followed.every(({ told }) => told.length > 0));
    const start = followed.map((each) => each.knows() + 1n).sort()[0] ?? 0n;
    const load = new Load(client);
    for (const node of cluster.nodes) {
      const before = load.granted.size;
      await until(
        'some grants',
        () => load.granted.size >= before + 20,
        60_000,
        () => cluster.logs(),
      );
      await cluster.kill(node);
      await cluster.untilLeader();
      const after = load.granted.size;
      await until(
        'grants without it',
        () => load.granted.size >= after + 20,
        60_000,
        () => cluster.logs(),
      );
      cluster.start(node);
      await until(
        'it to be back',
        async () => (await cluster.status(node).catch(() => undefined))?.leader !== undefined,
      );
    }
    await load.stop();
    const last = [...load.granted.keys()].reduce((a, b) => (a > b ? a : b));
    await until('everything to be seen', () => followed.every((each) => each.knows() > last), 60_000);
    expect(load.granted.size).toBeGreaterThan(100);
    for (const each of followed) {
      expect(each.error).toBeUndefined();
      expectComplete(each.changes(), load);
    }
    // One that begins in the past sees the same as those that were there, from a node that was never restarted since.
    const tail = start + (last - start) / 2n;
    const late = follow(client, tail);
    await until('the late one', () => late.knows() > last || late.error !== undefined, 60_000);
    const expected = followed[0]?.changes().filter(({ revision }) => revision >= tail && revision <= last) ?? [];
    if (late.error === undefined) {
      expect(
        late
          .changes()
          .filter(({ revision }) => revision <= last)
          .map(line),
      ).toEqual(expected.map(line));
    } else expect(late.error).toMatchObject({ code: 'COMPACTED' });
  });
});

interface StockMessage {
  readonly header: { readonly revision: string; readonly nodeId: string };
  readonly body: 'events' | 'progress' | 'compacted';
  readonly events?: { readonly events: readonly { readonly revision: string; readonly change: string }[] };
}

/** What anybody makes of the one file with stock tools. */
function stockWatch(node: ProcessNode, request: object): ClientReadableStream<StockMessage> {
  const file = join(ROOT, 'proto/fencepost/v1/lease.proto');
  const loaded = loadPackageDefinition(loadSync(file, { longs: String, oneofs: true }));
  const { LeaseService } = (loaded['fencepost'] as { v1: { LeaseService: ServiceClientConstructor } }).v1;
  const client = new LeaseService(node.clientAddress, credentials.createInsecure());
  const stream = (client as unknown as Record<'Watch', (of: object) => ClientReadableStream<StockMessage>>).Watch(
    request,
  );
  stream.on('close', () => {
    client.close();
  });
  return stream;
}

interface Stock {
  readonly stream: ClientReadableStream<StockMessage>;
  readonly revisions: string[];
  error: ServiceError | undefined;
  last: string;
}

function read(stream: ClientReadableStream<StockMessage>): Stock {
  const stock: Stock = { stream, revisions: [], error: undefined, last: '0' };
  stream.on('data', ({ header, events }: StockMessage) => {
    for (const { revision } of events?.events ?? []) stock.revisions.push(revision);
    stock.last = header.revision;
  });
  stream.on('error', (error: ServiceError) => {
    stock.error = error;
  });
  return stock;
}

describe('a stock client with nothing but lease.proto', () => {
  it('goes on at another node behind the last revision it saw, and is told when its node has lost the others', async () => {
    await using cluster = await ProcessCluster.started();
    const endpoints = cluster.nodes.map(({ clientAddress }) => clientAddress);
    await using client = connect({ endpoints });
    const [first, second, third] = cluster.nodes as [ProcessNode, ProcessNode, ProcessNode];
    const tokens: string[] = [];
    const grant = async (): Promise<void> => {
      tokens.push(String((await client.acquire(`d/${tokens.length}`, { waitMs: 10_000 })).token));
    };
    const before = read(stockWatch(first, { prefix: 'd/' }));
    await until('the first mark', () => before.last !== '0');
    for (let i = 0; i < 5; i++) await grant();
    await until('five grants', () => before.revisions.length === 5);
    await cluster.kill(first);
    await until('the end of the stream', () => before.error !== undefined);
    for (let i = 0; i < 5; i++) await grant();
    const after = read(stockWatch(second, { prefix: 'd/', startRevision: String(BigInt(before.last) + 1n) }));
    for (let i = 0; i < 5; i++) await grant();
    await until('the other grants', () => after.revisions.length >= 10);
    expect([...before.revisions, ...after.revisions]).toEqual(tokens);
    await cluster.kill(third);
    await until('the end of the watch', () => after.error !== undefined);
    expect(after.error?.code).toBe(14);
    expect(after.error?.metadata.get('fencepost-reason')).toEqual(['NO_LEADER']);
  });
});

describe('fencepost watch', () => {
  it('prints changes as they come, ends quietly when nobody reads, and with code 3 when no node serves', async () => {
    await using cluster = await ProcessCluster.started();
    const endpoints = cluster.nodes.map(({ clientAddress }) => clientAddress);
    await using client = connect({ endpoints });
    const watch = (...more: string[]) => {
      const words = ['watch', 'd/', '--json', '--endpoints', endpoints.join(','), ...more];
      const child = spawn(process.execPath, [join(ROOT, 'dist/cli/main.js'), ...words], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const lines: { readonly type?: string; readonly domain?: string; readonly error?: { readonly code: string } }[] =
        [];
      createInterface(child.stdout).on('line', (text) => {
        lines.push(JSON.parse(text) as (typeof lines)[number]);
      });
      const exited = new Promise<number | null>((done) => child.once('exit', done));
      return { child, lines, exited };
    };
    const kept = watch('--timeout-ms', '1000');
    const closed = watch();
    await until('both to watch', () => kept.lines.length > 0 && closed.lines.length > 0);
    await client.acquire('d/1');
    await until('the grant', () => kept.lines.some(({ type, domain }) => type === 'granted' && domain === 'd/1'));
    closed.child.stdout.destroy();
    await client.acquire('d/2');
    expect(await closed.exited).toBe(0);
    await cluster.kill(...cluster.nodes);
    expect(await kept.exited).toBe(3);
    expect(kept.lines.at(-1)).toMatchObject({ error: { code: 'UNREACHABLE' } });
  });
});
