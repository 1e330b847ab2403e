import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { AssertionFailed } from '../../src/base/assert.js';
import type { Append, Message } from '../../src/raft/types.js';
import type { Event } from '../../src/replica/types.js';
import { encodeMessage } from '../../src/wire/message.js';
import { partFrame } from '../../src/wire/peer-frames.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import {
  addresses,
  addressOf,
  closeAll,
  closeLater,
  cluster,
  member,
  redirect,
  TestNode,
  track,
  until,
} from './harness.js';
import { openRaw } from './raw.js';

afterEach(closeAll);

const rounds = (messages: readonly Message[]): number[] =>
  messages.flatMap((message) => (message.type === 'heartbeat' ? [message.round] : []));
const upTo = (n: number): number[] => Array.from({ length: n }, (_, at) => at + 1);

function append(from: TestNode, to: TestNode, request: number, bytes: number): Append {
  const entry = {
    index: request,
    term: 1,
    kind: 'command',
    payload: new Uint8Array(bytes).fill(request & 0xff),
  } as const;
  return {
    type: 'append',
    from: from.self,
    to: to.self,
    term: 1,
    prev: { index: request - 1, term: request === 1 ? 0 : 1 },
    entries: [entry],
    commit: 0,
    request,
  };
}

test('messages arrive in order, whatever was sent before the connection stood', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  for (const round of upTo(500)) n1.send(n1.heartbeat(n2.self, round));
  await until('500 heartbeats have come', () => n2.messages.length >= 500);
  expect(rounds(n2.messages)).toEqual(upTo(500));
  n2.send({ type: 'heartbeatReply', from: n2.self, to: n1.self, term: 1, round: 500, diskLow: false });
  await until('the reply has come', () => n1.messages.length === 1);
  expect(n1.all('unreachable')).toEqual([]);
});

test('the hello of each new stream is reported, with the boot id', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  const { node, directory, boot } = n1.hello;
  await until('the three lanes of n1 have said hello', () => n2.all('hello').length === 3);
  expect(n2.all('hello')).toEqual(Array.from({ length: 3 }, () => ({ type: 'hello', node, directory, boot })));
});

test('entries arrive whole and in order, in frames far below the limit', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  await n1.reach(n2);
  for (const request of upTo(24)) n1.send(append(n1, n2, request, 256 * 1024));
  const appends = await until('24 appends have come', () => {
    const come = n2.messages.filter((message): message is Append => message.type === 'append');
    return come.length === 24 ? come : undefined;
  });
  expect(appends.map(({ request }) => request)).toEqual(upTo(24));
  for (const { request, entries } of appends) {
    expect(entries[0]?.payload.byteLength).toBe(256 * 1024);
    expect(entries[0]?.payload.every((byte) => byte === (request & 0xff))).toBe(true);
  }
});

test('bulk on the append connection does not hold up heartbeats', async () => {
  const list = await addresses('n1', 'n2');
  const proxy = closeLater(await TcpProxy.start(Number(addressOf(list, 'n2').split(':')[1])));
  // A connection that has carried this much carries no more.
  proxy.choke(256 * 1024);
  const n2 = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
  const n1 = track(new TestNode('n1', addressOf(list, 'n1'), redirect(list, 'n2', proxy.address)));
  await n1.start();
  await n1.reach(n2);
  for (const request of upTo(64)) n1.send(append(n1, n2, request, 256 * 1024));
  await until('a connection is choked', () => proxy.choked > 0);
  const before = n2.messages.length;
  for (const round of upTo(20)) n1.send(n1.heartbeat(n2.self, round));
  await until('the heartbeats have come past the bulk', () => rounds(n2.messages.slice(before)).length >= 20);
  expect(n2.messages.filter(({ type }) => type === 'append').length).toBeLessThan(64);
});

test('what finds no room is dropped, and that is told once there is room again', async () => {
  const list = await addresses('n1', 'n2');
  const proxy = closeLater(await TcpProxy.start(Number(addressOf(list, 'n2').split(':')[1])));
  const n2 = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
  const n1 = track(new TestNode('n1', addressOf(list, 'n1'), redirect(list, 'n2', proxy.address)));
  await n1.start();
  await n1.reach(n2);
  await until('the append lane is open', () => n2.all('hello').length >= 3);
  proxy.block('toTarget');
  // More than waits at most (8 MiB), than gRPC takes (1 MiB) and than the sockets hold.
  for (const request of upTo(160)) n1.send(append(n1, n2, request, 256 * 1024));
  expect(n1.all('unreachable')).toEqual([]);
  proxy.heal();
  await until('the loss is told', () => n1.all('unreachable').length === 1);
  await until('what was kept has come', () => n2.messages.some((message) => message.type === 'append'));
  n1.send(append(n1, n2, 1_000, 10));
  await until('the next one has come', () =>
    n2.messages.some((message) => message.type === 'append' && message.request === 1_000),
  );
  const requests = n2.messages.flatMap((message) => (message.type === 'append' ? [message.request] : []));
  expect(requests.length).toBeLessThan(161);
  expect(requests).toEqual(requests.toSorted((a, b) => a - b));
  expect(n1.all('unreachable')).toHaveLength(1);
});

describe('what no member sends', () => {
  const cases: readonly (readonly [string, (own: TestNode) => Uint8Array, RegExp])[] = [
    [
      'a message in the name of another node',
      (n1) =>
        partFrame(encodeMessage({ type: 'heartbeat', from: member('n3'), to: n1.self, term: 9, commit: 0, round: 1 })),
      /names n3\/.* as its sender, the hello of this stream named n2\//,
    ],
    [
      'a message in the name of another directory',
      (n1) =>
        partFrame(
          encodeMessage({ type: 'heartbeat', from: member('n2', 7), to: n1.self, term: 9, commit: 0, round: 1 }),
        ),
      /as its sender/,
    ],
    [
      'a message for another node',
      () =>
        partFrame(
          encodeMessage({ type: 'heartbeat', from: member('n2'), to: member('n3'), term: 9, commit: 0, round: 1 }),
        ),
      /a message for node n3 came to node n1/,
    ],
    [
      'the decision on a snapshot, which each member makes for itself once all of it is staged',
      (n1) => {
        const configuration = { voters: [member('n1'), member('n2')], outgoing: [], learners: [] };
        const meta = { index: 5, term: 1, configuration, configurationIndex: 0 };
        return partFrame(
          encodeMessage({ type: 'installSnapshot', from: member('n2'), to: n1.self, term: 9, meta, request: 1 }),
        );
      },
      /a snapshot comes over its own connection/,
    ],
    ['bytes that are no frame', () => Uint8Array.of(0x0a, 0xff), /message frame/],
    ['a frame whose message cannot be read', () => partFrame(Uint8Array.of(1, 2, 3)), /message/],
  ];
  test.each(cases)('%s ends the stream and reaches nobody', async (_name, bytes, fault) => {
    const [n1] = (await cluster(['n1'])) as [TestNode];
    const raw = closeLater(openRaw(n1.bind, 'control', { ...n1.hello, ...member('n2') }));
    await until('the hello is answered', () => raw.answers.length === 1);
    raw.write(bytes(n1));
    const status = await until('the stream is ended', raw.status);
    expect(status.code).toBe(grpc.status.INVALID_ARGUMENT);
    expect(status.details).toMatch(fault);
    expect(n1.messages).toEqual([]);
    expect(n1.all('streamEnded')).toEqual([{ type: 'streamEnded', node: 'n2' }]);
    expect(n1.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  });
});

test('a newer stream of a kind replaces the older one without an ending being told', async () => {
  const [n1] = (await cluster(['n1'])) as [TestNode];
  const n2 = { ...n1.hello, ...member('n2') };
  const older = closeLater(openRaw(n1.bind, 'control', n2));
  await until('the first is answered', () => older.answers.length === 1);
  const appendStream = closeLater(openRaw(n1.bind, 'append', n2));
  await until('the append stream is answered', () => appendStream.answers.length === 1);
  const newer = closeLater(openRaw(n1.bind, 'control', n2));
  const status = await until('the older one is ended', older.status);
  expect(status.code).toBe(grpc.status.ABORTED);
  expect(status.details).toContain('replaced by a newer stream');
  newer.write(
    partFrame(encodeMessage({ type: 'heartbeat', from: member('n2'), to: n1.self, term: 1, commit: 0, round: 1 })),
  );
  await until('the newer one carries messages', () => n1.messages.length === 1);
  expect(appendStream.status()).toBeUndefined();
  expect(n1.all('streamEnded')).toEqual([]);
  await newer.close();
  await until('its end is told', () => n1.all('streamEnded').length === 1);
});

test('a failed assertion of whoever takes the events is not taken for a fault of the peer', async () => {
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  const uncaught: unknown[] = [];
  process.on('uncaughtException', (error) => uncaught.push(error));
  try {
    const defect = new AssertionFailed('a defect of this process');
    const onEvent = (event: Event): void => {
      if (event.type === 'message') throw defect;
    };
    const [n1, n2] = (await cluster(['n1', 'n2'], { n2: { onEvent } })) as [TestNode, TestNode];
    n1.send(n1.heartbeat(n2.self, 1));
    await until('the process has it', () => uncaught.length > 0);
    expect(uncaught).toEqual([defect]);
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const each of others) process.on('uncaughtException', each);
  }
});
