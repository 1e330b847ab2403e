/** A server that closes ends: whatever clients do, and not before open calls had their time. */
import { connect as connectTcp } from 'node:net';
import { connect as connectHttp2 } from 'node:http2';
import { afterEach, describe, expect, it } from 'vitest';
import { CallTable } from '../../src/server/call-table.js';
import { createClientServer } from '../../src/server/client-server.js';
import type { ClientServer } from '../../src/server/client-server.js';
import {
  ANSWERING,
  atEnd,
  CALLS,
  clientOf,
  contextOf,
  endAll,
  HEADER,
  sendCall,
  serve,
  SILENT,
  until,
  watchHealth,
} from './kit.js';
import { openReflection } from './reflection-client.js';
import { domainAnswer } from '../support/answers.js';

afterEach(endAll);

/** Longer than a test may take: what ends before it did not wait for it. */
const NEVER_MS = 3_600_000;

/** A server that does not listen yet. */
function serverAt(address: string): ClientServer {
  return createClientServer(address, contextOf(new CallTable()), () => undefined);
}

describe('close', () => {
  it('of a server without connections ends at once, and frees the port', async () => {
    const served = await serve(ANSWERING);
    await served.close(NEVER_MS);
    const again = await serve(ANSWERING, served.address);
    expect(again.port).toBe(served.port);
    expect(await sendCall(clientOf(again.address), CALLS.get)).toHaveProperty('response');
  });

  it('does not wait for idle connections: of gRPC, of HTTP/2 and of nothing yet', async () => {
    const served = await serve(ANSWERING);
    await sendCall(clientOf(served.address), CALLS.get);
    const session = connectHttp2(`http://${served.address}`);
    session.on('error', () => undefined);
    const socket = connectTcp(served.port, '127.0.0.1');
    atEnd(() => {
      session.destroy();
      socket.destroy();
    });
    let closed = 0;
    session.on('close', () => closed++);
    socket.on('error', () => undefined).on('close', () => closed++);
    socket.resume();
    await Promise.all([
      new Promise((resolve) => session.once('remoteSettings', resolve)),
      new Promise((resolve) => socket.once('connect', resolve)),
    ]);
    // One more round trip: the server has taken what came before it.
    await sendCall(clientOf(served.address), CALLS.get);
    await served.close(NEVER_MS);
    await until('both connections are closed', () => closed === 2);
  });

  it('lets an open call end, takes no new connection, and waits no longer than the call', async () => {
    const served = await serve(SILENT);
    const ended = sendCall(clientOf(served.address), CALLS.get);
    await until('the call is open', () => served.calls.size === 1);
    const closing = served.close(NEVER_MS);
    const late = await sendCall(clientOf(served.address), CALLS.get, { deadline: Date.now() + 5_000 });
    expect(late).toMatchObject({ error: { code: 14 } });
    served.calls.answer(1, HEADER, {
      type: 'answer',
      answer: domainAnswer(CALLS.get.domain),
      revision: HEADER.revision,
    });
    expect(await ended).toHaveProperty('response');
    await closing;
  });

  it('ends a call that does not end, after its time, and cancels it at the replica', async () => {
    const served = await serve(SILENT);
    const ended = sendCall(clientOf(served.address), CALLS.get);
    await until('the call is open', () => served.calls.size === 1);
    await served.close(50);
    expect(await ended).toHaveProperty('error');
    await until('the cancel', () => served.calls.size === 0);
    expect(served.events.map(({ type }) => type)).toEqual(['call', 'cancel']);
  });

  it('ends streams of health and reflection after its time', async () => {
    const served = await serve(ANSWERING);
    const watched = watchHealth(clientOf(served.address), '');
    const reflection = openReflection(clientOf(served.address), 'v1');
    await reflection.ask({ listServices: '' });
    await until('the first status', () => watched.seen.length === 1);
    await served.close(50);
    await until('the watch ended', watched.ended);
    await expect(reflection.ask({ listServices: '' })).rejects.toThrow();
  });

  it('ends a client that never ends its request', async () => {
    const served = await serve(ANSWERING);
    const session = connectHttp2(`http://${served.address}`);
    session.on('error', () => undefined);
    atEnd(() => {
      session.destroy();
    });
    const stream = session.request({
      ':method': 'POST',
      ':path': '/fencepost.v1.LeaseService/Get',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => undefined);
    await new Promise((resolve) => session.once('remoteSettings', resolve));
    await served.close(50);
    await until('the connection is closed', () => session.closed || session.destroyed);
  });

  it('of a server that never listened, or could not, ends', async () => {
    const served = await serve(ANSWERING);
    const never = serverAt('127.0.0.1:0');
    await never.close(NEVER_MS);
    const refused = serverAt(served.address);
    await expect(refused.listen()).rejects.toThrow('is in use');
    await refused.close(NEVER_MS);
  });

  it('that overtakes listening leaves no port held', async () => {
    const served = await serve(ANSWERING);
    await served.close(NEVER_MS);
    const server = serverAt(served.address);
    const listening = server.listen();
    await server.close(NEVER_MS);
    await listening;
    expect((await serve(ANSWERING, served.address)).port).toBe(served.port);
  });

  it('leaves nothing for health to stumble over', async () => {
    const served = await serve(ANSWERING);
    const watched = watchHealth(clientOf(served.address), '');
    await until('the first status', () => watched.seen.length === 1);
    await served.close(0);
    served.server.setServing(true);
    served.server.setServing(false);
    expect(watched.seen).toHaveLength(1);
  });
});
