import * as grpc from '@grpc/grpc-js';
import { recognizedOptions } from '@grpc/grpc-js/build/src/channel-options.js';
import { afterEach, describe, expect, test } from 'vitest';
import { CLIENT_OPTIONS, PATHS, SERVER_OPTIONS } from '../../src/transport/channel.js';
import type { LinkPhase, LinkSignal } from '../../src/transport/peer-link.js';
import { backoffMs, transition } from '../../src/transport/peer-link.js';
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

afterEach(closeAll);

const portOf = (address: string): number => Number(address.split(':')[1]);

describe('the states of a link', () => {
  const signals: readonly LinkSignal[] = ['start', 'accepted', 'ended', 'stuck', 'retry', 'wake', 'close'];
  const after = (phase: LinkPhase): Record<LinkSignal, LinkPhase | 'same'> =>
    Object.fromEntries(
      signals.map((signal) => {
        const next = transition(phase, signal);
        return [signal, next === phase ? 'same' : next];
      }),
    ) as Record<LinkSignal, LinkPhase | 'same'>;
  const nothing = {
    start: 'same',
    accepted: 'same',
    ended: 'same',
    stuck: 'same',
    retry: 'same',
    wake: 'same',
  } as const;
  const close = { type: 'closed' } as const;

  test('every signal in every state', () => {
    expect(after({ type: 'idle' })).toEqual({ ...nothing, start: { type: 'connecting', failures: 0 }, close });
    expect(after({ type: 'connecting', failures: 2 })).toEqual({
      ...nothing,
      accepted: { type: 'open' },
      ended: { type: 'backoff', failures: 3 },
      stuck: { type: 'connecting', failures: 3 },
      close,
    });
    expect(after({ type: 'open' })).toEqual({ ...nothing, ended: { type: 'backoff', failures: 1 }, close });
    const redial = { type: 'connecting', failures: 3 } as const;
    expect(after({ type: 'backoff', failures: 3 })).toEqual({ ...nothing, retry: redial, wake: redial, close });
    expect(after({ type: 'closed' })).toEqual({ ...nothing, close: 'same' });
  });

  test('the pause grows from 50 ms to 1 s', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 1_000].map(backoffMs)).toEqual([50, 100, 200, 400, 800, 1_000, 1_000, 1_000]);
  });
});

test('every option is one that grpc-js reads', () => {
  for (const key of [...Object.keys(CLIENT_OPTIONS), ...Object.keys(SERVER_OPTIONS)])
    expect(recognizedOptions).toHaveProperty([key]);
});

test('a connection that is accepted and never answered is given up, and another one made', async () => {
  const list = await addresses('n1', 'n2');
  const n2 = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
  const proxy = closeLater(await TcpProxy.start(portOf(addressOf(list, 'n2'))));
  proxy.silence();
  const n1 = track(new TestNode('n1', addressOf(list, 'n1'), redirect(list, 'n2', proxy.address)));
  await n1.start();
  await until('the three lanes have met silence', () => proxy.accepted === 3);
  proxy.heal();
  await n1.reach(n2);
  expect(n1.lines.some(({ fields }) => String(fields['reason']).includes('no answer within 2000 ms'))).toBe(true);
  await until('the silent connections are closed', () => n2.all('hello').length === 3);
  expect(proxy.accepted).toBe(6);
});

test('a stream whose hello is never answered is given up', async () => {
  const list = await addresses('n1', 'n2');
  const mute = new grpc.Server();
  let streams = 0;
  const same = (bytes: Buffer): Buffer => bytes;
  mute.addService(
    {
      Control: {
        path: PATHS.control,
        requestStream: true,
        responseStream: true,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      },
    },
    {
      Control: () => {
        streams += 1;
      },
    },
  );
  await new Promise<void>((resolve, reject) => {
    mute.bindAsync(addressOf(list, 'n2'), grpc.ServerCredentials.createInsecure(), (error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
  closeLater({
    close: () => {
      mute.forceShutdown();
      return Promise.resolve();
    },
  });
  const n1 = track(await new TestNode('n1', addressOf(list, 'n1'), list).start());
  await until('it has dialled twice', () => streams >= 2);
  expect(n1.lines.some(({ fields }) => String(fields['reason']).includes('no answer within 2000 ms'))).toBe(true);
});

test('a peer that restarts is reached again, and both are told what was lost', async () => {
  const list = await addresses('n1', 'n2');
  const n1 = track(await new TestNode('n1', addressOf(list, 'n1'), list).start());
  const first = new TestNode('n2', addressOf(list, 'n2'), list);
  await first.start();
  await n1.reach(first);
  await first.reach(n1);
  await until('all lanes are open', () => first.all('hello').length === 3 && n1.all('hello').length === 3);
  await first.transport.close();
  await until('n1 knows', () => n1.all('unreachable').length >= 2 && n1.all('streamEnded').length === 2);
  expect(n1.all('forwardLost')).toHaveLength(1);
  expect(n1.all('forwarderLost')).toHaveLength(1);
  for (let round = 0; round < 3; round += 1) {
    const again = new TestNode('n2', addressOf(list, 'n2'), list);
    await again.start();
    await n1.reach(again);
    await again.reach(n1);
    await again.transport.close();
  }
});

test('a sign of life from the peer ends the pause before the next dial', async () => {
  const list = await addresses('n1', 'n2');
  const n1 = track(await new TestNode('n1', addressOf(list, 'n1'), list).start());
  const dials = (): number => n1.lines.filter(({ message }) => message === 'connected to a peer').length;
  await until('n1 has failed to dial', () => n1.lines.length > 0);
  const n2 = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
  await until('n2 has said hello', () => n1.all('hello').length > 0);
  await n1.reach(n2);
  expect(dials()).toBe(1);
});

test('a connection that is reset is made anew', async () => {
  const list = await addresses('n1', 'n2');
  const n2 = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
  const proxy = closeLater(await TcpProxy.start(portOf(addressOf(list, 'n2'))));
  const n1 = track(new TestNode('n1', addressOf(list, 'n1'), redirect(list, 'n2', proxy.address)));
  await n1.start();
  await n1.reach(n2);
  await until('all lanes are open', () => n2.all('hello').length === 3);
  proxy.reset();
  await until('both sides know', () => n1.all('unreachable').length === 2 && n2.all('streamEnded').length === 2);
  const before = n2.messages.length;
  await until('messages come again', () => {
    n1.send(n1.heartbeat(n2.self, 1));
    return n2.messages.length > before;
  });
});

test('a network that swallows everything is noticed by both sides, and left when it heals', async () => {
  const list = await addresses('n1', 'n2');
  const n2 = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
  const proxy = closeLater(await TcpProxy.start(portOf(addressOf(list, 'n2'))));
  const n1 = track(new TestNode('n1', addressOf(list, 'n1'), redirect(list, 'n2', proxy.address)));
  await n1.start();
  await n1.reach(n2);
  await until('all lanes are open', () => n2.all('hello').length === 3);
  proxy.cut();
  await until('both sides know', () => n1.all('unreachable').length >= 2 && n2.all('streamEnded').length === 2);
  proxy.heal();
  const before = n2.messages.length;
  await until('messages come again', () => {
    n1.send(n1.heartbeat(n2.self, 1));
    return n2.messages.length > before;
  });
});

describe('probe', () => {
  test('refused when nobody listens, other when somebody does, whoever it is', async () => {
    const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
    const probe = async (): Promise<string> => {
      const before = n1.all('probed').length;
      n1.transport.perform({ type: 'probe', node: n2.self.node });
      return (await until('the probe is over', () => n1.all('probed')[before])).outcome;
    };
    expect(await probe()).toBe('other');
    await n2.transport.close();
    expect(await probe()).toBe('refused');
    const silent = await TcpProxy.start(1, portOf(n2.bind));
    closeLater(silent).silence();
    expect(await probe()).toBe('other');
  });

  test('a node without an address says nothing about its process', async () => {
    const [n1] = (await cluster(['n1'])) as [TestNode];
    n1.transport.perform({ type: 'probe', node: member('n9').node });
    expect(n1.all('probed')).toEqual([]);
    await until('the probe is over', () => n1.all('probed').length === 1);
    expect(n1.all('probed')).toEqual([{ type: 'probed', node: 'n9', outcome: 'other' }]);
  });
});
