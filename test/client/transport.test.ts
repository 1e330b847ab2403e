import { describe, expect, test } from 'vitest';
import type { GetCall } from '../../src/base/api.js';
import type { Domain, NodeId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { Timeline } from '../../src/client/clock.js';
import type { Timers } from '../../src/client/surroundings.js';
import { Transport } from '../../src/client/transport.js';
import type { CallOutcome, OpenCall } from '../../src/client/transport.js';
import type { Call } from '../../src/base/api.js';
import { BASE, FakeNet, FakeTime, OTHER_INCARNATION, REFUSED, SILENT, answered, refused, requestId } from './world.js';
import { AbortedError } from '../../src/client/errors.js';
import type { FencepostError } from '../../src/client/errors.js';
import { domainAnswer } from '../support/answers.js';

const ENDPOINTS = ['a:1', 'b:1', 'c:1'];
const GET: GetCall = { type: 'get', domain: 'd' as Domain, freshness: 'linearizable' };
const GOT = domainAnswer('d' as Domain);
const n = (name: string) => name as NodeId;

function setUp(endpoints = ENDPOINTS, earlyMs = 0) {
  const time = new FakeTime();
  const net = new FakeNet();
  const timeline = new Timeline(time.surroundings.clocks);
  const timers: Timers = { set: (delayMs, fire) => time.surroundings.timers.set(delayMs - earlyMs, fire) };
  const transport = new Transport(endpoints, { timeline, timers, random: () => time.chance, open: net.open });
  const tried = (): string[] => net.arrived.map((arrived) => arrived.endpoint);
  return { time, net, transport, tried };
}

async function finished<C extends Call>(time: FakeTime, open: OpenCall<C>, withinMs: number): Promise<CallOutcome<C>> {
  let outcome: CallOutcome<C> | undefined;
  const watch = open.result.then((result) => {
    outcome = result;
  });
  for (let ms = 0; ms < withinMs && outcome === undefined; ms += 10) await time.run(10);
  if (outcome === undefined) throw new Error(`the call was not over within ${withinMs} ms`);
  await watch;
  return outcome;
}

function errorOf(outcome: CallOutcome<Call>): FencepostError {
  if (outcome.type !== 'failed') throw new Error('the call succeeded');
  return outcome.error;
}

describe('choice of the endpoint', () => {
  test('a refused connection: the next endpoint at once', async () => {
    const { time, net, transport, tried } = setUp();
    net.answer = ({ endpoint }) => (endpoint === 'a:1' ? SILENT : answered(GOT));
    const outcome = await finished(time, transport.call(GET, 30_000), 100);
    expect(outcome.type).toBe('answer');
    expect(tried()).toEqual(['a:1', 'b:1']);
  });

  test('a silent endpoint costs a second, not the deadline, and the answer counts from the second send', async () => {
    const { time, net, transport, tried } = setUp();
    net.answer = ({ endpoint }) => (endpoint === 'a:1' ? undefined : answered(GOT));
    const startMs = time.reading.monotonicMs;
    const outcome = await finished(time, transport.call(GET, 30_000), 1_500);
    expect(outcome.type === 'answer' && outcome.sentAt.monotonicMs - startMs).toBeGreaterThanOrEqual(1_000);
    expect(tried()).toEqual(['a:1', 'b:1']);
  });

  test('a silent endpoint is left alone by the calls that follow, and asked again later', async () => {
    const { time, net, transport, tried } = setUp(['a:1', 'b:1']);
    net.answer = ({ endpoint }) => (endpoint === 'a:1' ? SILENT : answered(GOT, { node: n('n2'), leader: undefined }));
    await finished(time, transport.call(GET, 30_000), 100);
    await finished(time, transport.call(GET, 30_000), 100);
    expect(tried()).toEqual(['a:1', 'b:1', 'b:1']);
    net.answer = ({ endpoint }) => (endpoint === 'b:1' ? SILENT : answered(GOT, { node: n('n1'), leader: undefined }));
    await time.run(600);
    const outcome = await finished(time, transport.call(GET, 30_000), 100);
    expect(outcome.type).toBe('answer');
    expect(tried().slice(3)).toEqual(['b:1', 'a:1']);
  });

  test('goes direct to the leader once an endpoint is known to be it', async () => {
    const { time, net, transport, tried } = setUp();
    net.answer = ({ endpoint }) => answered(GOT, { node: n(endpoint), leader: n('c:1') });
    for (let n = 0; n < 5; n++) await finished(time, transport.call(GET, 30_000), 100);
    // Each endpoint is asked for its name once, until the leader is found.
    expect(tried()).toEqual(['a:1', 'b:1', 'c:1', 'c:1', 'c:1']);
  });

  test('goes past a leader that is silent', async () => {
    const { time, net, transport, tried } = setUp();
    net.answer = ({ endpoint }) => answered(GOT, { node: n(endpoint), leader: n('a:1') });
    await finished(time, transport.call(GET, 30_000), 100);
    net.answer = ({ endpoint }) =>
      endpoint === 'a:1' ? undefined : answered(GOT, { node: n(endpoint), leader: n(endpoint) });
    await finished(time, transport.call(GET, 30_000), 1_500);
    await finished(time, transport.call(GET, 30_000), 100);
    expect(tried()).toEqual(['a:1', 'a:1', 'b:1', 'b:1']);
  });
});

describe('the error table', () => {
  test.each(['NO_LEADER', 'LEADER_CHANGED', 'SHUTTING_DOWN', 'TOO_MANY_HELD_CALLS', 'NOT_FORMED'] as const)(
    '%s: the same call, with the same request id, on another node',
    async (reason) => {
      const { time, net, transport, tried } = setUp();
      net.answer = ({ endpoint }) =>
        endpoint === 'a:1' ? refused(reason, { retryDelayMs: 50 }) : answered({ type: 'withdraw' });
      const outcome = await finished(
        time,
        transport.call({ type: 'withdraw', domain: GET.domain, requestId: requestId(9) }, 30_000),
        200,
      );
      expect(outcome.type).toBe('answer');
      expect(tried()).toEqual(['a:1', 'b:1']);
      expect(net.of('withdraw').map((arrived) => arrived.call.requestId)).toEqual([requestId(9), requestId(9)]);
    },
  );

  test('OVERLOADED: the same node, after the delay that it asks for', async () => {
    const { time, net, transport, tried } = setUp(['a:1']);
    let times = 0;
    net.answer = () => (++times === 1 ? refused('OVERLOADED', { retryDelayMs: 400 }) : answered(GOT));
    const open = transport.call(GET, 30_000);
    await time.run(250);
    expect(tried()).toEqual(['a:1']);
    expect((await finished(time, open, 300)).type).toBe('answer');
  });

  test.each(['INVALID_REQUEST', 'REQUEST_ID_REUSED', 'INTERNAL'] as const)('%s is not repeated', async (reason) => {
    const { time, net, transport, tried } = setUp();
    net.answer = () => refused(reason);
    const outcome = await finished(time, transport.call(GET, 30_000), 50);
    expect(errorOf(outcome).code).toBe(reason);
    expect(tried()).toHaveLength(1);
  });

  test('an operator’s call is not repeated when it may have happened, and is when it did not', async () => {
    const { time, net, transport, tried } = setUp();
    const call = { type: 'forceRelease', domain: GET.domain, token: 5 as Revision, note: 'x' } as const;
    net.answer = () => SILENT;
    const first = errorOf(await finished(time, transport.call(call, 30_000), 50));
    expect(first).toMatchObject({ code: 'UNREACHABLE', outcome: 'unknown' });
    expect(tried()).toHaveLength(1);
    net.answer = ({ endpoint }) =>
      endpoint === 'c:1'
        ? answered({ type: 'forceRelease', released: true, currentToken: 0 as Revision })
        : refused('NO_LEADER', { outcome: 'not-done' });
    expect((await finished(time, transport.call(call, 30_000), 500)).type).toBe('answer');
  });

  test('a call that reached nobody was not done, is repeated whatever it is, and the error names each endpoint', async () => {
    const { time, net, transport, tried } = setUp();
    net.answer = () => REFUSED;
    const call = { type: 'forceRelease', domain: GET.domain, token: 5 as Revision, note: 'x' } as const;
    const error = errorOf(await finished(time, transport.call(call, 2_000), 2_100));
    expect(error).toMatchObject({
      code: 'UNREACHABLE',
      outcome: 'not-done',
      message: 'no node answered (a:1: connection refused; b:1: connection refused; c:1: connection refused)',
    });
    expect(tried().length).toBeGreaterThan(3);
    expect(errorOf(await finished(time, transport.once(GET, 100, 'b:1'), 50))).toMatchObject({
      outcome: 'not-done',
      message: 'b:1: connection refused',
    });
  });

  test('one unknown attempt makes the whole call unknown, whatever the last one says', async () => {
    const { time, net, transport } = setUp();
    let times = 0;
    net.answer = () => (++times === 1 ? SILENT : refused('INVALID_REQUEST'));
    const error = errorOf(await finished(time, transport.call(GET, 30_000), 200));
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', outcome: 'unknown' });
  });
});

describe('deadlines', () => {
  test('with every endpoint silent the call ends at its own deadline and names the reason', async () => {
    const { time, net, transport, tried } = setUp();
    const startMs = time.reading.monotonicMs;
    const outcome = await finished(time, transport.call(GET, 5_000), 6_000);
    expect(errorOf(outcome)).toMatchObject({ code: 'UNREACHABLE', outcome: 'unknown', retryable: true });
    expect(time.reading.monotonicMs - startMs).toBeLessThanOrEqual(5_020);
    expect(new Set(tried())).toEqual(new Set(ENDPOINTS));
    expect(net.arrived.every((arrived) => arrived.timeoutMs <= 5_000)).toBe(true);
  });

  test.each([1_000, 2_000, 2_990, 3_050, 5_000, 10_000])(
    'nodes that say NO_LEADER shortly before the deadline of each attempt: that, and not done (%s ms)',
    async (timeoutMs) => {
      // As `setTimeout` may, timers fire a little early.
      const { time, net, transport } = setUp(ENDPOINTS, 0.6);
      net.answer = (arrived) => {
        const { timeoutMs: limitMs } = arrived;
        if (limitMs < 20) return undefined;
        time.surroundings.timers.set(limitMs - Math.min(50, limitMs / 4), () => {
          arrived.reply(refused('NO_LEADER', { outcome: 'not-done', retryDelayMs: 200 }));
        });
        return undefined;
      };
      const startMs = time.reading.monotonicMs;
      const error = errorOf(await finished(time, transport.call(GET, timeoutMs), timeoutMs + 100));
      expect(error).toMatchObject({ code: 'NO_LEADER', outcome: 'not-done' });
      expect(time.reading.monotonicMs - startMs).toBeLessThanOrEqual(timeoutMs + 10);
      expect(Math.min(...net.arrived.map((arrived) => arrived.timeoutMs))).toBeGreaterThanOrEqual(150);
    },
  );

  test('a silence that the deadline cut does not hide what the node said before', async () => {
    const { time, net, transport } = setUp(['a:1']);
    let times = 0;
    net.answer = () => (++times === 1 ? refused('NO_LEADER', { outcome: 'not-done' }) : undefined);
    const error = errorOf(await finished(time, transport.call(GET, 500), 600));
    expect(error.code).toBe('NO_LEADER');
    expect(error.message).toContain('said NO_LEADER');
    expect(error.outcome).toBe('unknown');
  });

  test('what one node said is forgotten when all have been silent since', async () => {
    const { time, net, transport } = setUp();
    let times = 0;
    net.answer = () => (++times === 1 ? refused('NO_LEADER') : SILENT);
    expect(errorOf(await finished(time, transport.call(GET, 5_000), 6_000)).code).toBe('UNREACHABLE');
    times = 0;
    net.answer = ({ endpoint }) => (endpoint === 'a:1' ? refused('NO_LEADER') : SILENT);
    expect(errorOf(await finished(time, transport.call(GET, 5_000), 6_000)).code).toBe('NO_LEADER');
  });

  test('a call with next to no time makes one attempt, and no time of zero is told of', async () => {
    const { time, net, transport } = setUp();
    const error = errorOf(await finished(time, transport.call(GET, 0.2), 50));
    expect(error.message).toContain('no answer within 1 ms');
    expect(net.arrived).toHaveLength(1);
  });

  test('attempts get longer while nobody answers in time, so that a slow cluster is not asked ever more often', async () => {
    const { time, net, transport } = setUp();
    const open = transport.call(GET, 30_000);
    await time.run(31_000);
    await open.result;
    expect(net.arrived.slice(0, 4).map((arrived) => arrived.timeoutMs)).toEqual([1_000, 2_000, 4_000, 8_000]);
  });

  test('refused connections do not spin', async () => {
    const { time, net, transport, tried } = setUp();
    net.answer = () => SILENT;
    const open = transport.call(GET, 10_000);
    await time.run(10_100);
    await open.result;
    expect(tried().length).toBeLessThan(150);
    expect(tried().length).toBeGreaterThan(20);
  });

  test('a call that was given up is over at once, and its late answer is not heard', async () => {
    const { time, net, transport } = setUp();
    const open = transport.call(GET, 30_000);
    await time.run(10);
    open.cancel(new AbortedError('enough'));
    net.last('get').reply(answered(GOT));
    expect(errorOf(await open.result).code).toBe('ABORTED');
    expect(time.timers).toBe(0);
  });

  test('close ends open calls with CLOSED, refuses new ones and leaves no timer', async () => {
    const { time, net, transport } = setUp();
    const open = transport.call(GET, 30_000);
    await time.run(10);
    transport.close();
    expect(errorOf(await open.result).code).toBe('CLOSED');
    expect(errorOf(await transport.call(GET, 30_000).result).code).toBe('CLOSED');
    expect(net.closed).toEqual(ENDPOINTS);
    expect(time.timers).toBe(0);
  });
});

describe('OLD_CLUSTER', () => {
  test('an answer of another incarnation with a lower revision is not used; another endpoint is asked', async () => {
    const { time, net, transport, tried } = setUp();
    net.answer = () => answered(GOT);
    await finished(time, transport.call(GET, 30_000), 50);
    net.answer = ({ endpoint }) =>
      endpoint === 'a:1'
        ? answered(GOT, { incarnation: OTHER_INCARNATION, revision: BASE as Revision })
        : answered(GOT, { node: n('n2'), revision: (BASE + 20) as Revision });
    const outcome = await finished(time, transport.call(GET, 30_000), 200);
    expect(outcome.type === 'answer' && outcome.header?.node).toBe('n2');
    expect(tried()).toEqual(['a:1', 'a:1', 'b:1']);
    expect(transport.seenRevision).toBe(BASE + 20);
  });

  test('is reported when every endpoint is of it', async () => {
    const { time, net, transport } = setUp();
    net.answer = () => answered(GOT);
    await finished(time, transport.call(GET, 30_000), 50);
    net.answer = () => answered(GOT, { incarnation: OTHER_INCARNATION, revision: BASE as Revision });
    const error = errorOf(await finished(time, transport.call(GET, 30_000), 2_000));
    expect(error.code).toBe('OLD_CLUSTER');
    expect(error.message).toContain(OTHER_INCARNATION);
  });

  test('another incarnation with a greater revision is the cluster restored, and then the old one is old', async () => {
    const { time, net, transport } = setUp(['a:1']);
    net.answer = () => answered(GOT);
    await finished(time, transport.call(GET, 30_000), 50);
    net.answer = () => answered(GOT, { incarnation: OTHER_INCARNATION, revision: (BASE + 1_000) as Revision });
    expect((await finished(time, transport.call(GET, 30_000), 50)).type).toBe('answer');
    net.answer = () => answered(GOT, { revision: (BASE + 999) as Revision });
    expect(errorOf(await finished(time, transport.call(GET, 30_000), 50)).code).toBe('OLD_CLUSTER');
  });
});
