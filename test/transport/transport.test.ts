import { afterEach, describe, expect, test } from 'vitest';
import { addresses, addressOf, TestNode, until } from './harness.js';
import type { TestNodeOptions } from './harness.js';

const running: TestNode[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ transport }) => transport.close()));
});

async function pair(
  options: { readonly n1?: TestNodeOptions; readonly n2?: TestNodeOptions } = {},
): Promise<[TestNode, TestNode]> {
  const list = await addresses('n1', 'n2');
  const n1 = new TestNode('n1', addressOf(list, 'n1'), list, options.n1);
  const n2 = new TestNode('n2', addressOf(list, 'n2'), list, options.n2);
  running.push(n1, n2);
  await n1.transport.listen();
  await n2.transport.listen();
  n1.transport.activate(n1.hello);
  n2.transport.activate(n2.hello);
  return [n1, n2];
}

describe('messages', () => {
  test('arrive in order, whatever was sent before the connection stood', async () => {
    const [n1, n2] = await pair();
    for (let round = 1; round <= 500; round += 1) n1.send(n1.heartbeat(n2.self, round));
    await until('500 heartbeats have come', () => n2.messages.length >= 500);
    expect(n2.messages.map((message) => (message.type === 'heartbeat' ? message.round : 0))).toEqual(
      Array.from({ length: 500 }, (_, at) => at + 1),
    );
    expect(n2.all('hello').some(({ node, boot }) => node === 'n1' && boot === n1.hello.boot)).toBe(true);
    n2.send({ type: 'heartbeatReply', from: n2.self, to: n1.self, term: 1, round: 500, diskLow: false });
    await until('the reply has come', () => n1.messages.length === 1);
  });
});
