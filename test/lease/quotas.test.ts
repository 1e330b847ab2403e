/** Quotas: leases and waiters of each principal, and below each prefix. */
import { describe, expect, it } from 'vitest';
import { findRequest, leaseOf, queueOf } from '../../src/lease/lookup.js';
import { AssertionFailed } from '../../src/base/assert.js';
import { count } from '../../src/lease/quotas.js';
import {
  acquire,
  createTable,
  cut,
  domain,
  emptyState,
  endWait,
  expire,
  granted,
  id,
  load,
  next,
  NOTHING,
  queued,
  release,
  resultOf,
  withdraw,
} from './kit.js';

const ANN = { principal: 'ann' };
const BOB = { principal: 'bob' };

describe('a quota of leases of a principal', () => {
  const limits = { leasesPerPrincipal: 2 };
  const over = { type: 'overQuota', of: 'ann', what: 'leases and waiters', limit: 2 };

  it('refuses one more, whoever the holder says it is; others have their own', () => {
    const state = emptyState({ limits });
    granted(state, 'a', 1, ANN);
    granted(state, 'b', 2, ANN);
    const command = acquire(state, 'c', 3, { ...ANN, holder: 'somebody', owner: 'CN=x', waitMs: 9 });
    expect(next(state, command)).toEqual({ result: over, ...NOTHING });
    expect(findRequest(state, id(3))).toBeUndefined();
    expect(granted(state, 'c', 4, BOB).domain).toBe('c');
  });

  it('has room again after each kind of end', () => {
    const state = emptyState({ limits });
    granted(state, 'a', 1, ANN);
    const refused = (request: number): void => {
      expect(resultOf(state, acquire(state, 'z', request, ANN))).toEqual(over);
    };
    const b = granted(state, 'b', 2, ANN);
    refused(50);
    next(state, release(b));
    const c = granted(state, 'c', 3, ANN);
    refused(51);
    next(state, expire([c]));
    granted(state, 'd', 4, ANN);
    refused(52);
    next(state, withdraw('d', 4));
    granted(state, 'e', 5, ANN);
    refused(53);
    next(state, endWait([5]));
    granted(state, 'f', 6, ANN);
  });

  it('is not asked for a known id, nor for one that is refused anyway', () => {
    const state = emptyState({ limits: { leasesPerPrincipal: 1 } });
    const lease = granted(state, 'a', 1, ANN);
    expect(resultOf(state, acquire(state, 'a', 1, ANN))).toEqual({ type: 'granted', lease });
    expect(resultOf(state, acquire(state, 'a', 2, ANN))).toMatchObject({ reason: 'held' });
  });

  it('cannot be evaded by waiting: who waits has room for the lease, or is refused', () => {
    const state = emptyState({ limits });
    const [a, b] = [granted(state, 'a', 1, BOB), granted(state, 'b', 2, BOB)];
    granted(state, 'c', 3, ANN);
    queued(state, 'a', 4, ANN);
    const command = acquire(state, 'b', 5, { ...ANN, waitMs: 9 });
    expect(next(state, command)).toEqual({ result: over, ...NOTHING });
    expect(findRequest(state, id(5))).toBeUndefined();
    // Nor can what it waits for be taken away by a grant.
    expect(resultOf(state, acquire(state, 'z', 6, ANN))).toEqual(over);
    next(state, release(a));
    next(state, release(b));
    expect(state.counts.principals.get('ann')).toEqual({ leases: 2, waiters: 0 });
    expect(resultOf(state, acquire(state, 'b', 7, ANN))).toEqual(over);
    // A waiter that leaves without a grant gives its room back.
    next(state, withdraw('c', 3));
    granted(state, 'b', 8, BOB);
    queued(state, 'b', 9, ANN);
    next(state, endWait([9]));
    expect(granted(state, 'z', 10, ANN).domain).toBe('z');
  });

  it('does not refuse a hand-over, nor the call of a waiter: its waiter was counted', () => {
    const state = emptyState({ limits: { leasesPerPrincipal: 3 } });
    const [a, b] = [granted(state, 'a', 1, BOB), granted(state, 'b', 2, { principal: 'cid' })];
    granted(state, 'c', 3, ANN);
    queued(state, 'a', 4, ANN);
    queued(state, 'b', 5, ANN);
    expect(next(state, release(a)).granted).toMatchObject([{ requestId: id(4), principal: 'ann' }]);
    next(state, release(b, '', [5]));
    expect(granted(state, 'b', 5, ANN).principal).toBe('ann');
    expect(resultOf(state, acquire(state, 'd', 6, ANN))).toEqual({ ...over, limit: 3 });
  });
});

describe('a quota of waiters of a principal', () => {
  it('refuses one more, and has room again however one leaves', () => {
    const state = emptyState({ limits: { waitersPerPrincipal: 1 } });
    const lease = granted(state, 'a', 1, BOB);
    queued(state, 'a', 2, ANN);
    const more = (request: number): unknown => resultOf(state, acquire(state, 'a', request, { ...ANN, waitMs: 9 }));
    const over = { type: 'overQuota', of: 'ann', what: 'waiters', limit: 1 };
    expect(more(3)).toEqual(over);
    expect(findRequest(state, id(3))).toBeUndefined();
    queued(state, 'a', 4, BOB);
    next(state, withdraw('a', 2));
    expect(more(5)).toMatchObject({ type: 'queued' });
    expect(more(6)).toEqual(over);
    next(state, endWait([5]));
    expect(more(7)).toMatchObject({ type: 'queued' });
    // Granted, it waits no more.
    next(state, release(lease, '', [4]));
    expect(leaseOf(state, domain('a'))?.requestId).toBe(id(7));
    expect(more(8)).toMatchObject({ type: 'queued' });
  });

  it('does not keep from a grant', () => {
    const state = emptyState({ limits: { waitersPerPrincipal: 0 } });
    expect(granted(state, 'a', 1, { ...ANN, waitMs: 9 }).domain).toBe('a');
    expect(resultOf(state, acquire(state, 'a', 2, { ...ANN, waitMs: 9 })).type).toBe('overQuota');
    expect(queueOf(state, domain('a'))).toEqual([]);
  });
});

describe('a quota below a prefix', () => {
  const limits = { prefixes: [{ prefix: 'eu/', leases: 2, waiters: 1 }] };

  it('counts all principals together, domains and slots', () => {
    const state = emptyState({ limits });
    granted(state, 'eu/a', 1, ANN);
    granted(state, 'eu/gpu', 2, { ...BOB, slots: 2 });
    const over = { type: 'overQuota', of: 'prefix eu/', what: 'leases', limit: 2 };
    expect(resultOf(state, acquire(state, 'eu/gpu', 3, { slots: 2 }))).toEqual(over);
    expect(resultOf(state, acquire(state, 'eu/b', 3))).toEqual(over);
    expect(granted(state, 'eu', 4).domain).toBe('eu');
    expect(granted(state, 'us/eu/a', 5).domain).toBe('us/eu/a');
    queued(state, 'eu/a', 6, ANN);
    expect(resultOf(state, acquire(state, 'eu/a', 7, { ...BOB, waitMs: 9 }))).toEqual({
      ...over,
      what: 'waiters',
      limit: 1,
    });
    queued(state, 'eu', 8);
  });

  it('holds for every prefix that the domain has', () => {
    const wide = { prefix: 'e', leases: 1, waiters: 9 };
    const state = emptyState({ limits: { prefixes: [...limits.prefixes, wide] } });
    granted(state, 'es/a', 1);
    expect(resultOf(state, acquire(state, 'eu/a', 2))).toMatchObject({ of: 'prefix e', limit: 1 });
  });
});

describe('a lease quota below a prefix that is used up', () => {
  it('keeps nobody from waiting there: a hand-over takes the place of the lease before', () => {
    const state = emptyState({ limits: { prefixes: [{ prefix: 'eu/', leases: 1, waiters: 5 }] } });
    const lease = granted(state, 'eu/a', 1, ANN);
    queued(state, 'eu/a', 2, BOB);
    next(state, release(lease));
    expect(leaseOf(state, domain('eu/a'))?.principal).toBe('bob');
    expect(resultOf(state, acquire(state, 'eu/b', 3))).toMatchObject({ what: 'leases', limit: 1 });
  });
});

describe('the counts', () => {
  it('are all back to nothing when everything is over, and forget who has nothing', () => {
    const state = emptyState({ limits: { prefixes: [{ prefix: '', leases: 99, waiters: 99 }] } });
    const a = granted(state, 'a', 1, ANN);
    const slots = [2, 3].map((request) => granted(state, 'gpu', request, { ...BOB, slots: 2, coolDownMs: 9 }));
    queued(state, 'a', 4, BOB);
    queued(state, 'a', 5, ANN);
    queued(state, 'gpu', 6, { ...ANN, slots: 2 });
    expect(state.counts.principals).toEqual(
      new Map([
        ['ann', { leases: 1, waiters: 2 }],
        ['bob', { leases: 2, waiters: 1 }],
      ]),
    );
    expect(state.counts.prefixes.get('')).toEqual({ leases: 3, waiters: 3 });
    const table = createTable(state);
    cut(table, state);
    expect(load(table).counts).toEqual(state.counts);
    next(state, expire(slots));
    next(state, release(a));
    next(state, withdraw('a', 4));
    next(state, endWait([5, 6]));
    expect(state.counts.principals).toEqual(new Map());
    expect(state.counts.prefixes.get('')).toEqual({ leases: 0, waiters: 0 });
  });

  it('never fall below nothing', () => {
    const state = emptyState();
    expect(() => {
      count(state, 'leases', { domain: 'a', principal: 'ann' }, -1);
    }).toThrow(AssertionFailed);
  });
});
