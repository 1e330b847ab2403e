/** A candidate: campaigns, leads while its lease is held, campaigns anew after a loss. */
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { Revision } from '../../src/base/revision.js';
import type { ElectOptions } from '../../src/client/elect.js';
import { ClosedError } from '../../src/client/errors.js';
import type { Lease } from '../../src/client/lease.js';
import { notGranted } from '../support/answers.js';
import { answered, BASE, clientWorld, generous, REFUSED, refused, settle, within } from './world.js';
import type { Arrived } from './world.js';

const TTL = 3_000;

/** One time of leadership, in the hands of the test. */
interface Term {
  readonly lease: Lease;
  readonly stop: AbortSignal;
  readonly end: (value: string) => void;
  readonly fail: (error: unknown) => void;
}

function candidate(options: ElectOptions = {}, callTimeoutMs = 2_000) {
  const world = clientWorld({ callTimeoutMs });
  const terms: Term[] = [];
  const elected = world.client.elect('scheduler', { ttlMs: TTL, ...options }, (lease, stop) => {
    return new Promise<string>((end, fail) => terms.push({ lease, stop, end, fail }));
  });
  // Each test looks at it in the end; until then a rejection has a listener.
  elected.catch(() => undefined);
  const term = (at: number): Term => {
    const found = terms[at];
    if (found === undefined) throw new Error(`there were ${terms.length} terms`);
    return found;
  };
  return { ...world, terms, term, elected };
}

/** The cluster says that the lease is over. */
function usurp({ net }: ReturnType<typeof clientWorld>): void {
  const ended = {
    lease: undefined,
    reason: 'force_released',
    by: 'op',
    note: '',
    currentToken: 0 as Revision,
  } as const;
  net.answer = ({ call }: Arrived) =>
    call.type === 'renew'
      ? answered({ type: 'renew', results: call.leases.map(() => ({ type: 'ended', ended }) as const) })
      : generous()({ call });
}

describe('elect', () => {
  test('waits a day in the queue, leads, and gives what lead returns; then the lease is released', async () => {
    const { time, net, term, elected } = candidate({ metadata: { zone: 'eu' } });
    await time.run(100);
    expect(net.last('acquire').call).toMatchObject({ waitMs: 86_400_000, ttlMs: TTL, metadata: [['zone', 'eu']] });
    await time.run(10 * TTL);
    expect(term(0).lease.isHeld()).toBe(true);
    expect(term(0).stop.aborted).toBe(false);
    term(0).end('done');
    expect(await within(time, 100, elected)).toBe('done');
    expect(net.of('release')).toHaveLength(1);
    expect(time.timers).toBe(0);
  });

  test('after a loss campaigns anew, under a new token, but not before lead has returned', async () => {
    const world = candidate();
    const { time, net, terms, term, elected } = world;
    await time.run(100);
    usurp(world);
    await time.run(TTL);
    expect(term(0).stop.aborted).toBe(true);
    expect(term(0).stop.reason).toMatchObject({ code: 'LEASE_LOST', ended: { reason: 'force_released' } });
    await time.run(TTL);
    expect(net.of('acquire')).toHaveLength(1);
    expect(terms).toHaveLength(1);
    let token = BASE + 500;
    const grant = generous();
    net.answer = (arrived) => {
      const reply = grant(arrived);
      if (reply.type !== 'answer' || reply.answer.type !== 'acquire' || reply.answer.outcome.type !== 'granted')
        return reply;
      const lease = { ...reply.answer.outcome.lease, token: ++token as Revision };
      return { ...reply, answer: { ...reply.answer, outcome: { type: 'granted', lease } } };
    };
    term(0).end('stopped, and too late for this to count');
    await time.run(500);
    expect(terms).toHaveLength(2);
    expect(term(1).lease.token).toBeGreaterThan(term(0).lease.token);
    expect(term(0).lease.isHeld()).toBe(false);
    term(1).end('second');
    expect(await within(time, 100, elected)).toBe('second');
  });

  test.each([
    ['the reason of the signal', (reason: unknown) => reason],
    ['an AbortError', () => new DOMException('This operation was aborted', 'AbortError')],
    ['an error caused by the reason', (reason: unknown) => new Error('cut short', { cause: reason })],
  ])('after a loss lead may throw %s', async (_, error) => {
    const world = candidate();
    const { time, net, terms, term } = world;
    await time.run(100);
    usurp(world);
    await time.run(TTL);
    net.answer = generous();
    term(0).fail(error(term(0).stop.reason));
    await time.run(500);
    expect(terms).toHaveLength(2);
  });

  test.each([
    ['held', false],
    ['lost', true],
  ])('what else lead throws ends it, the lease being %s', async (_, lost) => {
    const world = candidate();
    const { time, net, terms, term, elected } = world;
    await time.run(100);
    if (lost) usurp(world);
    await time.run(TTL);
    term(0).fail(new TypeError('a defect'));
    await expect(within(time, 100, elected)).rejects.toThrow('a defect');
    expect(net.of('release')).toHaveLength(lost ? 0 : 1);
    expect(terms).toHaveLength(1);
    expect(time.timers).toBe(0);
  });
});

describe('a candidate that gives up', () => {
  test('while it waits: undefined, and the request is withdrawn', async () => {
    const quit = new AbortController();
    const { time, net, client, elected } = candidate({ signal: quit.signal });
    const { answer } = net;
    net.answer = (arrived) => (arrived.call.type === 'acquire' ? undefined : answer(arrived));
    await time.run(100);
    quit.abort();
    expect(await within(time, 100, elected)).toBeUndefined();
    expect(net.of('withdraw')).toHaveLength(1);
    await within(time, 100, client.close());
    expect(time.timers).toBe(0);
  });

  test('while it leads: lead is told, and the lease is held until it has returned', async () => {
    const quit = new AbortController();
    const { time, net, term, elected } = candidate({ signal: quit.signal });
    await time.run(100);
    quit.abort(new Error('SIGTERM'));
    await time.run(2 * TTL);
    expect(term(0).stop.reason).toMatchObject({ message: 'SIGTERM' });
    expect(term(0).lease.isHeld()).toBe(true);
    expect(net.of('release')).toEqual([]);
    term(0).end('tidied');
    expect(await within(time, 100, elected)).toBe('tidied');
    expect(getEventListeners(quit.signal, 'abort')).toEqual([]);
    expect(getEventListeners(term(0).lease.signal, 'abort')).toEqual([]);
    expect(net.of('release')).toHaveLength(1);
  });

  test('while it leads: undefined when lead throws what the signal made it throw', async () => {
    const quit = new AbortController();
    const { time, term, elected } = candidate({ signal: quit.signal });
    await time.run(100);
    quit.abort();
    term(0).fail(term(0).stop.reason);
    expect(await within(time, 100, elected)).toBeUndefined();
  });

  test('before it began: nothing is asked', async () => {
    const { time, net, elected } = candidate({ signal: AbortSignal.abort() });
    expect(await within(time, 100, elected)).toBeUndefined();
    expect(net.arrived).toEqual([]);
  });

  test('by the closing of its client: told, and rejects with CLOSED', async () => {
    const { time, client, term, elected } = candidate();
    await time.run(100);
    const closing = client.close();
    await settle();
    expect(term(0).stop.reason).toBeInstanceOf(ClosedError);
    term(0).fail(term(0).stop.reason);
    await within(time, 100, closing);
    await expect(elected).rejects.toBeInstanceOf(ClosedError);
    await expect(client.elect('d', {}, () => 1)).rejects.toMatchObject({ code: 'CLOSED', outcome: 'not-done' });
  });
});

describe('a campaign', () => {
  test('goes on while no node answers; onRetry is told', async () => {
    const errors: string[] = [];
    const { time, net, terms, elected } = candidate({ onRetry: ({ code }) => errors.push(code) });
    net.answer = () => REFUSED;
    await time.run(30_000);
    expect(errors.length).toBeGreaterThan(5);
    expect(new Set(errors)).toEqual(new Set(['UNREACHABLE']));
    net.answer = generous();
    await time.run(5_000);
    expect(terms).toHaveLength(1);
    terms[0]?.end('x');
    await within(time, 100, elected);
  });

  test('keeps its request id over a failover, and tells onRetry of it', async () => {
    const errors: string[] = [];
    const { time, net, terms } = candidate({ onRetry: ({ code }) => errors.push(code) });
    net.answer = ({ call }) => (call.type === 'acquire' ? refused('NO_LEADER') : generous()({ call }));
    await time.run(10_000);
    expect(errors).toContain('NO_LEADER');
    net.answer = generous();
    await time.run(1_000);
    expect(new Set(net.of('acquire').map(({ call }) => call.requestId)).size).toBe(1);
    expect(terms).toHaveLength(1);
  });

  test.each(['queue_full', 'recovering', 'cool_down', 'wait_over'] as const)('goes on after %s', async (reason) => {
    const errors: unknown[] = [];
    const { time, net, terms } = candidate({ onRetry: (error) => errors.push(error) });
    net.answer = ({ call }) =>
      call.type === 'acquire'
        ? answered({ type: 'acquire', requestId: call.requestId, outcome: notGranted(reason) })
        : generous()({ call });
    await time.run(5_000);
    expect(errors).toContainEqual(expect.objectContaining({ code: 'NOT_GRANTED', reason }));
    expect(errors.length).toBeGreaterThan(2);
    expect(errors.length).toBeLessThan(12);
    net.answer = generous();
    await time.run(2_000);
    expect(terms).toHaveLength(1);
  });

  test.each([
    ['an option is wrong', { ttlMs: -1 }, undefined, 'INVALID_OPTIONS'],
    ['the cluster refuses it for good', {}, refused('INVALID_REQUEST'), 'INVALID_REQUEST'],
  ] as const)('ends when %s', async (_, options, reply, code) => {
    const { time, net, elected } = candidate(options);
    net.answer = ({ call }) => (call.type === 'acquire' && reply !== undefined ? reply : generous()({ call }));
    await expect(within(time, 1_000, elected)).rejects.toMatchObject({ code });
  });

  test('ends with what onRetry throws; nothing is left behind', async () => {
    const { time, net, client, elected } = candidate({
      onRetry: () => {
        throw new Error('enough');
      },
    });
    net.answer = ({ call }) =>
      call.type === 'acquire' ? refused('LEADER_CHANGED', { outcome: 'unknown' }) : generous()({ call });
    await expect(within(time, 10_000, elected)).rejects.toThrow('enough');
    expect(net.of('withdraw')).toHaveLength(1);
    await within(time, 100, client.close());
    expect(time.timers).toBe(0);
  });
});
