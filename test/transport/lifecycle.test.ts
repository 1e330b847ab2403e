import { afterEach, expect, test } from 'vitest';
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

/** Sockets and listeners that keep this process alive. */
const sockets = (): string[] => process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP'));
const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

test('a port in use is named', async () => {
  const [n1] = (await cluster(['n1'])) as [TestNode];
  const n2 = track(new TestNode('n2', n1.bind, []));
  await expect(n2.transport.listen()).rejects.toThrow(
    `peer listener: ${n1.bind} is in use; stop the process that has it, or configure another peer address`,
  );
});

test('an address of another machine is named', async () => {
  const n1 = track(new TestNode('n1', '192.0.2.1:7201', []));
  await expect(n1.transport.listen()).rejects.toThrow('peer listener: cannot listen on 192.0.2.1:7201');
});

test.each(['n2', 'n2:', ':7201', '::1:7201', 'n2:70000', 'http://n2:7201', 'n2:7201/x'])(
  '%s is no peer address',
  (wrong) => {
    const peers = [{ node: member('n2').node, peerAddress: wrong }];
    expect(() => new TestNode('n1', '127.0.0.1:0', peers)).toThrow(`peer address "${wrong}" is not host:port`);
  },
);

test('port 0 takes a free one and says which', async () => {
  const n1 = track(new TestNode('n1', '127.0.0.1:0', []));
  const port = await n1.transport.listen();
  n1.transport.activate(n1.hello);
  const raw = closeLater(openRaw(`127.0.0.1:${port}`, 'control', { ...n1.hello, ...member('n2') }));
  await until('it answers', () => raw.answers.length === 1);
});

test('after close no socket, no timer and no event is left, whatever was under way', async () => {
  const beforeSockets = sockets().length;
  const beforeTimers = timers();
  const list = await addresses('n1', 'n2', 'n3', 'n4');
  const silent = await TcpProxy.start(1, Number(addressOf(list, 'n4').split(':')[1]));
  silent.silence();
  // n3 does not run, n4 accepts and stays silent, n2 is behind a proxy that swallows everything from some time on.
  const proxy = await TcpProxy.start(Number(addressOf(list, 'n2').split(':')[1]));
  const n2 = await new TestNode('n2', addressOf(list, 'n2'), redirect(list, 'n1', addressOf(list, 'n1'))).start();
  const n1 = new TestNode('n1', addressOf(list, 'n1'), redirect(list, 'n2', proxy.address), {
    openSnapshot: () => ({ next: () => new Promise(() => undefined), close: () => Promise.resolve() }),
  });
  await n1.start();
  await n1.reach(n2);
  await n2.reach(n1);
  const raw = openRaw(n1.bind, 'control', { ...n1.hello, ...member('n5') });
  const mute = openRaw(n1.bind, 'append', undefined);
  await until('the stream is open', () => raw.answers.length === 1);
  n1.transport.perform({ type: 'sendSnapshot', to: member('n4'), term: 1, request: 1 });
  n1.transport.perform({ type: 'probe', node: member('n4').node });
  proxy.cut();
  const told = n1.events.length;
  await Promise.all([n1.transport.close(), n1.transport.close()]);
  n1.send(n1.heartbeat(n2.self, 1));
  n1.transport.perform({ type: 'probe', node: n2.self.node });
  await n2.transport.close();
  await Promise.all([silent.close(), proxy.close(), raw.close(), mute.close()]);
  await until('every socket is closed', () => sockets().length <= beforeSockets);
  await until('every timer has ended', () => timers() <= beforeTimers + 1);
  expect(n1.events).toHaveLength(told);
});

test('what was handed over before close still arrives', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  await n1.reach(n2);
  n1.send({ type: 'timeoutNow', from: n1.self, to: n2.self, term: 1 });
  await n1.transport.close();
  await until('it has come', () => n2.messages.at(-1)?.type === 'timeoutNow');
});

test('a node that is closed before it listens, or before it forms, is closed', async () => {
  const list = await addresses('n1', 'n2');
  const never = new TestNode('n1', addressOf(list, 'n1'), list);
  await never.transport.close();
  const idle = new TestNode('n2', addressOf(list, 'n2'), list);
  await idle.transport.listen();
  await idle.transport.close();
  const again = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
  expect(again.events).toEqual([]);
});
