import { afterEach, expect, test } from 'vitest';
import type { FormRequest, FormResponse } from '../../src/replica/types.js';
import { AskFailed } from '../../src/transport/forming.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { addresses, addressOf, closeAll, closeLater, cluster, TestNode, track, until } from './harness.js';

afterEach(closeAll);

const question = (node: TestNode): FormRequest => ({
  hello: { ...node.hello, incarnation: '' },
  initialMembersDigest: '0123456789abcdef',
  unixUs: 1_796_000_000_000_000,
  stateDigest: '',
  genesis: undefined,
});

async function forming(onForm: (request: FormRequest) => Promise<FormResponse>): Promise<[TestNode, TestNode]> {
  const list = await addresses('n1', 'n2');
  const n1 = track(new TestNode('n1', addressOf(list, 'n1'), list));
  const n2 = track(new TestNode('n2', addressOf(list, 'n2'), list, { onForm }));
  await n1.transport.listen();
  await n2.transport.listen();
  return [n1, n2];
}

const failed = (asked: Promise<FormResponse>): Promise<AskFailed> =>
  asked.then(
    () => {
      throw new Error('was answered');
    },
    (error: unknown) => {
      if (error instanceof AskFailed) return error;
      throw error;
    },
  );

test('a question and its answer, before either has an incarnation', async () => {
  const asked: FormRequest[] = [];
  const [n1, n2] = await forming((request) => {
    asked.push(request);
    return Promise.resolve({ ...question(n2), forming: true });
  });
  const answer = await n1.transport.ask(n2.self.node, question(n1), 5_000);
  expect(asked).toEqual([question(n1)]);
  expect(answer).toEqual({ ...question(n2), forming: true });
});

test('members that have formed still answer', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'], {
    n2: { onForm: (request) => Promise.resolve({ ...request, forming: false }) },
  })) as [TestNode, TestNode];
  expect((await n1.transport.ask(n2.self.node, question(n1), 5_000)).forming).toBe(false);
});

test('a refusal is told with its reason', async () => {
  const [n1, n2] = await forming(() => Promise.reject(new Error('clocks differ by a minute')));
  const error = await failed(n1.transport.ask(n2.self.node, question(n1), 5_000));
  expect(error.kind).toBe('refused');
  expect(error.message).toBe(`node n2 at ${n2.bind}: refused: clocks differ by a minute`);
});

test('a handler that throws before it returns a promise is a refusal, too', async () => {
  const [n1, n2] = await forming(() => {
    throw new Error('at once');
  });
  expect((await failed(n1.transport.ask(n2.self.node, question(n1), 5_000))).message).toContain('refused: at once');
});

test('nobody listens, or nobody answers', async () => {
  const list = await addresses('n1', 'n2');
  const n1 = track(new TestNode('n1', addressOf(list, 'n1'), list));
  const nobody = await failed(n1.transport.ask(list[1]?.node ?? n1.self.node, question(n1), 5_000));
  expect([nobody.kind, nobody.node]).toEqual(['unreachable', 'n2']);
  expect(nobody.message).toContain(addressOf(list, 'n2'));
  const silent = closeLater(await TcpProxy.start(1, Number(addressOf(list, 'n2').split(':')[1])));
  silent.silence();
  const mute = await failed(n1.transport.ask(list[1]?.node ?? n1.self.node, question(n1), 300));
  expect(mute.kind).toBe('timedOut');
  expect(mute.message).toContain('no answer within 300 ms');
  await until('the connection is closed', () => silent.open === 0);
});

test('a question under way ends when the node stops, and none is asked afterwards', async () => {
  const [n1, n2] = await forming(() => new Promise<FormResponse>(() => undefined));
  const asked = failed(n1.transport.ask(n2.self.node, question(n1), 20_000));
  const closed = n1.transport.close();
  expect((await asked).kind).toBe('closed');
  await closed;
  expect((await failed(n1.transport.ask(n2.self.node, question(n1), 5_000))).kind).toBe('closed');
});
