import { afterEach, expect, test } from 'vitest';
import type { AcquireCall, ForwardableCall } from '../../src/base/api.js';
import { failure, type Failure } from '../../src/base/errors.js';
import type { Domain, NodeId, RequestId } from '../../src/base/ids.js';
import { MAX_HELD_CALLS } from '../../src/base/limits.js';
import type { Revision } from '../../src/base/revision.js';
import type { CallResult } from '../../src/replica/types.js';
import { closeAll, cluster, TestNode, until } from './harness.js';
import { notGranted } from '../support/answers.js';

afterEach(closeAll);

const n2Id = 'n2' as NodeId;
const n1Id = 'n1' as NodeId;
const acquire: AcquireCall = {
  type: 'acquire',
  domain: 'orders/1' as Domain,
  requestId: '5f0c7a4e-8d64-4a40-9a55-3f3a1e6c3b11' as RequestId,
  holder: 'worker',
  ttlMs: 15_000,
  metadata: [['zone', 'a']],
  waitMs: 60_000,
  coolDownMs: 500,
  slots: 3,
  seenRevision: 1_796_000_000_000_000 as Revision,
};
const get = (n: number): ForwardableCall => ({ type: 'get', domain: `d/${n}` as Domain, freshness: 'linearizable' });

function forward(from: TestNode, id: number, call: ForwardableCall): void {
  from.transport.perform({
    type: 'forward',
    to: n2Id,
    id,
    term: 3,
    principal: { name: 'addr:10.0.0.7', authenticated: false },
    timeoutMs: 1_500,
    holdMs: 1_250,
    call,
  });
}

/** The number under which the nth call came; itself for a call that never came. */
function numberOf(by: TestNode, nth: number): number {
  return by.all('forwarded')[nth - 1]?.id ?? nth;
}

function answer(by: TestNode, nth: number, result: CallResult): void {
  by.transport.perform({ type: 'forwardResult', to: n1Id, id: numberOf(by, nth), result });
}

const notLeader: CallResult = { type: 'notLeader', outcome: 'not-done' };

test('a call arrives with its principal and time, and each kind of result comes back', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  forward(n1, 7, acquire);
  const [call] = await until('the call has come', () =>
    n2.all('forwarded').length === 1 ? n2.all('forwarded') : undefined,
  );
  expect(call).toEqual({
    type: 'forwarded',
    from: 'n1',
    id: numberOf(n2, 1),
    term: 3,
    principal: { name: 'addr:10.0.0.7', authenticated: false },
    timeoutMs: 1_500,
    holdMs: 1_250,
    call: acquire,
  });
  const { requestId } = acquire;
  const answered: CallResult = {
    type: 'answer',
    answer: { type: 'acquire', requestId, outcome: notGranted('held') },
    revision: 1_796_000_000_000_041 as Revision,
  };
  const failed: CallResult = {
    type: 'failure',
    failure: failure('DISK_FULL', 'too little free', { outcome: 'not-done' }),
  };
  answer(n2, 1, answered);
  forward(n1, 8, get(1));
  forward(n1, 9, get(2));
  await until('the calls have come', () => n2.all('forwarded').length === 3);
  answer(n2, 3, failed);
  answer(n2, 2, notLeader);
  await until('the results have come', () => n1.all('forwardResult').length === 3);
  expect(n1.all('forwardResult')).toEqual([
    { type: 'forwardResult', from: 'n2', id: 7, result: answered },
    { type: 'forwardResult', from: 'n2', id: 9, result: failed },
    { type: 'forwardResult', from: 'n2', id: 8, result: notLeader },
  ]);
});

test('a thousand calls of one turn come in order and are each answered once', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  for (let id = 1; id <= 1_000; id += 1) forward(n1, id, get(id));
  await until('all have come', () => n2.all('forwarded').length === 1_000);
  expect(n2.all('forwarded').map(({ id }) => id)).toEqual(Array.from({ length: 1_000 }, (_, at) => at + 1));
  for (let id = 1; id <= 1_000; id += 1) for (let twice = 0; twice < 2; twice += 1) answer(n2, id, notLeader);
  await until('all are answered', () => n1.all('forwardResult').length >= 1_000);
  answer(n2, 5_000, notLeader);
  forward(n1, 1_001, get(1));
  await until('one more has come', () => n2.all('forwarded').length === 1_001);
  answer(n2, 1_001, notLeader);
  await until('it is answered', () => n1.all('forwardResult').at(-1)?.id === 1_001);
  expect(n1.all('forwardResult')).toHaveLength(1_001);
});

test('a cancelled call is told once, and its result goes nowhere', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  forward(n1, 1, get(1));
  forward(n1, 2, get(2));
  n1.transport.perform({ type: 'forwardCancel', to: n2Id, id: 1 });
  n1.transport.perform({ type: 'forwardCancel', to: n2Id, id: 1 });
  await until('the cancellation has come', () => n2.all('forwardCancelled').length === 1);
  expect(n2.events.filter(({ type }) => type.startsWith('forward')).map(({ type }) => type)).toEqual([
    'forwarded',
    'forwarded',
    'forwardCancelled',
  ]);
  answer(n2, 1, notLeader);
  answer(n2, 2, notLeader);
  await until('the other is answered', () => n1.all('forwardResult').length === 1);
  expect(n1.all('forwardResult')[0]?.id).toBe(2);
  expect(n2.all('forwardCancelled')).toEqual([{ type: 'forwardCancelled', from: 'n1', id: numberOf(n2, 1) }]);
});

test('both ends are told when the stream between them ends', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  forward(n1, 1, get(1));
  await until('the call has come', () => n2.all('forwarded').length === 1);
  await n2.transport.close();
  await until('n1 knows', () => n1.all('forwardLost').length === 1);
  expect(n1.all('forwardResult')).toEqual([]);
  await until('n1 knows that n2 forwards nothing more', () => n1.all('forwarderLost').length === 1);
  expect(n1.all('forwarderLost')).toEqual([{ type: 'forwarderLost', node: 'n2' }]);
  // Nobody is there: the call waits for the next dial and is lost with it.
  forward(n1, 2, get(2));
  await until('the second is lost too', () => n1.all('forwardLost').length === 2);
});

test('calls that find no room are answered as not done, after the effect', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  const count = MAX_HELD_CALLS + 3;
  for (let id = 1; id <= count; id += 1) forward(n1, id, get(id));
  expect(n1.all('forwardResult')).toEqual([]);
  await until('all others have come', () => n2.all('forwarded').length === MAX_HELD_CALLS);
  const refused = n1.all('forwardResult');
  expect(refused.map(({ id }) => id)).toEqual([count - 2, count - 1, count]);
  for (const { result } of refused) {
    expect(result.type).toBe('failure');
    const { reason, outcome } = (result as { readonly failure: Failure }).failure;
    expect([reason, outcome]).toEqual(['OVERLOADED', 'not-done']);
  }
  expect(n1.all('forwardLost')).toEqual([]);
});

test('a leader without a configured address is named', async () => {
  const [n1] = (await cluster(['n1'])) as [TestNode];
  forward(n1, 1, get(1));
  const { result } = await until('the call is answered', () => n1.all('forwardResult')[0]);
  expect(result).toMatchObject({ type: 'failure', failure: { reason: 'NO_LEADER', outcome: 'not-done' } });
});

test('the result of an earlier attempt is not taken for that of a later one', async () => {
  const [n1, n2] = (await cluster(['n1', 'n2'])) as [TestNode, TestNode];
  forward(n1, 7, get(1));
  forward(n1, 7, get(1));
  await until('both have come', () => n2.all('forwarded').length === 2);
  answer(n2, 1, notLeader);
  answer(n2, 2, { type: 'notLeader', outcome: 'unknown' });
  await until('a result has come', () => n1.all('forwardResult').length > 0);
  expect(n1.all('forwardResult')).toEqual([
    { type: 'forwardResult', from: 'n2', id: 7, result: { type: 'notLeader', outcome: 'unknown' } },
  ]);
});
