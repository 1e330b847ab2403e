import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { principalOf } from '../../src/server/principal.js';
import { ANSWERING, CALLS, clientOf, endAll, sendCall, serve } from './kit.js';

afterEach(endAll);

describe('a principal', () => {
  it.each([
    ['127.0.0.1:53210', 'addr:127.0.0.1'],
    ['::1:53210', 'addr:::1'],
    ['2001:db8::7:53210', 'addr:2001:db8::7'],
    ['fe80::1%eth0:53210', 'addr:fe80::1%eth0'],
    ['::ffff:10.0.0.9:53210', 'addr:10.0.0.9'],
    ['unknown', 'addr:unknown'],
  ])('of %s is %s', (peer, name) => {
    expect(principalOf(peer)).toEqual({ name, authenticated: false });
  });

  it('of IPv4 is the same on a listener for both kinds; of IPv6 it is the address', async (context) => {
    const probe = await new Promise<boolean>((resolve) => {
      const socket = connect({ host: '::1', port: 1 }).on('error', (error: NodeJS.ErrnoException) => {
        resolve(error.code === 'ECONNREFUSED');
        socket.destroy();
      });
    });
    if (!probe) context.skip('this machine has no IPv6');
    const { port, events } = await serve(ANSWERING, '[::]:0');
    await sendCall(clientOf(`127.0.0.1:${port}`), CALLS.get);
    await sendCall(clientOf(`[::1]:${port}`), CALLS.get);
    const names = events.map((event) => (event.type === 'call' ? event.principal.name : ''));
    expect(names).toEqual(['addr:127.0.0.1', 'addr:::1']);
  });
});
