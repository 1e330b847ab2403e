import { describe, expect, it } from 'vitest';
import { ZERO_REVISION } from '../../src/base/revision.js';
import { describeEnd, findRequest, leaseOf, liveCount } from '../../src/lease/lookup.js';
import {
  ASKED,
  NOTHING,
  domain,
  emptyState,
  expire,
  forceRelease,
  granted,
  id,
  next,
  others,
  release,
  resultOf,
  rev,
  withdraw,
} from './kit.js';

describe('release', () => {
  it('ends the live lease that it names', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    expect(next(state, release(lease))).toEqual({
      result: { type: 'released', released: true, ended: undefined },
      ...NOTHING,
      ended: [{ lease, reason: 'released' }],
    });
    expect(leaseOf(state, domain('a'))).toBeUndefined();
    expect(findRequest(state, id(1))).toEqual({
      type: 'finished',
      request: {
        requestId: id(1),
        domain: 'a',
        finishedAt: rev(2),
        token: rev(1),
        reason: 'released',
        by: '',
        note: '',
        owner: '',
        asked: ASKED,
      },
    });
  });

  it('repeated, is a success that touches nothing, not even the next holder', () => {
    const state = emptyState();
    const first = granted(state, 'a', 1);
    next(state, release(first));
    const second = granted(state, 'a', 2);
    expect(next(state, release(first))).toEqual({
      result: { type: 'released', released: true, ended: undefined },
      ...NOTHING,
    });
    expect(leaseOf(state, domain('a'))).toBe(second);
  });

  it('of a lease that ended otherwise says how', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    next(state, expire([lease]));
    const current = granted(state, 'a', 2);
    const ended = {
      lease: { domain: 'a', token: rev(1) },
      reason: 'expired',
      by: '',
      note: '',
      currentToken: current.token,
    };
    expect(resultOf(state, release(lease))).toEqual({ type: 'released', released: false, ended });
  });

  it('of the live token in another domain ends nothing', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    const result = resultOf(state, release({ domain: domain('b'), token: lease.token }));
    expect(result).toMatchObject({ type: 'released', released: false, ended: { reason: 'never_granted' } });
    expect(liveCount(state)).toBe(1);
  });

  it('by another owner is refused, before and after the end', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1, { owner: 'CN=a' });
    for (const owner of ['CN=b', '']) {
      expect(next(state, release(lease, owner))).toEqual({
        result: { type: 'reused', difference: 'owner' },
        ...NOTHING,
      });
    }
    expect(resultOf(state, release(lease, 'CN=a'))).toMatchObject({ released: true });
    expect(resultOf(state, release(lease, 'CN=b'))).toEqual({ type: 'reused', difference: 'owner' });
  });

  it('of a lease bound to nobody is open to all', () => {
    const state = emptyState();
    expect(resultOf(state, release(granted(state, 'a', 1), 'CN=b'))).toMatchObject({ released: true });
  });
});

describe('withdraw', () => {
  it('ends what the request was granted', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    expect(next(state, withdraw('a', 1))).toEqual({
      result: { type: 'withdrawn' },
      ...NOTHING,
      ended: [{ lease, reason: 'withdrawn' }],
    });
    expect(findRequest(state, id(1))).toMatchObject({
      type: 'finished',
      request: { reason: 'withdrawn', token: rev(1) },
    });
  });

  it('remembers an id that is not known, once', () => {
    const state = emptyState();
    expect(next(state, withdraw('a', 1, 'CN=a'))).toEqual({ result: { type: 'withdrawn' }, ...NOTHING });
    const request = {
      requestId: id(1),
      domain: 'a',
      finishedAt: rev(1),
      token: undefined,
      reason: 'withdrawn',
      by: '',
      note: '',
      owner: 'CN=a',
      asked: undefined,
    };
    expect(findRequest(state, id(1))).toEqual({ type: 'finished', request });
    expect(resultOf(state, withdraw('a', 1, 'CN=a'))).toEqual({ type: 'withdrawn' });
    expect(findRequest(state, id(1))).toEqual({ type: 'finished', request });
  });

  it('of a request that is over changes nothing', () => {
    const state = emptyState();
    next(state, release(granted(state, 'a', 1)));
    const next1 = granted(state, 'a', 2);
    expect(next(state, withdraw('a', 1))).toEqual({ result: { type: 'withdrawn' }, ...NOTHING });
    expect(findRequest(state, id(1))).toMatchObject({ request: { reason: 'released', finishedAt: rev(2) } });
    expect(leaseOf(state, domain('a'))).toBe(next1);
  });

  it('refuses the id of another domain or owner', () => {
    const state = emptyState();
    granted(state, 'a', 1, { owner: 'CN=a' });
    expect(resultOf(state, withdraw('b', 1, 'CN=a'))).toEqual({ type: 'reused', difference: 'domain' });
    expect(resultOf(state, withdraw('a', 1, 'CN=b'))).toEqual({ type: 'reused', difference: 'owner' });
    expect(liveCount(state)).toBe(1);
    next(state, withdraw('a', 1, 'CN=a'));
    expect(resultOf(state, withdraw('b', 1, 'CN=a'))).toEqual({ type: 'reused', difference: 'domain' });
    expect(resultOf(state, withdraw('a', 1, 'CN=b'))).toEqual({ type: 'reused', difference: 'owner' });
  });
});

describe('force-release', () => {
  it('ends the lease that it names, whoever owns it, and keeps who and why', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1, { owner: 'CN=a' });
    const command = forceRelease(lease);
    expect(next(state, command)).toEqual({
      result: { type: 'forceReleased', released: true, currentToken: ZERO_REVISION },
      ...NOTHING,
      ended: [{ lease, reason: 'force_released' }],
    });
    expect(describeEnd(state, lease)).toMatchObject({ reason: 'force_released', by: 'ann', note: 'stuck' });
  });

  it('repeated after a lost answer, leaves the next holder alone and names it (S12)', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    const command = forceRelease(lease);
    next(state, command);
    expect(resultOf(state, command)).toEqual({ type: 'forceReleased', released: false, currentToken: ZERO_REVISION });
    const after = granted(state, 'a', 2);
    expect(resultOf(state, command)).toEqual({ type: 'forceReleased', released: false, currentToken: after.token });
    expect(leaseOf(state, domain('a'))).toBe(after);
  });
});

describe('expire', () => {
  it('ends all leases that are as the proposer saw them, in one entry', () => {
    const state = emptyState();
    const leases = [granted(state, 'a', 1), granted(state, 'b', 2), granted(state, 'c', 3)];
    expect(next(state, expire(leases))).toEqual({
      result: { type: 'done' },
      ...NOTHING,
      ended: leases.map((lease) => ({ lease, reason: 'expired' })),
    });
    expect(liveCount(state)).toBe(0);
    for (const lease of leases) expect(describeEnd(state, lease).reason).toBe('expired');
  });

  it('of another term than its entry does nothing at all', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    for (const [proposed, applied] of [
      [1, 2],
      [3, 2],
    ] as const) {
      expect(next(state, expire([lease], proposed), applied).ended).toEqual([]);
    }
    expect(liveCount(state)).toBe(1);
    expect(next(state, expire([lease], 2), 2).ended).toHaveLength(1);
  });

  it('passes over a lease that is over, superseded or listed twice', () => {
    const state = emptyState();
    const over = granted(state, 'a', 1);
    next(state, release(over));
    const current = granted(state, 'a', 2);
    const other = granted(state, 'b', 3);
    expect(next(state, expire([over, other, other])).ended).toEqual([{ lease: other, reason: 'expired' }]);
    expect(leaseOf(state, domain('a'))).toBe(current);
  });
});

describe('how a lease ended', () => {
  it('is earlier_history up to the base, never_granted above what is forgotten, unspecified between', () => {
    const state = emptyState({ keep: 3 });
    const first = granted(state, 'a', 1);
    next(state, release(first));
    others(state, 4, 100);
    const { forgotten } = state.requests;
    expect(forgotten).toBe(rev(4));
    const reason = (token: number): string => describeEnd(state, { domain: domain('a'), token: rev(token) }).reason;
    expect([-1, 0, 1, 4, 5, 9, 10, 1_000].map(reason)).toEqual([
      'earlier_history',
      'earlier_history',
      'unspecified',
      'unspecified',
      'never_granted',
      'never_granted',
      'never_granted',
      'never_granted',
    ]);
    expect(describeEnd(state, first)).toEqual({
      lease: { domain: 'a', token: first.token },
      reason: 'unspecified',
      by: '',
      note: '',
      currentToken: ZERO_REVISION,
    });
  });

  it('names the live token of the domain', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    expect(describeEnd(state, { domain: lease.domain, token: rev(-5) })).toMatchObject({ currentToken: lease.token });
  });

  it('is no question about a live lease', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    expect(() => describeEnd(state, lease)).toThrow(/is live and has no end/);
  });
});
