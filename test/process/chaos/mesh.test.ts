import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../cluster.js';

it('the end of a connection that came while the network was cut is delivered when it heals', async () => {
  const accepted: Socket[] = [];
  const server = createServer((socket) => accepted.push(socket.on('error', () => undefined))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = await TcpProxy.start((server.address() as AddressInfo).port);
  const clients = [0, 1].map(() => connect(proxy.port, '127.0.0.1'));
  const ended = [false, false];
  for (const [at, client] of clients.entries()) {
    client
      .on('error', () => undefined)
      .on('close', () => {
        ended[at] = true;
      });
    client.resume();
  }
  try {
    await until('both to be connected', () => accepted.length === 2);
    proxy.cut();
    accepted[0]?.resetAndDestroy();
    accepted[1]?.destroy();
    await until('the proxy to have noticed', () => proxy.open < 4);
    expect(ended).toEqual([false, false]);
    proxy.heal();
    await until('both to have ended', () => ended.every((each) => each));
  } finally {
    for (const client of clients) client.destroy();
    await proxy.close();
    server.close();
  }
});
