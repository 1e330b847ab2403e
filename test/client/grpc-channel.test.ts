/** The real channels against real sockets: a stub of the service, and peers that behave badly. */
import { afterEach, describe, expect, test } from 'vitest';
import { failure } from '../../src/base/errors.js';
import type { Revision } from '../../src/base/revision.js';
import type { Channel } from '../../src/client/channel.js';
import { openGrpcChannel } from '../../src/client/grpc-channel.js';
import { connect } from '../../src/client/index.js';
import { openPipelineChannel } from '../../src/client/pipeline-channel.js';
import type { RequestMessages } from '../../src/wire/public-types.js';
import {
  ACQUIRE,
  cleanUp,
  endAll,
  generously,
  nobody,
  open as openWith,
  send,
  serve,
  silentPeer,
} from './stub-server.js';
import { BASE, header, requestId } from './world.js';

afterEach(endAll);

describe.each([
  ['unary', openGrpcChannel],
  ['pipelined', openPipelineChannel],
])('one %s channel', (_, opener) => {
  const open = (address: string): Channel => openWith(address, opener);

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
    const message = server.calls[0]?.message as RequestMessages['acquire'];
    expect(BigInt(message.seenRevision)).toBe(BigInt(BASE));
    expect(message).toMatchObject({
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
