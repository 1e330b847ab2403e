/** Forward lanes tell what the real ones do: see test/transport/forward.test.ts. */
import { describe, expect, test } from 'vitest';
import type { AcquireCall, ForwardableCall } from '../../../src/base/api.js';
import { failure } from '../../../src/base/errors.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import type { CallResult } from '../../../src/replica/types.js';
import { member, TestWorld } from './kit.js';
import type { TestProcess } from './kit.js';

type Two = [TestProcess, TestProcess];

const acquire: AcquireCall = {
  type: 'acquire',
  domain: 'orders/1' as Domain,
  requestId: '5f0c7a4e-8d64-4a40-9a55-3f3a1e6c3b11' as RequestId,
  holder: 'worker',
  ttlMs: 15_000,
  waitMs: 20_000,
  metadata: [['zone', 'a']],
  coolDownMs: 500,
  slots: 4,
  seenRevision: 1_796_000_000_000_000 as Revision,
};
const get = (n: number): ForwardableCall => ({ type: 'get', domain: `d/${n}` as Domain, freshness: 'linearizable' });
const principal = { name: 'addr:10.0.0.7', authenticated: false };
const notLeader: CallResult = { type: 'notLeader', outcome: 'not-done' };
const upTo = (n: number): number[] => Array.from({ length: n }, (_, at) => at + 1);

function forward(from: TestProcess, id: number, call: ForwardableCall, to = 'n2'): void {
  from.peers.perform({
    type: 'forward',
    to: member(to).node,
    id,
    term: 3,
    principal,
    timeoutMs: 1_500,
    holdMs: 700,
    call,
  });
}
/** The number under which the nth call came; itself for a call that never came. */
function numberOf(by: TestProcess, nth: number): number {
  return by.all('forwarded')[nth - 1]?.id ?? nth;
}
function answer(by: TestProcess, nth: number, result: CallResult): void {
  by.peers.perform({ type: 'forwardResult', to: member('n1').node, id: numberOf(by, nth), result });
}

describe.each([true, false])('with codecs: %s', (codecs) => {
  test('a call arrives with its principal and time, and each kind of result comes back, once, in order', async () => {
    const world = new TestWorld(['n1', 'n2'], { codecs });
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    forward(n1, 7, acquire);
    forward(n1, 8, get(1));
    forward(n1, 9, get(2));
    await world.run(10);
    expect(n2.all('forwarded')[0]).toEqual({
      type: 'forwarded',
      from: 'n1',
      id: numberOf(n2, 1),
      term: 3,
      principal,
      timeoutMs: 1_500,
      holdMs: 700,
      call: acquire,
    });
    const answered: CallResult = {
      type: 'answer',
      answer: {
        type: 'acquire',
        requestId: acquire.requestId,
        outcome: { type: 'notGranted', reason: 'held', current: undefined, queueLength: 3, coolDownLeftMs: 7 },
      },
      revision: 1_796_000_000_000_041 as Revision,
    };
    const failed: CallResult = {
      type: 'failure',
      failure: failure('DISK_FULL', 'too little', { outcome: 'not-done' }),
    };
    answer(n2, 1, answered);
    answer(n2, 3, failed);
    answer(n2, 2, notLeader);
    answer(n2, 2, notLeader);
    answer(n2, 5_000, notLeader);
    await world.run(10);
    expect(n1.all('forwardResult')).toEqual([
      { type: 'forwardResult', from: 'n2', id: 7, result: answered },
      { type: 'forwardResult', from: 'n2', id: 9, result: failed },
      { type: 'forwardResult', from: 'n2', id: 8, result: notLeader },
    ]);
  });
});

test('calls come in order and whole, whatever becomes of core messages', async () => {
  const noise = { loss: 300, duplicate: 500, replay: 500, reorder: true, latencyMs: [1, 50] as const };
  const world = new TestWorld(['n1', 'n2'], noise);
  const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
  for (const id of upTo(200)) forward(n1, id, get(id));
  await world.run(1_000);
  expect(n2.all('forwarded').map(({ call }) => call)).toEqual(upTo(200).map(get));
});

test('a cancelled call is told once, and its result goes nowhere', async () => {
  const world = new TestWorld(['n1', 'n2']);
  const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
  forward(n1, 1, get(1));
  forward(n1, 2, get(2));
  n1.peers.perform({ type: 'forwardCancel', to: n2.member.node, id: 1 });
  n1.peers.perform({ type: 'forwardCancel', to: n2.member.node, id: 1 });
  await world.run(10);
  expect(n2.typesSince(3)).toEqual(['forwarded', 'forwarded', 'forwardCancelled']);
  answer(n2, 1, notLeader);
  answer(n2, 2, notLeader);
  await world.run(10);
  expect(n1.all('forwardResult').map(({ id }) => id)).toEqual([2]);
  expect(n2.all('forwardCancelled')).toEqual([{ type: 'forwardCancelled', from: 'n1', id: numberOf(n2, 1) }]);
});

test('both ends are told when the stream between them ends; an answer of the old one goes nowhere', async () => {
  const world = new TestWorld(['n1', 'n2']);
  const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
  forward(n1, 1, get(1));
  await world.run(10);
  world.network.refuse(n2.member.node, true);
  await world.run(10);
  expect(n1.all('forwardLost')).toEqual([{ type: 'forwardLost', node: 'n2' }]);
  expect(n2.all('forwarderLost')).toEqual([{ type: 'forwarderLost', node: 'n1' }]);
  expect(n1.count('forwardResult')).toBe(0);
  // It waits for the next dial and is lost with it.
  forward(n1, 2, get(2));
  await world.run(1_500);
  expect(n1.count('forwardLost')).toBe(2);
  expect(world.coverage.counts.get('forward lost')).toBe(3);
  world.network.heal();
  await world.run(1_500);
  answer(n2, 1, notLeader);
  await world.run(10);
  expect(n1.count('forwardResult')).toBe(0);
  forward(n1, 1, get(1));
  await world.run(10);
  expect(n2.count('forwarded')).toBe(2);
});

test('calls that find no room are answered as not done, after the effect', async () => {
  const world = new TestWorld(['n1', 'n2'], { room: 3 });
  const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
  for (const id of upTo(8)) forward(n1, id, get(id));
  expect(n1.count('forwardResult')).toBe(0);
  await world.run(50);
  expect(n2.all('forwarded').map(({ id }) => id)).toEqual(upTo(6));
  const refused = n1.all('forwardResult');
  expect(refused.map(({ id }) => id)).toEqual([7, 8]);
  for (const { result } of refused)
    expect(result).toMatchObject({ type: 'failure', failure: { reason: 'OVERLOADED', outcome: 'not-done' } });
  expect(n1.count('forwardLost')).toBe(0);
});

test('a leader that the history does not list is named', async () => {
  const world = new TestWorld(['n1', 'n2']);
  const [n1] = (await world.cluster('n1', 'n2')) as Two;
  forward(n1, 1, get(1), 'n9');
  await world.run(1);
  expect(n1.all('forwardResult')[0]?.result).toMatchObject({
    type: 'failure',
    failure: { reason: 'NO_LEADER', outcome: 'not-done' },
  });
});
