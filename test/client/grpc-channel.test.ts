/** The real channel against real sockets: a stub of the service, and peers that behave badly. */
import { createServer } from 'node:net';
import type { AddressInfo, Server as TcpServer, Socket } from 'node:net';
import { Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import type { ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import type { AcquireCall, Call } from '../../src/base/api.js';
import { failure } from '../../src/base/errors.js';
import type { Failure } from '../../src/base/errors.js';
import type { Domain, NodeId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { connect } from '../../src/client/index.js';
import { openGrpcChannel } from '../../src/client/grpc-channel.js';
import type { Channel, Reply } from '../../src/client/channel.js';
import { failureToStatus } from '../../src/wire/public-error.js';
import { LEASE_SERVICE } from '../../src/wire/public.js';
import type { WireRequest } from '../../src/wire/public-types.js';
import type { PublicResponse } from '../../src/wire/public-answer.js';
import { BASE, generous, header, requestId } from './world.js';

const cleanUp: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end();
});

type Handler = (request: WireRequest) => PublicResponse | Failure | undefined;

/** A server of the lease service; `undefined` from the handler means that it never answers. */
async function serve(handler: Handler): Promise<{ address: string; calls: WireRequest[]; stop: () => void }> {
  const server = new Server();
  const calls: WireRequest[] = [];
  const unary = (
    { request }: ServerUnaryCall<WireRequest, PublicResponse>,
    done: sendUnaryData<PublicResponse>,
  ): void => {
    calls.push(request);
    const said = handler(request);
    if (said === undefined) return;
    if (!('reason' in said)) {
      done(null, said);
      return;
    }
    const status = failureToStatus(said);
    const metadata = new Metadata();
    for (const [key, value] of status.trailers)
      metadata.add(key, typeof value === 'string' ? value : Buffer.from(value));
    done(Object.assign(new Error(status.message), { code: status.code, details: status.message, metadata }));
  };
  const methods = Object.keys(LEASE_SERVICE);
  server.addService(LEASE_SERVICE, Object.fromEntries(methods.map((name) => [name, unary])));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  const stop = (): void => {
    server.forceShutdown();
  };
  cleanUp.push(stop);
  return { address: `127.0.0.1:${port}`, calls, stop };
}

/** Accepts connections and never says a word. */
async function silentPeer(): Promise<{ address: string; accepted: () => number }> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  const server: TcpServer = createServer((socket) => {
    accepted++;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUp.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, accepted: () => accepted };
}

/** An address at which nobody listens. */
async function nobody(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

function open(address: string): Channel {
  const channel = openGrpcChannel(address);
  cleanUp.push(() => {
    channel.close();
  });
  return channel;
}

function send(channel: Channel, call: Call, timeoutMs: number): Promise<Reply> {
  return new Promise((resolve) => {
    channel.send(call, timeoutMs, resolve);
  });
}

const ACQUIRE: AcquireCall = {
  type: 'acquire',
  domain: 'orders/eu' as Domain,
  requestId: requestId(1),
  holder: 'tester',
  ttlMs: 15_000,
  waitMs: 60_000,
  coolDownMs: 2_000,
  slots: 3,
  metadata: [['zone', 'ü']],
  seenRevision: BASE as Revision,
};

/** What `generous` answers, as a server's response. */
function generously(node = 'n1', leader = 'n1'): Handler {
  const answer = generous();
  return (request) => {
    const reply = answer({ call: callOf(request) });
    if (reply.type !== 'answer') throw new Error(`no answer to ${request.type}`);
    return { header: header({ node: node as NodeId, leader: leader as NodeId }), answer: reply.answer, version: '' };
  };
}

/** Enough of a request's call for `generous`. */
function callOf(request: WireRequest): Call {
  const { message } = request;
  if (message === undefined) throw new Error('unreadable request');
  return { type: request.type, ...message } as unknown as Call;
}

describe('one channel', () => {
  test('a call and its answer, tokens whole', async () => {
    const token = 2 ** 53 - 1;
    const server = await serve(() => ({
      header: header(),
      version: '',
      answer: {
        type: 'acquire',
        requestId: requestId(1),
        outcome: {
          type: 'granted',
          lease: {
            domain: ACQUIRE.domain,
            token: token as Revision,
            holder: 'tester',
            metadata: [['zone', 'ü']],
            ttlMs: 15_000,
            grantedAtUnixMs: 5,
          },
        },
      },
    }));
    const reply = await send(open(server.address), ACQUIRE, 5_000);
    expect(reply).toMatchObject({
      type: 'answer',
      header: header(),
      answer: { outcome: { type: 'granted', lease: { token, metadata: [['zone', 'ü']] } } },
    });
    expect(server.calls[0]?.message).toMatchObject({
      seenRevision: BigInt(BASE),
      requestId: requestId(1),
      ttlMs: 15_000,
    });
  });

  test('an error with its trailers', async () => {
    const server = await serve(() => failure('REQUEST_TOO_OLD', 'too old', { revision: BASE + 5 }));
    expect(await send(open(server.address), ACQUIRE, 5_000)).toEqual({
      type: 'failure',
      failure: { reason: 'REQUEST_TOO_OLD', message: 'too old', outcome: 'unknown', revision: BASE + 5 },
      retryDelayMs: 0,
    });
    const overloaded = await serve(() => failure('OVERLOADED', 'busy'));
    expect(await send(open(overloaded.address), ACQUIRE, 5_000)).toMatchObject({
      failure: { reason: 'OVERLOADED', outcome: 'not-done' },
      retryDelayMs: 100,
    });
  });

  test('a method that the server does not have', async () => {
    const server = await serve(() => undefined);
    expect(await send(open(server.address), { type: 'getStatus' }, 5_000)).toMatchObject({ type: 'foreign' });
  });

  test('nobody listens: not reached, at once, in plain words', async () => {
    expect(await send(open(await nobody()), ACQUIRE, 20_000)).toEqual({
      type: 'silent',
      reached: false,
      why: 'connection refused',
    });
    expect(await send(open('nobody.invalid:7'), ACQUIRE, 20_000)).toMatchObject({ type: 'silent', reached: false });
  });

  test('a peer that accepts and stays silent: silent after a second, and the next call connects anew', async () => {
    const peer = await silentPeer();
    const channel = open(peer.address);
    const reply = await send(channel, ACQUIRE, 20_000);
    expect(reply).toEqual({ type: 'silent', reached: false, why: 'no connection within 1000 ms' });
    await send(channel, ACQUIRE, 20_000);
    expect(peer.accepted()).toBe(2);
  });

  test('a server that never answers: silent at the deadline', async () => {
    const server = await serve(() => undefined);
    expect(await send(open(server.address), ACQUIRE, 300)).toEqual({
      type: 'silent',
      reached: true,
      why: 'no answer within 300 ms',
    });
  });

  test('a connection that breaks under a call: it may have been reached; the next call was not', async () => {
    let got: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => {
      got = resolve;
    });
    const server = await serve(() => {
      got();
      return undefined;
    });
    const channel = open(server.address);
    const reply = send(channel, ACQUIRE, 5_000);
    await arrived;
    server.stop();
    expect(await reply).toEqual({ type: 'silent', reached: true, why: 'the connection broke' });
    expect(await send(channel, ACQUIRE, 5_000)).toEqual({ type: 'silent', reached: false, why: 'connection refused' });
  });

  test('giving up tells whether the call may have been reached', async () => {
    let got: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => {
      got = resolve;
    });
    const server = await serve(() => {
      got();
      return undefined;
    });
    const giveUp = open(server.address).send(ACQUIRE, 5_000, () => undefined);
    await arrived;
    expect(giveUp()).toBe(true);
    const peer = await silentPeer();
    expect(open(peer.address).send(ACQUIRE, 5_000, () => undefined)()).toBe(false);
  });

  test('a server that stops: silent, and it is found again when it is back at its port', async () => {
    const server = await serve(generously());
    const channel = open(server.address);
    expect((await send(channel, ACQUIRE, 5_000)).type).toBe('answer');
    server.stop();
    expect((await send(channel, ACQUIRE, 5_000)).type).toBe('silent');
  });
});

describe('connect', () => {
  test('goes past a silent and a refusing endpoint, and direct to the leader', async () => {
    const follower = await serve(generously('n1', 'n2'));
    const leader = await serve(generously('n2', 'n2'));
    const silent = await silentPeer();
    const client = connect({ endpoints: [silent.address, await nobody(), follower.address, leader.address] });
    cleanUp.push(() => client.close());
    const lease = await client.acquire('orders/eu', { ttlMs: 15_000 });
    expect(lease.isHeld()).toBe(true);
    await lease.release();
    const before = follower.calls.length;
    for (let n = 0; n < 5; n++) await client.get('orders/eu');
    // At most one call on the way to the leader that is not at it yet.
    expect(follower.calls.length - before).toBeLessThanOrEqual(1);
    expect(leader.calls.length).toBeGreaterThanOrEqual(4);
  });

  test('an error is thrown with code, outcome and the node’s words', async () => {
    const server = await serve(() => failure('INVALID_REQUEST', 'ttl_ms must be at least 3000'));
    const client = connect({ endpoints: [server.address] });
    cleanUp.push(() => client.close());
    await expect(client.acquire('d', { ttlMs: 5 })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      outcome: 'not-done',
      retryable: false,
      message: expect.stringContaining('ttl_ms must be at least 3000') as string,
    });
  });
});
