/** Streams: judged at their start, and each of their messages by the guard. */
import { Client, credentials, Metadata, Server, status } from '@grpc/grpc-js';
import type { ServerDuplexStream, ServiceError } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fencingInterceptor, fencingMetadata, grpcFencing, outcomeFrom } from '../../src/guard/grpc.js';
import type { FencedLease } from '../../src/guard/grpc.js';
import { memoryFence } from '../../src/guard/memory.js';
import { CODEC, listening, METHOD } from '../servers/grpc.js';
import type { Message } from '../servers/grpc.js';

type Stream = ServerDuplexStream<Message, Message>;

const LEASE: FencedLease = { domain: 'a', token: 5n, cluster: 'prod', incarnation: 'one' };

let texts: string[];
let received: Metadata | undefined;
let guard: ReturnType<typeof memoryFence<string[]>>;
let server: Server;
let client: Client;

beforeEach(async () => {
  texts = [];
  guard = memoryFence(texts);
  const fencing = grpcFencing<Stream>({ domains: () => 'a', guard });
  const add = async (call: Stream): Promise<void> => {
    received = call.metadata;
    const leases = await fencing.admit(call);
    for await (const { text } of call.iterator({ destroyOnReturn: false }) as AsyncIterable<Message>) {
      const outcome = await guard.run(leases, (act) => act((owned) => owned.push(text)));
      call.write({ text: String(fencing.valueOf(outcome, leases)) });
    }
    call.end();
  };
  server = new Server();
  server.addService(
    { Do: { path: METHOD, requestStream: true, responseStream: true, ...CODEC } },
    {
      Do: (call: Stream) => {
        add(call).catch((error: unknown) => call.emit('error', error));
      },
    },
  );
  client = new Client(await listening(server), credentials.createInsecure());
});
afterEach(() => {
  client.close();
  server.forceShutdown();
});

function open(metadata: Metadata, leases: readonly FencedLease[] = []) {
  const interceptors = leases.length === 0 ? [] : [fencingInterceptor(leases)];
  const stream = client.makeBidiStreamRequest<Message, Message>(
    METHOD,
    CODEC.requestSerialize,
    CODEC.responseDeserialize,
    metadata,
    { interceptors },
  );
  const failure = new Promise<ServiceError>((done) =>
    stream.on('error', (error) => {
      done(error as ServiceError);
    }),
  );
  const ask = (text: string): Promise<string> =>
    new Promise((done) => {
      stream.once('data', (message: Message) => {
        done(message.text);
      });
      stream.write({ text });
    });
  return { stream, failure, ask };
}

describe('a stream', () => {
  it('goes on until a message comes too late', async () => {
    const { stream, failure, ask } = open(fencingMetadata(LEASE));
    expect(await ask('first')).toBe('1');
    expect(await ask('second')).toBe('2');
    await guard.open({ ...LEASE, token: 6n });
    stream.write({ text: 'late' });
    stream.write({ text: 'later' });
    const error = await failure;
    expect(error.code).toBe(status.FAILED_PRECONDITION);
    expect(outcomeFrom(error)).toEqual({ status: 'stale', fence: 6n });
    expect(texts).toEqual(['first', 'second']);
  });

  it('is refused at its start', async () => {
    guard.reset({ ...LEASE, token: 6n });
    expect(outcomeFrom(await open(fencingMetadata(LEASE)).failure)).toEqual({ status: 'stale', fence: 6n });
    const plain = await open(new Metadata()).failure;
    expect([plain.code, outcomeFrom(plain)]).toEqual([status.INVALID_ARGUMENT, undefined]);
    expect(texts).toEqual([]);
  });
});

describe('the interceptor', () => {
  it('presents its leases, in place of others, and leaves other metadata alone', async () => {
    const metadata = fencingMetadata({ ...LEASE, token: 1n });
    metadata.set('mine', 'yes');
    const { ask, stream } = open(metadata, [LEASE]);
    expect(await ask('first')).toBe('1');
    stream.end();
    expect([received?.get('fencing-token'), received?.get('mine')]).toEqual([['5'], ['yes']]);
    expect(metadata.get('fencing-token')).toEqual(['1']);
  });

  it('is refused for what is no lease', () => {
    expect(() => fencingInterceptor({ ...LEASE, token: 0n })).toThrow('not a lease: token must be');
    expect(() => fencingInterceptor([])).toThrow('an operation needs one at least');
  });
});
