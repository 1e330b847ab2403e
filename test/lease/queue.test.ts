/** Queueing: who may wait, where it stands, what a waiter's repeated call is answered. */
import { describe, expect, it } from 'vitest';
import { findRequest, leaseOf, position, queueOf } from '../../src/lease/lookup.js';
import {
  acquire,
  domain,
  emptyState,
  expire,
  granted,
  id,
  next,
  NOTHING,
  others,
  queued,
  release,
  resultOf,
  rev,
  withdraw,
} from './kit.js';

const WAIT = { waitMs: 60_000 };

describe('an acquire that may wait, of a held domain', () => {
  it('is queued with all that it asked for, and is told of the lease in its way', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    const asks = {
      ...WAIT,
      metadata: [['k', 'v']],
      ttlMs: 9_000,
      coolDownMs: 50,
      owner: 'CN=a',
      principal: 'p',
    } as const;
    const applied = next(state, acquire(state, 'a', 2, asks));
    const waiter = {
      domain: 'a',
      queuedAt: rev(2),
      requestId: id(2),
      holder: 'worker',
      metadata: [['k', 'v']],
      ttlMs: 9_000,
      coolDownMs: 50,
      slots: 1,
      waitMs: 60_000,
      queuedAtUnixMs: 1_796_000_000_123,
      owner: 'CN=a',
      principal: 'p',
    };
    expect(applied).toEqual({ result: { type: 'queued', waiter, current: lease }, ...NOTHING, queued: waiter });
    expect(findRequest(state, id(2))).toEqual({ type: 'waiting', waiter });
    expect(leaseOf(state, domain('a'))).toBe(lease);
  });

  it('stands behind those who came before, and moves up as they leave', () => {
    const state = emptyState();
    granted(state, 'a', 1);
    granted(state, 'b', 2);
    const [first, second, third] = [queued(state, 'a', 3), queued(state, 'a', 4), queued(state, 'a', 5)];
    const elsewhere = queued(state, 'b', 6);
    expect([first, second, third, elsewhere].map((one) => position(state, one))).toEqual([1, 2, 3, 1]);
    next(state, withdraw('a', 4));
    expect([first, third].map((one) => position(state, one))).toEqual([1, 2]);
    expect(() => position(state, second)).toThrow(/should wait for a and does not/);
    expect(queueOf(state, domain('a'))).toEqual([first, third]);
  });

  it('is granted at once where the domain is free, however long it would have waited', () => {
    const state = emptyState();
    expect(granted(state, 'a', 1, WAIT).token).toBe(rev(1));
    expect(queueOf(state, domain('a'))).toEqual([]);
  });

  it('is refused when the queue is full, and remembered nowhere; there is room again when one leaves', () => {
    const state = emptyState({ limits: { queue: 2 } });
    const lease = granted(state, 'a', 1);
    granted(state, 'b', 2);
    queued(state, 'a', 3);
    queued(state, 'a', 4);
    const command = acquire(state, 'a', 5, WAIT);
    const full = { type: 'notGranted', reason: 'queue_full', current: lease };
    expect(next(state, command)).toEqual({ result: full, ...NOTHING });
    expect(findRequest(state, id(5))).toBeUndefined();
    // The limit is that of each domain.
    queued(state, 'b', 6);
    next(state, withdraw('a', 3));
    expect(resultOf(state, command).type).toBe('queued');
  });

  it('that has seen less than what is forgotten is too old, rather than queued', () => {
    const state = emptyState({ keep: 1 });
    const old = acquire(state, 'a', 1, WAIT);
    granted(state, 'a', 2);
    others(state, 2, 100);
    expect(resultOf(state, old).type).toBe('tooOld');
    expect(queueOf(state, domain('a'))).toEqual([]);
  });
});

describe('a known id that waits', () => {
  it('is answered its place again, and changes nothing', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    const waiter = queued(state, 'a', 2);
    const again = acquire(state, 'a', 2, { waitMs: 0, metadata: [['other', 'x']], principal: 'other' });
    expect(next(state, again)).toEqual({ result: { type: 'queued', waiter, current: lease }, ...NOTHING });
    expect(queueOf(state, domain('a'))).toEqual([waiter]);
  });

  it.each([
    ['domain', { domain: domain('b') }],
    ['ttl_ms', { ttlMs: 14_999 }],
    ['holder', { holder: 'somebody' }],
    ['cool_down_ms', { coolDownMs: 1 }],
    ['slots', { slots: 2 }],
    ['owner', { owner: 'CN=b' }],
  ])('is refused with other contents, and the difference is named: %s', (difference, more) => {
    const state = emptyState();
    granted(state, 'a', 1);
    const waiter = queued(state, 'a', 2, { owner: 'CN=a' });
    const other = acquire(state, 'a', 2, { ...WAIT, owner: 'CN=a', ...more });
    expect(next(state, other)).toEqual({ result: { type: 'reused', difference }, ...NOTHING });
    expect(queueOf(state, domain('a'))).toEqual([waiter]);
  });

  it('keeps its place while everything else is forgotten around it (F6)', () => {
    const state = emptyState({ keep: 2 });
    granted(state, 'a', 1);
    const command = acquire(state, 'a', 2, WAIT);
    const result = resultOf(state, command);
    others(state, 50, 100);
    expect(resultOf(state, command)).toEqual(result);
  });

  it('that finds its domain free is granted by its own entry, with the metadata that it was queued with', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    const waiter = queued(state, 'a', 2, { metadata: [['k', 'v']] });
    next(state, release(lease, '', [2]));
    expect(leaseOf(state, domain('a'))).toBeUndefined();
    const again = acquire(state, 'a', 2, { metadata: [['later', 'x']], atUnixMs: 77 });
    const fresh = {
      ...{ domain: 'a', token: rev(4), requestId: id(2), holder: 'worker', metadata: [['k', 'v']], ttlMs: 15_000 },
      ...{
        coolDownMs: 0,
        grantedAtUnixMs: 77,
        owner: '',
        principal: 'client',
        version: 0,
        checkpointLeftMs: undefined,
      },
    };
    const expected = { result: { type: 'granted', lease: fresh }, ...NOTHING, granted: [fresh], left: [waiter] };
    expect(next(state, again)).toEqual(expected);
    expect(findRequest(state, id(2))).toEqual({ type: 'live', lease: fresh });
    expect(queueOf(state, domain('a'))).toEqual([]);
  });

  it('is granted then wherever it stands: those in front of it are not called for', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    const [first, , third] = [queued(state, 'a', 2), queued(state, 'a', 3), queued(state, 'a', 4)];
    next(state, release(lease, '', [2, 3, 4]));
    expect(resultOf(state, acquire(state, 'a', 3)).type).toBe('granted');
    expect(queueOf(state, domain('a'))).toEqual([first, third]);
  });

  it('that was queued and is over is answered with its end', () => {
    const state = emptyState();
    granted(state, 'a', 1);
    queued(state, 'a', 2);
    next(state, withdraw('a', 2));
    const ended = { lease: undefined, reason: 'withdrawn', by: '', note: '', currentToken: rev(1) };
    expect(resultOf(state, acquire(state, 'a', 2))).toEqual({ type: 'ended', ended });
    // What it had asked for is remembered.
    expect(resultOf(state, acquire(state, 'a', 2, { ttlMs: 4_000 }))).toEqual({ type: 'reused', difference: 'ttl_ms' });
  });
});

describe('an unknown id that finds the domain free with a queue of detached waiters', () => {
  it('is granted: a free domain is granted to whoever asks', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    const waiter = queued(state, 'a', 2);
    next(state, release(lease, '', [2]));
    expect(granted(state, 'a', 3).token).toBe(rev(4));
    expect(queueOf(state, domain('a'))).toEqual([waiter]);
  });
});

describe('a withdrawal of a waiter', () => {
  it('takes it out of the queue and remembers it, with what it asked for', () => {
    const state = emptyState();
    granted(state, 'a', 1);
    const waiter = queued(state, 'a', 2, { coolDownMs: 9, owner: 'CN=a' });
    const behind = queued(state, 'a', 3);
    expect(next(state, withdraw('a', 2, 'CN=a'))).toEqual({
      result: { type: 'withdrawn' },
      ...NOTHING,
      left: [waiter],
    });
    expect(queueOf(state, domain('a'))).toEqual([behind]);
    const request = {
      ...{ requestId: id(2), domain: 'a', finishedAt: rev(4), token: undefined, reason: 'withdrawn', by: '', note: '' },
      ...{ owner: 'CN=a', asked: { ttlMs: 15_000, holder: 'worker', coolDownMs: 9, slots: 1 } },
    };
    expect(findRequest(state, id(2))).toEqual({ type: 'finished', request });
  });

  it('by another owner, or for another domain, is refused', () => {
    const state = emptyState();
    granted(state, 'a', 1);
    const waiter = queued(state, 'a', 2, { owner: 'CN=a' });
    const refused = (difference: string): object => ({ result: { type: 'reused', difference }, ...NOTHING });
    expect(next(state, withdraw('a', 2, 'CN=b'))).toEqual(refused('owner'));
    expect(next(state, withdraw('b', 2, 'CN=a'))).toEqual(refused('domain'));
    expect(queueOf(state, domain('a'))).toEqual([waiter]);
  });

  it('grants nothing to those behind it while the domain is held', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    queued(state, 'a', 2);
    queued(state, 'a', 3);
    expect(next(state, withdraw('a', 2)).granted).toEqual([]);
    next(state, expire([lease]));
    expect(leaseOf(state, domain('a'))?.requestId).toBe(id(3));
  });
});
