/** The real way to watch, against real sockets: a server that sends what the test says, and peers that behave badly. */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import type { ServerWritableStream } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import type { Header } from '../../src/base/api.js';
import { failure } from '../../src/base/errors.js';
import type { Revision } from '../../src/base/revision.js';
import { openGrpcWatch } from '../../src/client/grpc-watch.js';
import { connect } from '../../src/client/index.js';
import type { OpenedWatch, WatchEnd } from '../../src/client/watch-channel.js';
import { failureToStatus } from '../../src/wire/public-error.js';
import { parseWatch, WATCH_METHOD } from '../../src/wire/public-watch.js';
import type { ReadWatchMessage, UnreadWatch, WatchMessage } from '../../src/wire/public-watch.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { queueChanged } from './watch-world.js';
import { header } from './world.js';

const cleanUp: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end();
});

type Stream = ServerWritableStream<UnreadWatch, WatchMessage>;

async function serve(handler: (stream: Stream) => void): Promise<number> {
  const server = new Server();
  server.addService({ Watch: WATCH_METHOD }, { Watch: handler });
  cleanUp.push(() => {
    server.forceShutdown();
  });
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(error);
    });
  });
}

interface Heard {
  readonly messages: ReadWatchMessage[];
  end: WatchEnd | undefined;
  readonly watch: OpenedWatch;
}

function watch(endpoint: string, startRevision = 7): Heard {
  const messages: ReadWatchMessage[] = [];
  const heard: Heard = {
    messages,
    end: undefined,
    watch: openGrpcWatch(
      endpoint,
      { prefix: 'orders/', startRevision: startRevision as Revision },
      {
        message: (message) => messages.push(message),
        end: (end) => {
          if (heard.end !== undefined) throw new Error('a watch ended twice');
          heard.end = end;
        },
      },
    ),
  };
  cleanUp.push(() => {
    heard.watch.close();
  });
  return heard;
}

async function until(what: string, condition: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`not within 20 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const at = (revision: number): Header => header({ revision: revision as Revision });

describe('a watch over gRPC', () => {
  it('asks for what it should, hears every message, and the end', async () => {
    const asked: unknown[] = [];
    const port = await serve((stream) => {
      asked.push(parseWatch(stream.request));
      stream.write({ header: at(7), news: { type: 'progress' } });
      stream.write({ header: at(9), news: { type: 'events', events: [queueChanged(8), queueChanged(9)] } });
      stream.write({ header: at(9), news: { type: 'compacted', oldest: 20 as Revision } });
      stream.end();
    });
    const heard = watch(`127.0.0.1:${port}`);
    await until('the end', () => heard.end !== undefined);
    expect(heard.end).toEqual({ type: 'ended' });
    expect(asked).toEqual([{ ok: { prefix: 'orders/', startRevision: 7 } }]);
    expect(heard.messages.map(({ header: { revision }, news }) => [revision, news?.type])).toEqual([
      [7, 'progress'],
      [9, 'events'],
      [9, 'compacted'],
    ]);
  });

  it('tells a failure with its reason, behind what was said before', async () => {
    const port = await serve((stream) => {
      const { code, message, trailers } = failureToStatus(failure('NO_LEADER', 'nobody leads'));
      const metadata = new Metadata();
      for (const [key, value] of trailers) metadata.set(key, typeof value === 'string' ? value : Buffer.from(value));
      stream.emit('error', { code, details: message, metadata });
    });
    const heard = watch(`127.0.0.1:${port}`);
    await until('the end', () => heard.end !== undefined);
    expect(heard.end).toMatchObject({ type: 'failure', failure: { reason: 'NO_LEADER' }, retryDelayMs: 200 });
  });

  it('says what is wrong with a peer: none, a silent one, a foreign one, one that breaks', async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const { port: nobody } = gone.address() as AddressInfo;
    await new Promise((resolve) => gone.close(resolve));
    const refused = watch(`127.0.0.1:${nobody}`);
    await until('the refusal', () => refused.end !== undefined);
    expect(refused.end).toMatchObject({ type: 'silent', why: 'connection refused' });

    const sockets: Socket[] = [];
    const mute = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      sockets.push(socket);
    });
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    cleanUp.push(() => {
      for (const socket of sockets) socket.destroy();
      mute.close();
    });
    const silent = watch(`127.0.0.1:${(mute.address() as AddressInfo).port}`);
    await until('the end', () => silent.end !== undefined);
    expect(silent.end).toMatchObject({ type: 'silent', reached: false });

    const other = new Server();
    cleanUp.push(() => {
      other.forceShutdown();
    });
    const foreign = await new Promise<number>((resolve, reject) => {
      other.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
        if (error === null) resolve(port);
        else reject(error);
      });
    });
    const elsewhere = watch(`127.0.0.1:${foreign}`);
    await until('the end', () => elsewhere.end !== undefined);
    expect(elsewhere.end).toMatchObject({ type: 'foreign' });

    const port = await serve((stream) => {
      stream.write({ header: at(7), news: { type: 'progress' } });
    });
    const proxy = await TcpProxy.start(port);
    cleanUp.push(() => proxy.close());
    const broken = watch(proxy.address);
    await until('the first mark', () => broken.messages.length === 1);
    proxy.reset();
    await until('the end', () => broken.end !== undefined);
    expect(broken.end).toMatchObject({ type: 'silent', reached: true });
  });

  it('that is paused leaves what it does not read at the server; closed it hears nothing more', async () => {
    let taken = 0;
    let over = false;
    const events = Array.from({ length: 200 }, () => queueChanged(9));
    const port = await serve((stream) => {
      stream.on('cancelled', () => {
        over = true;
      });
      const send = (): void => {
        if (over) return;
        stream.write({ header: at(9), news: { type: 'events', events } }, () => {
          taken++;
          setImmediate(send);
        });
      };
      send();
    });
    const heard = watch(`127.0.0.1:${port}`);
    heard.watch.pause();
    let before = -1;
    await until('the server to be held up', () => {
      const still = before === taken && taken > 0;
      before = taken;
      return still;
    });
    const heldAt = heard.messages.length;
    heard.watch.resume();
    await until('it to go on', () => heard.messages.length > heldAt + 100);
    heard.watch.close();
    const closedAt = heard.messages.length;
    await until('the server to hear of it', () => over);
    expect(heard.messages.length).toBe(closedAt);
    expect(heard.end).toBeUndefined();
  });
});

describe('observe over gRPC', () => {
  it('goes past a refusing and a silent endpoint', async () => {
    const port = await serve((stream) => {
      stream.write({ header: at(7), news: { type: 'progress' } });
    });
    const mute = await TcpProxy.start(port);
    mute.silence();
    cleanUp.push(() => mute.close());
    const client = connect({ endpoints: ['127.0.0.1:1', mute.address, `127.0.0.1:${port}`] });
    cleanUp.push(() => client.close());
    for (let i = 0; i < 4; i++) {
      for await (const { revision } of client.observe()) {
        expect(revision).toBe(7n);
        break;
      }
    }
  });
});
