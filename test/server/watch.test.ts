/** Watches over a scripted replica, read by a stock client: in order, as fast as it reads, ended as they should be. */
import { Metadata } from '@grpc/grpc-js';
import type { Client, ClientReadableStream, StatusObject } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { failure } from '../../src/base/errors.js';
import type { Domain } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { WatchCall, WatchNews } from '../../src/base/watch.js';
import type { Event } from '../../src/replica/types.js';
import type { ReadWatchMessage } from '../../src/wire/public-watch.js';
import { WATCH_METHOD } from '../../src/wire/public-watch.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import {
  ANSWERING,
  atEnd,
  CALLS,
  clientOf,
  ENDED,
  endAll,
  HEADER,
  LEASE,
  sendBytes,
  sendCall,
  serve,
  until,
} from './kit.js';
import type { Served } from './kit.js';

afterEach(endAll);

const FROM_NOW: WatchCall = { prefix: 'orders/', startRevision: 0 as Revision };
const PROGRESS: WatchNews = { type: 'progress' };

interface Reader {
  readonly stream: ClientReadableStream<ReadWatchMessage>;
  readonly messages: ReadWatchMessage[];
  ended: StatusObject | undefined;
}

function watch(client: Client, call: WatchCall = FROM_NOW, deadline = Infinity): Reader {
  const { path, requestSerialize, responseDeserialize } = WATCH_METHOD;
  const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, call, { deadline });
  const reader: Reader = { stream, messages: [], ended: undefined };
  stream.on('error', () => undefined);
  stream.on('status', (status: StatusObject) => {
    reader.ended = status;
  });
  stream.on('data', (message: ReadWatchMessage) => reader.messages.push(message));
  return reader;
}

/** The number of the one watch that is open, and what happened to it. */
async function opened({ events }: Served): Promise<number> {
  let found: Extract<Event, { type: 'watch' }> | undefined;
  await until('the watch to reach the replica', () => {
    found = events.findLast((event) => event.type === 'watch');
    return found !== undefined;
  });
  return found?.id ?? 0;
}

function count({ events }: Served, type: Event['type']): number {
  return events.filter((event) => event.type === type).length;
}

describe('a watch', () => {
  it('reaches the replica with its principal, and its news the client, one after the other', async () => {
    const served = await serve(ANSWERING);
    const reader = watch(clientOf(served.address), { prefix: 'orders/', startRevision: 7 as Revision });
    const id = await opened(served);
    expect(served.events[0]).toEqual({
      type: 'watch',
      id,
      principal: { name: 'addr:127.0.0.1', authenticated: false },
      call: { prefix: 'orders/', startRevision: 7 },
    });
    const news: readonly WatchNews[] = [
      PROGRESS,
      {
        type: 'events',
        events: [
          { revision: LEASE.token, type: 'granted', lease: LEASE },
          { revision: LEASE.token, type: 'ended', ended: { ...ENDED, lease: LEASE } },
          { revision: LEASE.token, type: 'queueChanged', domain: 'orders/us' as Domain, queueLength: 3 },
        ],
      },
      PROGRESS,
    ];
    for (const [number, each] of news.entries()) {
      served.watches.perform({ type: 'watchNews', id, header: HEADER, news: each });
      await until('it to leave', () => count(served, 'watchReady') === number + 1);
    }
    await until('all messages', () => reader.messages.length === news.length);
    const { domain, token } = LEASE;
    expect(reader.messages[1]?.news).toMatchObject({ events: [{}, { ended: { lease: { domain, token } } }, {}] });
    expect(reader.messages.map(({ news: got }) => got?.type)).toEqual(news.map(({ type }) => type));
    expect(reader.messages.map(({ header }) => header)).toEqual([HEADER, HEADER, HEADER]);
    expect(reader.ended).toBeUndefined();
  });

  it('is closed once when its client goes, and nothing is sent any more', async () => {
    const served = await serve(ANSWERING);
    const reader = watch(clientOf(served.address));
    const id = await opened(served);
    reader.stream.cancel();
    await until('the end', () => count(served, 'watchClosed') === 1);
    expect(served.watches.size).toBe(0);
    served.watches.perform({ type: 'watchNews', id, header: HEADER, news: PROGRESS });
    served.watches.perform({ type: 'watchFailed', id, failure: failure('NO_LEADER', 'late') });
    expect(await sendCall(clientOf(served.address), CALLS.get)).toHaveProperty('response');
    expect([count(served, 'watchClosed'), count(served, 'watchReady')]).toEqual([1, 0]);
    expect(served.reported).toEqual([]);
  });

  it('is closed when its connection breaks, and at its deadline', async () => {
    const served = await serve(ANSWERING);
    const proxy = await TcpProxy.start(served.port);
    atEnd(() => proxy.close());
    watch(clientOf(proxy.address));
    await opened(served);
    proxy.reset();
    const late = watch(clientOf(served.address), FROM_NOW, Date.now() + 200);
    await until('the deadline', () => late.ended !== undefined);
    expect(late.ended?.code).toBe(4);
    await until('both ends', () => count(served, 'watchClosed') === count(served, 'watch'));
    expect(served.watches.size).toBe(0);
  });

  it('that is compacted ends well behind that word', async () => {
    const served = await serve(ANSWERING);
    const reader = watch(clientOf(served.address));
    const id = await opened(served);
    const news: WatchNews = { type: 'compacted', oldest: LEASE.token };
    served.watches.perform({ type: 'watchNews', id, header: HEADER, news });
    await until('the end', () => reader.ended !== undefined && count(served, 'watchClosed') === 1);
    expect(reader.ended?.code).toBe(0);
    expect(reader.messages).toEqual([{ header: HEADER, news }]);
  });

  it('that fails ends behind what was sent, with the trailers of every error', async () => {
    const served = await serve(ANSWERING);
    const reader = watch(clientOf(served.address));
    const id = await opened(served);
    served.watches.perform({ type: 'watchNews', id, header: HEADER, news: PROGRESS });
    served.watches.perform({ type: 'watchFailed', id, failure: failure('NO_LEADER', 'nobody leads') });
    await until('the end', () => reader.ended !== undefined);
    expect(reader.messages).toHaveLength(1);
    expect(reader.ended).toMatchObject({ code: 14, details: 'nobody leads' });
    const metadata = reader.ended?.metadata ?? new Metadata();
    expect([metadata.get('fencepost-reason'), metadata.get('fencepost-outcome')]).toEqual([
      ['NO_LEADER'],
      ['not-done'],
    ]);
    await until('it to be closed', () => count(served, 'watchClosed') === 1);
  });

  it('with faults, or at a node of no history, is refused', async () => {
    const served = await serve(ANSWERING);
    const wrong = watch(clientOf(served.address), { prefix: '\ufffd', startRevision: -1 as Revision });
    await until('the refusal', () => wrong.ended !== undefined);
    expect(wrong.ended).toMatchObject({ code: 3 });
    expect(wrong.ended?.details).toContain('prefix');
    expect(wrong.ended?.details).toContain('start_revision');
    expect(served.events).toEqual([]);
    const bytes = await sendBytes(clientOf(served.address), WATCH_METHOD.path, Buffer.from([0xff]));
    expect(bytes).toMatchObject({ error: { code: 3 } });
    const unformed = watch(clientOf((await serve()).address));
    await until('the refusal', () => unformed.ended !== undefined);
    expect(unformed.ended?.metadata.get('fencepost-reason')).toEqual(['NOT_FORMED']);
  });
});

describe('a client that does not read', () => {
  it('holds up one message and itself, nobody else; the rest comes when it reads', async () => {
    const served = await serve(ANSWERING);
    const slow = watch(clientOf(served.address));
    const id = await opened(served);
    const holder = 'h'.repeat(255);
    const lease = { ...LEASE, holder, metadata: [['k', 'x'.repeat(4_000)]] as const };
    const events = Array.from({ length: 8 }, () => ({ revision: LEASE.token, type: 'granted' as const, lease }));
    slow.stream.pause();
    let sent = 0;
    // Sends whenever one more is taken, until none is any more.
    const feed = (): boolean => {
      if (sent > count(served, 'watchReady')) return false;
      served.watches.perform({ type: 'watchNews', id, header: HEADER, news: { type: 'events', events } });
      sent++;
      return true;
    };
    const other = clientOf(served.address);
    for (let still = 0; still < 50;) {
      still = feed() ? 0 : still + 1;
      await sendCall(other, CALLS.get);
    }
    // What the windows and buffers of both ends take; the table waits for one message, whatever comes.
    expect(sent).toBeLessThan(60);
    expect(count(served, 'watchReady')).toBe(sent - 1);
    slow.stream.resume();
    await until('all that was sent', () => slow.messages.length === sent && count(served, 'watchReady') === sent);
    for (let more = 0; more < 100; more++) {
      await until('it to take one', () => feed());
    }
    await until('all', () => slow.messages.length === sent);
  });

  it('and goes leaves nothing behind', async () => {
    const served = await serve(ANSWERING);
    const readers = Array.from({ length: 20 }, () => watch(clientOf(served.address)));
    await until('all to be open', () => served.watches.size === 20);
    for (const { stream } of readers) stream.pause();
    const events = Array.from({ length: 200 }, () => ({
      revision: LEASE.token,
      type: 'granted' as const,
      lease: LEASE,
    }));
    for (let id = 1; id <= 20; id++) {
      served.watches.perform({ type: 'watchNews', id, header: HEADER, news: { type: 'events', events } });
    }
    for (const { stream } of readers) stream.cancel();
    await until('all ends', () => served.watches.size === 0);
    expect(count(served, 'watchClosed')).toBe(20);
  });
});

describe('close', () => {
  it('of a server whose watches the replica ended does not wait for its grace', async () => {
    const served = await serve(ANSWERING);
    const reader = watch(clientOf(served.address));
    const id = await opened(served);
    served.watches.perform({ type: 'watchFailed', id, failure: failure('SHUTTING_DOWN', 'stops') });
    await served.close(3_600_000);
    await until('the end', () => reader.ended !== undefined);
    expect(reader.ended?.metadata.get('fencepost-reason')).toEqual(['SHUTTING_DOWN']);
  });
});
