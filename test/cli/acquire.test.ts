/** `fencepost acquire` with a queue, cool-downs and slots. */
import { describe, expect, it } from 'vitest';
import type { AcquireAnswer, Call, NotGrantedReason } from '../../src/base/api.js';
import type { Domain } from '../../src/base/ids.js';
import { errorWith, FencepostError } from '../../src/client/errors.js';
import { domainAnswer, notGranted } from '../support/answers.js';
import { ENDED, LEASE, type Replies, type Run, run } from './kit.js';

type Outcome = AcquireAnswer['outcome'];

/** Answers one acquire after another; an error is thrown. */
function answers(...outcomes: (Outcome | FencepostError)[]): Replies {
  return (call: Call) => {
    if (call.type !== 'acquire') return domainAnswer(LEASE.domain);
    const outcome = outcomes.shift();
    if (outcome === undefined) throw new Error('one acquire too many');
    return outcome instanceof FencepostError ? outcome : { type: 'acquire', requestId: call.requestId, outcome };
  };
}

const QUEUED: Outcome = { type: 'queued', position: 2, current: LEASE };
const GRANTED: Outcome = { type: 'granted', lease: LEASE };

function acquires({ calls }: Run): Call[] {
  return calls.filter(({ type }) => type === 'acquire');
}

describe('acquire --wait-ms', () => {
  it('calls again with the very same words for as long as the cluster says `queued`', async () => {
    const result = await run('acquire orders/eu --wait-ms 60000', answers(QUEUED, QUEUED, GRANTED));
    expect(result.code).toBe(0);
    expect(result.out).toContain('granted        yes');
    const [first, ...again] = acquires(result);
    expect(first).toMatchObject({ domain: 'orders/eu', waitMs: 60_000, coolDownMs: 0, slots: 1 });
    expect(again).toEqual([first, first]);
  });

  it('does not wait unless it is asked to', async () => {
    const result = await run('acquire orders/eu', answers(notGranted('held', LEASE)));
    expect(acquires(result)).toMatchObject([{ waitMs: 0 }]);
  });

  it('says how to come back to its place when the cluster cannot be asked any more', async () => {
    const lost = errorWith('TIMED_OUT', 'late');
    const result = await run('acquire orders/eu --wait-ms 60000', answers(QUEUED, lost));
    expect(result.code).toBe(3);
    const [first] = acquires(result);
    if (first?.type !== 'acquire') throw new Error('no acquire was sent');
    expect(result.err).toContain(`--request-id ${first.requestId} --seen-revision ${first.seenRevision}`);
  });

  it('ends with 1 when the wait is over, and when the place was lost', async () => {
    const over = await run('acquire orders/eu --wait-ms 5', answers(QUEUED, notGranted('wait_over', LEASE)));
    expect(over.code).toBe(1);
    expect(over.out).toContain('the domain was held for as long as --wait-ms says');
    const left = { ...ENDED, lease: undefined, reason: 'left_queue', by: '', note: '' } as const;
    const lost = await run('acquire orders/eu --wait-ms 5 --json', answers(QUEUED, { type: 'ended', ended: left }));
    expect(lost.code).toBe(1);
    expect(JSON.parse(lost.out)).toMatchObject({ outcome: 'ended', ended: { reason: 'left_queue' } });
    const text = await run('acquire orders/eu --wait-ms 5', answers({ type: 'ended', ended: left }));
    expect(text.out).toContain('The request has left the queue');
    expect(text.out).not.toContain('granted or withdrawn before');
  });
});

describe('acquire --slots --cool-down-ms', () => {
  it('passes both on, and shows the slot that was granted', async () => {
    const slot = { ...LEASE, domain: 'pool/a#3' as Domain };
    const line = 'acquire pool/a --slots 8 --cool-down-ms 2000';
    const result = await run(line, answers({ type: 'granted', lease: slot }));
    expect(result.code).toBe(0);
    expect(acquires(result)).toMatchObject([{ domain: 'pool/a', slots: 8, coolDownMs: 2_000 }]);
    expect(result.out).toContain('domain         pool/a#3');
  });

  it('shows how long a domain is closed, and how many wait for it', async () => {
    const closed = { ...notGranted('cool_down'), queueLength: 2, coolDownLeftMs: 1_500 };
    const result = await run('acquire orders/eu', answers(closed));
    expect(result.code).toBe(1);
    expect(result.out).toContain('closed for  1500 ms more');
    expect(result.out).toContain('waiting     2');
    const json = await run('acquire orders/eu --json', answers(closed));
    expect(JSON.parse(json.out)).toMatchObject({
      outcome: 'notGranted',
      reason: 'cool_down',
      queueLength: 2,
      coolDownLeftMs: 1_500,
      current: null,
    });
  });

  it.each([
    ['--wait-ms 86400001', '86400000'],
    ['--wait-ms -1', '86400000'],
    ['--slots 0', '1000'],
    ['--slots 1001', '1000'],
    ['--cool-down-ms 600001', '600000'],
  ])('%s is wrong usage', async (flag, limit) => {
    const result = await run(`acquire orders/eu ${flag}`, answers());
    expect(result).toMatchObject({ code: 2, calls: [] });
    expect(result.err).toContain(flag.split(' ')[0]);
    expect(result.err).toContain(limit);
  });
});

it.each<[NotGrantedReason, string]>([
  ['queue_full', 'as many as may wait for the domain do so already'],
  ['slots_differ', 'another number of slots, and that never changes'],
  ['recovering', 'the cluster holds grants back after a restore'],
])('a refusal because of %s says why', async (reason, why) => {
  const result = await run('acquire orders/eu --wait-ms 1000 --slots 2', answers(notGranted(reason)));
  expect(result.code).toBe(1);
  expect(result.out).toContain(why);
});

it('get shows who waits, in order, and how long the domain is closed', async () => {
  const at = Date.UTC(2026, 11, 1);
  const view = {
    ...domainAnswer(LEASE.domain),
    queueLength: 120,
    coolDownLeftMs: 900,
    waiters: [
      { holder: 'worker-b', metadata: [['zone', 'a']], queuedAtUnixMs: at },
      { holder: 'worker-c', metadata: [], queuedAtUnixMs: at + 1 },
    ],
  } as const;
  const result = await run('get orders/eu', () => view);
  expect(result.out).toContain('closed for  900 ms more');
  expect(result.out).toContain('waiting     120');
  expect(result.out).toContain('waiter 1    worker-b, since 2026-12-01T00:00:00.000Z');
  expect(result.out).toContain('waiter 2    worker-c');
});
