/** Hand-over (design 7): whatever frees a domain grants it to the next waiter in the same entry. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../../src/lease/commands.js';
import { describeEnd, findRequest, finishedLease, leaseOf, liveCount, queueOf } from '../../src/lease/lookup.js';
import type { State } from '../../src/lease/state.js';
import type { Lease } from '../../src/lease/types.js';
import {
  acquire,
  domain,
  emptyState,
  endCoolDown,
  endWait,
  expire,
  forceRelease,
  FREED_AT,
  granted,
  id,
  next,
  NOTHING,
  queued,
  release,
  resultOf,
  rev,
  withdraw,
} from './kit.js';

type Free = (lease: Lease, detached: readonly number[]) => Command;
const freeing: [string, Free][] = [
  ['release', (lease, detached) => release(lease, '', detached)],
  ['withdrawal', (_lease, detached) => withdraw('a', 1, '', detached)],
  ['force-release', forceRelease],
  ['expiry', (lease, detached) => expire([lease], 1, detached)],
];

/** Requests 2, 3, 4 wait for `a`, which request 1 holds. */
function waiting(): { readonly state: State; readonly lease: Lease } {
  const state = emptyState();
  const lease = granted(state, 'a', 1);
  for (const request of [2, 3, 4]) queued(state, 'a', request, { metadata: [['n', String(request)]], ttlMs: request });
  return { state, lease };
}
function waitersOf(state: State, name = 'a'): readonly string[] {
  return queueOf(state, domain(name)).map(({ requestId }) => requestId);
}

describe.each(freeing)('a %s', (_name, command) => {
  it('grants the domain to the first waiter in its own entry, whose revision is the token', () => {
    const { state, lease } = waiting();
    const [first] = queueOf(state, domain('a'));
    const applied = next(state, command(lease, []));
    const fresh = {
      ...{ domain: 'a', token: rev(5), requestId: id(2), holder: 'worker', metadata: [['n', '2']], ttlMs: 2 },
      ...{ coolDownMs: 0, grantedAtUnixMs: FREED_AT, owner: '', principal: 'client' },
      ...{ version: 0, checkpointLeftMs: undefined },
    };
    expect(applied).toMatchObject({ ...NOTHING, granted: [fresh], ended: [{ lease }], left: [first] });
    expect(applied.granted).toHaveLength(1);
    expect(leaseOf(state, domain('a'))).toEqual(fresh);
    expect(findRequest(state, id(2))).toEqual({ type: 'live', lease: fresh });
    expect(waitersOf(state)).toEqual([id(3), id(4)]);
  });

  it('passes over the detached, who keep their place', () => {
    const { state, lease } = waiting();
    next(state, command(lease, [2, 3]));
    const second = leaseOf(state, domain('a'));
    expect(second?.requestId).toBe(id(4));
    expect(waitersOf(state)).toEqual([id(2), id(3)]);
    if (second !== undefined) next(state, release(second));
    expect(leaseOf(state, domain('a'))?.requestId).toBe(id(2));
  });

  it('passes over nobody who is not named, even in front of those who are', () => {
    const { state, lease } = waiting();
    next(state, command(lease, [3, 4, 99]));
    expect(leaseOf(state, domain('a'))?.requestId).toBe(id(2));
  });

  it('leaves the domain free with its queue when all are passed over', () => {
    const { state, lease } = waiting();
    expect(next(state, command(lease, [4, 3, 2]))).toMatchObject({ granted: [], left: [] });
    expect(leaseOf(state, domain('a'))).toBeUndefined();
    expect(waitersOf(state)).toEqual([id(2), id(3), id(4)]);
  });

  it('does not mind a detached waiter who has left since', () => {
    const { state, lease } = waiting();
    next(state, withdraw('a', 2));
    next(state, command(lease, [2]));
    expect(leaseOf(state, domain('a'))?.requestId).toBe(id(3));
  });

  it('grants to one who joined after it was proposed', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    const late = command(lease, []);
    queued(state, 'a', 2);
    next(state, late);
    expect(leaseOf(state, domain('a'))?.requestId).toBe(id(2));
  });

  it('that ends nothing hands over nothing, even where the domain is free with a queue', () => {
    const { state, lease } = waiting();
    next(state, release(lease, '', [2, 3, 4]));
    expect(next(state, command(lease, []))).toMatchObject(NOTHING);
    expect(waitersOf(state)).toHaveLength(3);
  });
});

describe('first come, first served', () => {
  it('holds over any number of hand-overs, each with a greater token', () => {
    const { state } = waiting();
    const order: string[] = [];
    const tokens: number[] = [];
    for (let lease = leaseOf(state, domain('a')); lease !== undefined; lease = leaseOf(state, domain('a'))) {
      order.push(lease.requestId);
      tokens.push(lease.token);
      next(state, release(lease));
    }
    expect(order).toEqual([id(1), id(2), id(3), id(4)]);
    expect(tokens).toEqual([rev(1), rev(5), rev(6), rev(7)]);
  });
});

describe('an Expire of many leases', () => {
  /** Domains d/0 to d/4, each held, each with a waiter but for the last. */
  function many(): { readonly state: State; readonly leases: readonly Lease[] } {
    const state = emptyState();
    const leases = [0, 1, 2, 3, 4].map((n) => granted(state, `d/${n}`, n));
    for (const n of [3, 1, 0, 2]) queued(state, `d/${n}`, 10 + n);
    return { state, leases };
  }

  it('hands over each of them at its one revision', () => {
    const { state, leases } = many();
    const applied = next(state, expire(leases));
    expect(applied.ended.map(({ lease }) => lease)).toEqual(leases);
    expect(applied.granted.map(({ domain: of, token, requestId }) => [of, token, requestId])).toEqual(
      [0, 1, 2, 3].map((n) => [`d/${n}`, rev(10), id(10 + n)]),
    );
    expect(liveCount(state)).toBe(4);
    expect(state.queues.size).toBe(0);
  });

  it('leaves one token in several domains: what ends one of them does not touch the others', () => {
    const { state, leases } = many();
    next(state, expire(leases));
    const [a, b, c, d] = [0, 1, 2, 3].map((n) => leaseOf(state, domain(`d/${n}`)));
    if (a === undefined || b === undefined || c === undefined || d === undefined) throw new Error('not handed over');
    expect(new Set([a, b, c, d].map(({ token }) => token)).size).toBe(1);
    expect(resultOf(state, release(a))).toMatchObject({ released: true });
    expect(describeEnd(state, a).reason).toBe('released');
    expect([b, c, d].map((lease) => leaseOf(state, lease.domain))).toEqual([b, c, d]);
    next(state, expire([b]));
    next(state, forceRelease(c));
    expect([a, b, c].map((lease) => describeEnd(state, lease).reason)).toEqual([
      'released',
      'expired',
      'force_released',
    ]);
    // The token is nobody's in a domain where it was not granted.
    const elsewhere = { domain: domain('d/4'), token: a.token };
    expect(describeEnd(state, elsewhere).reason).toBe('never_granted');
    expect(resultOf(state, release(elsewhere))).toMatchObject({ released: false });
    expect(leaseOf(state, d.domain)).toBe(d);
  });

  it('forgets the ends of one token in several domains apart', () => {
    const { state, leases } = many();
    next(state, expire(leases));
    const [a, b] = [leaseOf(state, domain('d/0')), leaseOf(state, domain('d/1'))];
    if (a === undefined || b === undefined) throw new Error('not handed over');
    next(state, release(a));
    next(state, release(b));
    const of = (lease: Lease): string | undefined => finishedLease(state, lease)?.domain;
    expect([of(a), of(b)]).toEqual(['d/0', 'd/1']);
  });

  it('hands over only what it ended', () => {
    const { state, leases } = many();
    const changed = leases.map((lease, n) => ({ ...lease, version: n % 2 }));
    expect(next(state, expire(changed)).granted.map((lease) => lease.domain)).toEqual(['d/0', 'd/2']);
  });

  it('of another term hands over nothing', () => {
    const { state, leases } = many();
    expect(next(state, expire(leases, 2), 3)).toEqual({ result: { type: 'done' }, ...NOTHING });
  });
});

describe('while grants are held back', () => {
  it('acquires wait or are answered recovering, also of what is free', () => {
    const state = emptyState({ holding: true });
    const recovering = { type: 'notGranted', reason: 'recovering', current: undefined };
    expect(resultOf(state, acquire(state, 'a', 1))).toEqual(recovering);
    const waiter = queued(state, 'a', 2);
    // Its repetition finds the domain free and is not granted either.
    expect(resultOf(state, acquire(state, 'a', 2))).toEqual({ type: 'queued', waiter, current: undefined });
    // A name that does not count yet has nothing to wait for.
    expect(resultOf(state, acquire(state, 'gpu', 3, { slots: 2, waitMs: 9 }))).toEqual(recovering);
    expect(liveCount(state)).toBe(0);
  });

  it('nothing is handed over, and a waiter can still leave', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1, { coolDownMs: 9 });
    queued(state, 'a', 2);
    queued(state, 'a', 3);
    state.holding = true;
    next(state, expire([lease]));
    expect(next(state, endCoolDown([{ domain: lease.domain, since: rev(4) }])).granted).toEqual([]);
    next(state, endWait([2]));
    expect(waitersOf(state)).toEqual([id(3)]);
  });

  it('and afterwards the next call of a waiter is granted', () => {
    const state = emptyState({ holding: true });
    queued(state, 'a', 1);
    queued(state, 'a', 2);
    expect(next(state, { type: 'endHold', term: 1 })).toEqual({ result: { type: 'done' }, ...NOTHING });
    expect(granted(state, 'a', 1).token).toBe(rev(4));
    expect(resultOf(state, acquire(state, 'a', 2)).type).toBe('queued');
  });
});
