/** What is peculiar to the pipelined channel: what shares a message, a stream that ends, a node without pipelines. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import type { Call } from '../../src/base/api.js';
import { failure } from '../../src/base/errors.js';
import type { Domain } from '../../src/base/ids.js';
import type { Channel, Reply } from '../../src/client/channel.js';
import { connect } from '../../src/client/index.js';
import { openPipelineChannel } from '../../src/client/pipeline-channel.js';
import { ACQUIRE, cleanUp, endAll, generously, nobody, open as openWith, send, serve } from './stub-server.js';
import { granted, header, requestId } from './world.js';

afterEach(endAll);

const open = (address: string): Channel => openWith(address, openPipelineChannel);

/** Waits for a condition. */
async function until(what: string, condition: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!condition()) {
    await sleep(5);
    if (Date.now() > end) throw new Error(`not within 20 s: ${what}`);
  }
}

function acquireOf(domain: string): Call {
  return { ...ACQUIRE, domain: domain as Domain };
}

describe('messages', () => {
  test('calls of one turn share one, of 1 000 at most, and answers find their calls', async () => {
    const server = await serve((request) => {
      const domain = (request.message as { readonly domain: string }).domain as Domain;
      return { header: header(), version: '', answer: granted(domain, requestId(1), 7 + domain.length, 15_000) };
    });
    const channel = open(server.address);
    const replies = await Promise.all(
      Array.from({ length: 2_500 }, async (_, n) => {
        await Promise.resolve();
        return send(channel, acquireOf(`d/${n}`), 20_000);
      }),
    );
    expect(server.messages).toEqual([1_000, 1_000, 500]);
    expect(server.streams).toHaveLength(1);
    replies.forEach((reply, n) => {
      expect(reply).toMatchObject({ answer: { outcome: { lease: { domain: `d/${n}` } } } });
    });
  });

  test('big calls share as much as fits; what takes a stream of its own kind goes beside it', async () => {
    const server = await serve(generously());
    const channel = open(server.address);
    const leases = Array.from({ length: 1_000 }, (_, n) => ({
      domain: `${n}/${'d'.repeat(250)}` as Domain,
      token: (2 ** 50) as never,
    }));
    const renewals = Array.from({ length: 3 }, () => send(channel, { type: 'renew', leases }, 20_000));
    const get = send(channel, { type: 'get', domain: ACQUIRE.domain, freshness: 'local' }, 20_000);
    expect((await Promise.all([...renewals, get])).map(({ type }) => type)).toEqual(Array(4).fill('answer'));
    expect(server.messages).toEqual([1, 1, 1]);
  });

  test('a call that was given up in its turn does not leave', async () => {
    const server = await serve(generously());
    const channel = open(server.address);
    expect(channel.send(acquireOf('given-up'), 20_000, () => undefined)()).toBe(false);
    expect((await send(channel, acquireOf('kept'), 20_000)).type).toBe('answer');
    expect(server.calls.map(({ message }) => (message as { domain: string }).domain)).toEqual(['kept']);
  });

  test('an answer that comes after its call was given up, or is for nobody, is passed over', async () => {
    const server = await serve(() => undefined);
    const channel = open(server.address);
    let replied = 0;
    const giveUp = channel.send(acquireOf('slow'), 20_000, () => {
      replied++;
    });
    await until('the call', () => server.calls.length === 1);
    expect(giveUp()).toBe(true);
    const next = send(channel, acquireOf('next'), 20_000);
    await until('the next', () => server.calls.length === 2);
    server.answer(1, { type: 'failure', failure: failure('OVERLOADED', 'late') });
    server.answer(2, { type: 'failure', failure: failure('OVERLOADED', 'in time') });
    expect(await next).toMatchObject({ failure: { message: 'in time' } });
    expect(replied).toBe(0);
  });

  test('each call has its own deadline', async () => {
    const server = await serve(() => undefined);
    const channel = open(server.address);
    const ended: string[] = [];
    const wait = async (name: string, ms: number): Promise<Reply> => {
      const reply = await send(channel, acquireOf(name), ms);
      ended.push(name);
      return reply;
    };
    const replies = await Promise.all([wait('third', 300), wait('first', 100), wait('second', 200)]);
    expect(ended).toEqual(['first', 'second', 'third']);
    expect(replies[0]).toEqual({ type: 'silent', reached: true, why: 'no answer within 300 ms' });
  });
});

describe('a stream', () => {
  test('that breaks leaves what was sent unknown, and the next call begins another', async () => {
    const server = await serve(({ message }) =>
      (message as { readonly domain: string }).domain === 'lost'
        ? undefined
        : generously()({ type: 'acquire', message } as never),
    );
    const channel = open(server.address);
    const lost = send(channel, acquireOf('lost'), 20_000);
    await until('the call', () => server.calls.length === 1);
    server.streams[0]?.emit('error', { name: '', message: '', code: 14, details: 'gone' });
    expect(await lost).toMatchObject({ type: 'silent', reached: true });
    expect((await send(channel, acquireOf('next'), 20_000)).type).toBe('answer');
    expect(server.streams).toHaveLength(2);
  });

  test('that the node ends in good order does the same', async () => {
    const server = await serve(() => undefined);
    const channel = open(server.address);
    const lost = send(channel, acquireOf('lost'), 20_000);
    await until('the call', () => server.calls.length === 1);
    server.streams[0]?.end();
    expect(await lost).toMatchObject({ type: 'silent', reached: true });
  });

  test('with an answer that no node gives is ended, and all its calls with it', async () => {
    const server = await serve(() => undefined);
    const channel = open(server.address);
    const replies = [send(channel, acquireOf('a'), 20_000), send(channel, acquireOf('b'), 20_000)];
    await until('the calls', () => server.calls.length === 2);
    server.streams[0]?.write(Buffer.from([0xff]));
    for (const reply of await Promise.all(replies)) {
      expect(reply).toEqual({
        type: 'foreign',
        why: 'the answer cannot be read: the response is no PipelineResponse',
      });
    }
  });

  test('without calls ends by itself after a moment, and calls soon after each other share one', async () => {
    const server = await serve(generously());
    const channel = open(server.address);
    for (let n = 0; n < 3; n++) await send(channel, acquireOf('a'), 20_000);
    let ended = false;
    server.streams[0]?.on('end', () => {
      ended = true;
    });
    await until('its end', () => ended);
    expect(server.streams).toHaveLength(1);
    expect((await send(channel, acquireOf('a'), 20_000)).type).toBe('answer');
    expect(server.streams).toHaveLength(2);
  });

  test('of a node without pipelines: the calls go one by one, and the next ones at once', async () => {
    const server = await serve(generously(), { pipeline: false });
    const channel = open(server.address);
    const both = await Promise.all([send(channel, acquireOf('a'), 20_000), send(channel, acquireOf('b'), 20_000)]);
    expect(both.map(({ type }) => type)).toEqual(['answer', 'answer']);
    expect((await send(channel, acquireOf('c'), 20_000)).type).toBe('answer');
    expect(server.calls).toHaveLength(3);
  });

  test('and a call that goes another way can be given up there', async () => {
    const server = await serve(() => undefined, { pipeline: false });
    const channel = open(server.address);
    let replied = 0;
    const giveUp = channel.send(acquireOf('a'), 20_000, () => {
      replied++;
    });
    await until('the call', () => server.calls.length === 1);
    expect(giveUp()).toBe(true);
    expect(replied).toBe(0);
  });

  test('that was closed says so to its calls', async () => {
    const server = await serve(() => undefined);
    const channel = open(server.address);
    const lost = send(channel, acquireOf('a'), 20_000);
    await until('the call', () => server.calls.length === 1);
    channel.close();
    expect(await lost).toEqual({ type: 'silent', reached: true, why: 'the client was closed' });
    expect(() => channel.send(acquireOf('a'), 1_000, () => undefined)).toThrow('is closed');
  });
});

describe('connect', () => {
  test.each([
    ['pipelined by default', {}, true],
    ['as asked', { transport: 'unary' } as const, false],
  ])('travels %s, the same otherwise', async (_, options, pipelined) => {
    const server = await serve(generously());
    const client = connect({ endpoints: [await nobody(), server.address], ...options });
    cleanUp.push(() => client.close());
    const leases = await Promise.all(['a', 'b', 'c'].map((domain) => client.acquire(domain)));
    for (const lease of leases) expect(lease.isHeld()).toBe(true);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(server.messages.length > 0).toBe(pipelined);
    expect(server.calls.filter(({ type }) => type === 'release')).toHaveLength(3);
  });

  test('refuses another way', () => {
    expect(() => connect({ endpoints: ['a:1'], transport: 'smoke' as never })).toThrow(
      'transport must be pipelined or unary, not "smoke"',
    );
  });
});
