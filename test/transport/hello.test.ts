import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import type { BootId, Incarnation, NodeId } from '../../src/base/ids.js';
import type { Hello } from '../../src/replica/types.js';
import { encodeMessage } from '../../src/wire/message.js';
import { partFrame } from '../../src/wire/peer-frames.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import {
  addresses,
  addressOf,
  closeAll,
  closeLater,
  cluster,
  hex,
  member,
  redirect,
  TestNode,
  track,
  until,
} from './harness.js';
import { openRaw } from './raw.js';

afterEach(closeAll);

async function single(): Promise<TestNode> {
  const [n1] = (await cluster(['n1'])) as [TestNode];
  return n1;
}

const otherIncarnation = 'b'.repeat(32) as Incarnation;

describe('a hello that does not fit is refused with the field, both values and the next step', () => {
  const cases: readonly (readonly [string, Partial<Hello>, readonly string[]])[] = [
    ['another cluster name', { cluster: 'prod' }, ['cluster name', '"prod"', '"test"', 'same cluster name']],
    [
      'another incarnation',
      { incarnation: otherIncarnation },
      ['incarnation', otherIncarnation, 'a'.repeat(32), 'data directory'],
    ],
    ['no incarnation', { incarnation: '' }, ['incarnation', 'n2 has none', 'must form or be added']],
    ['the name of this node', { node: 'n1' as NodeId }, ['node id', 'n1', 'id of its own']],
  ];
  test.each(cases)('%s', async (_name, wrong, parts) => {
    const n1 = await single();
    const raw = closeLater(openRaw(n1.bind, 'append', { ...n1.hello, ...member('n2'), ...wrong }));
    const status = await until('the stream is ended', raw.status);
    expect(status.code).toBe(grpc.status.FAILED_PRECONDITION);
    for (const part of parts) expect(status.details).toContain(part);
    expect(n1.events).toEqual([]);
    const [line, ...more] = n1.lines;
    expect(line?.message).toBe('refused a peer');
    expect(line?.fields['reason']).toBe(status.details);
    expect(more).toEqual([]);
  });

  test('a retry of the same refusal is not logged again', async () => {
    const n1 = await single();
    for (let round = 0; round < 3; round += 1) {
      const raw = closeLater(openRaw(n1.bind, 'control', { ...n1.hello, ...member('n2'), cluster: 'prod' }));
      await until('the stream is ended', raw.status);
    }
    expect(n1.lines).toHaveLength(1);
  });

  test('a first frame without a hello, and one that cannot be read', async () => {
    const n1 = await single();
    const message = encodeMessage({ type: 'timeoutNow', from: member('n2'), to: n1.self, term: 1 });
    const silent = closeLater(openRaw(n1.bind, 'control', undefined));
    silent.write(partFrame(message));
    expect((await until('the stream is ended', silent.status)).details).toContain('no hello');
    const corrupt = closeLater(openRaw(n1.bind, 'control', undefined));
    corrupt.write(Uint8Array.of(0x0a, 0x02, 0xff, 0xff));
    expect((await until('the stream is ended', corrupt.status)).code).toBe(grpc.status.INVALID_ARGUMENT);
    expect(n1.events).toEqual([]);
  });

  test('a stream that says nothing at all is ended', async () => {
    const n1 = await single();
    const raw = closeLater(openRaw(n1.bind, 'control', undefined));
    const { code, details } = await until('the stream is ended', raw.status);
    expect(code).toBe(grpc.status.DEADLINE_EXCEEDED);
    expect(details).toContain('no hello');
  });
});

test('both ends say it when clusters differ, once, and exchange nothing', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'], { n2: { cluster: 'prod' } })) as [TestNode, TestNode];
  const said = (node: TestNode, message: string) =>
    node.lines.filter((line) => line.message === message && String(line.fields['reason']).includes('cluster name'));
  await until('both have refused and were refused', () => {
    n1.send(n1.heartbeat(n2.self, 1));
    return [n1, n2].every(
      (node) => said(node, 'refused a peer').length > 0 && said(node, 'no connection to a peer').length > 0,
    );
  });
  expect(n1.all('hello')).toEqual([]);
  expect(n2.messages).toEqual([]);
  expect(said(n1, 'refused a peer')).toHaveLength(1);
});

test('an address that another node answers is not used', async () => {
  const list = await addresses('n1', 'n2', 'n3');
  const n3 = track(await new TestNode('n3', addressOf(list, 'n3'), []).start());
  const n1 = track(new TestNode('n1', addressOf(list, 'n1'), redirect(list, 'n2', addressOf(list, 'n3'))));
  await n1.start();
  const line = await until('n1 says so', () =>
    n1.lines.find(({ fields }) => String(fields['reason']).includes('the address of node n2 was answered by node n3')),
  );
  expect(line.level).toBe('warn');
  n1.send(n1.heartbeat(member('n2'), 1));
  await n1.reach(n3);
  expect(n3.messages.every(({ to }) => to.node === 'n3')).toBe(true);
});

test('before this node has an incarnation its streams are refused, and nothing is dialled', async () => {
  const list = await addresses('n1', 'n2');
  const n2 = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
  const n1 = track(new TestNode('n1', addressOf(list, 'n1'), list));
  await n1.transport.listen();
  const raw = closeLater(openRaw(n1.bind, 'control', n2.hello));
  const status = await until('the stream is ended', raw.status);
  expect(status).toMatchObject({ code: grpc.status.UNAVAILABLE, details: 'not formed yet' });
  n1.send(n1.heartbeat(n2.self, 1));
  expect(n2.all('hello')).toEqual([]);
  n1.transport.activate(n1.hello);
  await n1.reach(n2);
  await n2.reach(n1);
});

describe('two processes of one node (S7)', () => {
  const second = (n2: TestNode): Hello => ({ ...n2.hello, boot: hex(7) as BootId });

  test('while the first is alive the second is refused, and the first goes on', async () => {
    const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
    await n2.reach(n1);
    await until('all lanes are open', () => n1.all('hello').length === 3);
    for (const lane of ['control', 'append', 'forward', 'snapshot'] as const) {
      const raw = closeLater(openRaw(n1.bind, lane, second(n2)));
      const status = await until('the second is refused', raw.status);
      expect(status.code).toBe(grpc.status.FAILED_PRECONDITION);
      expect(status.details).toContain(`two processes run with the data directory ${n2.self.directory} of node n2`);
      expect(status.details).toContain(`boot ${n2.hello.boot} is alive, boot ${hex(7)} is refused`);
    }
    expect(n1.all('streamEnded')).toEqual([]);
    expect(n1.all('hello')).toHaveLength(3);
    expect(n1.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
    const before = n1.messages.length;
    n2.send(n2.heartbeat(n1.self, 5));
    await until('the first still speaks', () => n1.messages.length > before);
  });

  test('another directory under the same node id counts as a second process', async () => {
    const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
    await n2.reach(n1);
    const raw = closeLater(openRaw(n1.bind, 'control', { ...second(n2), ...member('n2', 9) }));
    const status = await until('the second is refused', raw.status);
    expect(status.details).toContain('two processes run with the node id n2');
  });

  test('a restarted process gets in at once, and its boot id is told', async () => {
    const list = await addresses('n1', 'n2');
    const n1 = track(await new TestNode('n1', addressOf(list, 'n1'), list).start());
    const first = new TestNode('n2', addressOf(list, 'n2'), list);
    await first.start();
    await first.reach(n1);
    await first.transport.close();
    await until('its end is told', () => n1.all('streamEnded').length === 2);
    const again = track(await new TestNode('n2', addressOf(list, 'n2'), list).start());
    await again.reach(n1);
    await n1.reach(again);
    const told = n1.all('hello').map(({ boot }) => boot);
    expect(told.slice(0, 3)).toEqual([first.hello.boot, first.hello.boot, first.hello.boot]);
    expect(new Set(told.slice(3))).toEqual(new Set([again.hello.boot]));
  });

  test('a first process that fell silent without a word makes way', async () => {
    const list = await addresses('n1', 'n2');
    const n1 = track(await new TestNode('n1', addressOf(list, 'n1'), list).start());
    const proxy = closeLater(await TcpProxy.start(Number(addressOf(list, 'n1').split(':')[1])));
    const first = track(new TestNode('n2', addressOf(list, 'n2'), redirect(list, 'n1', proxy.address)));
    await first.start();
    await first.reach(n1);
    await until('all lanes are open', () => n1.all('hello').length === 3);
    proxy.cut();
    const raw = closeLater(openRaw(n1.bind, 'control', second(first)));
    await until('the second is admitted', () => raw.answers.length > 0);
    expect(n1.all('streamEnded')).toHaveLength(2);
    expect(n1.all('forwarderLost')).toHaveLength(1);
    expect(n1.all('hello').at(-1)).toEqual({ type: 'hello', ...member('n2'), boot: hex(7) });
    // The events say it in this order: the old streams are over before the new process is announced.
    expect(n1.events.findLastIndex(({ type }) => type === 'streamEnded')).toBeLessThan(
      n1.events.findLastIndex(({ type }) => type === 'hello'),
    );
  });
});
