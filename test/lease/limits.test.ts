/** The entry that changes limits: what is there stays, what is new is refused or let in. */
import { describe, expect, it } from 'vitest';
import { STATE_LIMITS } from '../../src/base/limits.js';
import type { Command } from '../../src/lease/commands.js';
import { hashState } from '../../src/lease/hash.js';
import { leaseOf, queueOf } from '../../src/lease/lookup.js';
import { changedBytes } from '../../src/lease/records.js';
import type { ChangeableLimits } from '../../src/lease/types.js';
import {
  acquire,
  createTable,
  cut,
  domain,
  emptyState,
  granted,
  id,
  load,
  next,
  NOTHING,
  queued,
  release,
  resultOf,
} from './kit.js';

const WAITS = { waitMs: 9 };

function change(limits: Partial<ChangeableLimits>): Command {
  return { type: 'limits', change: limits, by: 'ann' };
}

describe('a change of limits', () => {
  it('sets what it names, leaves the rest, changes nothing else, and may be repeated', () => {
    const state = emptyState({ limits: { queue: 3 } });
    const before = state.limits;
    const after = { ...before, queue: 7, prefixes: [{ prefix: 'a', leases: 1, waiters: 1 }] };
    const command = change({ queue: 7, prefixes: after.prefixes });
    expect(next(state, command)).toEqual({ result: { type: 'limitsChanged', before, after }, ...NOTHING });
    expect(state.limits).toEqual(after);
    expect(resultOf(state, command)).toEqual({ type: 'limitsChanged', before: after, after });
    expect(resultOf(state, change({ leasesPerPrincipal: 9 }))).toMatchObject({
      after: { ...after, leasesPerPrincipal: 9 },
    });
    // What no operator sets is as it was.
    const { finishedRequests, countingNames } = STATE_LIMITS;
    expect(state.limits).toMatchObject({ finishedRequests: before.finishedRequests, countingNames });
    expect(before.finishedRequests).not.toBe(finishedRequests);
  });

  it('to less than waits ends nobody: waiters are granted in order, new ones are refused', () => {
    const state = emptyState();
    const first = granted(state, 'a', 1);
    for (const request of [2, 3, 4]) queued(state, 'a', request);
    next(state, change({ queue: 1, waitersPerPrincipal: 0, leasesPerPrincipal: 1 }));
    expect(queueOf(state, domain('a')).map(({ requestId }) => requestId)).toEqual([2, 3, 4].map(id));
    expect(resultOf(state, acquire(state, 'a', 5, WAITS))).toMatchObject({ reason: 'queue_full' });
    expect(resultOf(state, acquire(state, 'b', 6))).toMatchObject({ type: 'overQuota', limit: 1 });
    // A call for one who waits is answered as before.
    expect(resultOf(state, acquire(state, 'a', 2, { waitMs: 60_000 })).type).toBe('queued');
    next(state, release(first));
    expect(leaseOf(state, domain('a'))?.requestId).toBe(id(2));
    // One waits too many: a waiter that finds its domain free is granted all the same.
    const second = leaseOf(state, domain('a'));
    if (second === undefined) throw new Error('it was handed over');
    next(state, release(second, '', [3, 4]));
    expect(leaseOf(state, domain('a'))).toBeUndefined();
    expect(resultOf(state, acquire(state, 'a', 3, { waitMs: 60_000 })).type).toBe('granted');
  });

  it('to more lets in what was refused', () => {
    const state = emptyState({ limits: { queue: 0, leasesPerPrincipal: 1 } });
    granted(state, 'a', 1);
    expect(resultOf(state, acquire(state, 'b', 2)).type).toBe('overQuota');
    expect(resultOf(state, acquire(state, 'a', 3, WAITS))).toMatchObject({ reason: 'queue_full' });
    next(state, change({ queue: 1, leasesPerPrincipal: 3 }));
    granted(state, 'b', 2);
    queued(state, 'a', 3);
  });

  it('counts what is below a new prefix already, its slots and waiters too, and forgets the old one', () => {
    const state = emptyState({ limits: { prefixes: [{ prefix: 'old', leases: 0, waiters: 0 }] } });
    granted(state, 'eu/a', 1);
    granted(state, 'eu/gpu', 2, { slots: 3 });
    granted(state, 'eu/gpu', 3, { slots: 3 });
    queued(state, 'eu/a', 4);
    granted(state, 'us/a', 5);
    const quota = { prefix: 'eu/', leases: 4, waiters: 1 };
    next(state, change({ prefixes: [quota, { ...quota, prefix: '' }] }));
    expect(Object.fromEntries(state.counts.prefixes)).toEqual({
      'eu/': { leases: 3, waiters: 1 },
      '': { leases: 4, waiters: 1 },
    });
    next(state, change({ prefixes: [quota] }));
    expect(resultOf(state, acquire(state, 'eu/a', 6, WAITS))).toMatchObject({ what: 'waiters', limit: 1 });
    granted(state, 'eu/b', 7);
    expect(resultOf(state, acquire(state, 'eu/c', 8))).toMatchObject({ of: 'prefix eu/', what: 'leases', limit: 4 });
    granted(state, 'old/a', 9);
    // Loaded anew it counts the same.
    const table = createTable(emptyState());
    cut(table, state);
    expect(state.counts.prefixes.get('eu/')).toEqual({ leases: 4, waiters: 1 });
  });

  it('is in the next cut and in the hash; a cut that waits for the disk keeps the limits of its revision', () => {
    const state = emptyState();
    const table = createTable(state);
    granted(state, 'a', 1);
    const earlier = cut(table, state);
    const hash = hashState(state);
    const before = { ...state.limits };
    next(state, change({ waitersPerPrincipal: 4 }));
    expect(changedBytes(state)).toBeGreaterThan(0);
    expect(earlier.summary.limits).toEqual(before);
    cut(table, state);
    const again = load(table);
    expect(again.limits).toEqual({ ...before, waitersPerPrincipal: 4 });
    expect(hashState(again)).toBe(hashState(state));
    expect(hashState(state)).not.toBe(hash);
  });
});
