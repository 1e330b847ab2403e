import { describe, expect, it } from 'vitest';
import { findRequest, leaseOf, liveCount, liveLeases } from '../../src/lease/lookup.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import {
  NOTHING,
  acquire,
  domain,
  emptyState,
  END_HOLD,
  forceRelease,
  expire,
  granted,
  id,
  next,
  others,
  release,
  resultOf,
  rev,
  withdraw,
} from './kit.js';

describe('acquire of a free domain', () => {
  it('grants it with the revision of the entry as token', () => {
    const state = emptyState();
    next(state, undefined);
    const command = acquire(state, 'orders/eu', 1, { metadata: [['pod', 'a']], owner: 'CN=a' });
    const applied = next(state, command);
    const lease = {
      domain: domain('orders/eu'),
      token: rev(2),
      requestId: id(1),
      holder: 'worker',
      metadata: [['pod', 'a']],
      ttlMs: 15_000,
      coolDownMs: 0,
      grantedAtUnixMs: 1_796_000_000_123,
      owner: 'CN=a',
      principal: 'client',
      version: 0,
      checkpointLeftMs: undefined,
    };
    expect(applied).toEqual({ result: { type: 'granted', lease }, ...NOTHING, granted: [lease] });
    expect(leaseOf(state, domain('orders/eu'))).toEqual(lease);
    expect([...liveLeases(state)]).toEqual([lease]);
    expect(liveCount(state)).toBe(1);
    expect(findRequest(state, id(1))).toEqual({ type: 'live', lease });
  });

  it('grants a later request a greater token, whatever ended the lease before', () => {
    const state = emptyState();
    const first = granted(state, 'a', 1);
    next(state, release(first));
    const second = granted(state, 'a', 2);
    next(state, expire([second]));
    const third = granted(state, 'a', 3);
    next(state, withdraw('a', 3));
    const fourth = granted(state, 'a', 4);
    expect([first, second, third, fourth].map((lease) => lease.token)).toEqual([rev(1), rev(3), rev(5), rev(7)]);
  });
});

describe('acquire of a held domain', () => {
  it('says who holds it, and remembers nothing', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    const command = acquire(state, 'a', 2);
    expect(next(state, command)).toEqual({
      result: { type: 'notGranted', reason: 'held', current: lease },
      ...NOTHING,
    });
    expect(findRequest(state, id(2))).toBeUndefined();
    next(state, release(lease));
    expect(resultOf(state, command).type).toBe('granted');
  });
});

describe('acquire with a known id', () => {
  it('answers a live lease as it is now, checkpoint and all', () => {
    const state = emptyState();
    const { token } = granted(state, 'a', 1);
    next(state, { type: 'checkpoint', leases: [{ domain: domain('a'), token, leftMs: 7_000 }] });
    const again = acquire(state, 'a', 1, { metadata: [['other', 'x']], seenRevision: ZERO_REVISION });
    const expected = { token, metadata: [], version: 1, checkpointLeftMs: 7_000 };
    expect(next(state, again)).toMatchObject({ result: { type: 'granted', lease: expected }, ...NOTHING });
  });

  it('answers a lease that is over with its end, and with who holds the domain now (F8)', () => {
    const state = emptyState();
    const first = granted(state, 'a', 1);
    next(state, forceRelease(first));
    const second = granted(state, 'a', 2);
    expect(resultOf(state, acquire(state, 'a', 1))).toEqual({
      type: 'ended',
      ended: {
        lease: { domain: 'a', token: first.token },
        reason: 'force_released',
        by: 'ann',
        note: 'stuck',
        currentToken: second.token,
      },
    });
  });

  it('answers a request that was withdrawn before it came, without a lease', () => {
    const state = emptyState();
    next(state, withdraw('a', 1));
    const ended = { lease: undefined, reason: 'withdrawn', by: '', note: '', currentToken: ZERO_REVISION };
    expect(resultOf(state, acquire(state, 'a', 1))).toEqual({ type: 'ended', ended });
  });

  it.each([
    ['domain', { domain: domain('b') }],
    ['ttl_ms', { ttlMs: 14_999 }],
    ['holder', { holder: 'somebody' }],
    ['cool_down_ms', { coolDownMs: 1 }],
    ['slots', { slots: 2 }],
    ['owner', { owner: 'CN=b' }],
    ['owner', { owner: '' }],
  ])('refuses other contents and names %s, whether the lease lives or is over', (difference, more) => {
    const state = emptyState();
    const lease = granted(state, 'a', 1, { owner: 'CN=a' });
    const other = acquire(state, 'a', 1, { owner: 'CN=a', ...more });
    expect(next(state, other)).toEqual({ result: { type: 'reused', difference }, ...NOTHING });
    next(state, release(lease, 'CN=a'));
    expect(next(state, other)).toEqual({ result: { type: 'reused', difference }, ...NOTHING });
  });

  it('compares the owner and the domain, no more, where only a withdrawal is known', () => {
    const state = emptyState();
    next(state, withdraw('a', 1, 'CN=a'));
    const mine = { owner: 'CN=a', holder: 'x', ttlMs: 3_000 };
    expect(resultOf(state, acquire(state, 'a', 1, mine)).type).toBe('ended');
    expect(resultOf(state, acquire(state, 'b', 1, mine))).toEqual({ type: 'reused', difference: 'domain' });
    expect(resultOf(state, acquire(state, 'a', 1))).toEqual({ type: 'reused', difference: 'owner' });
  });

  it('lets anybody use an id that is bound to nobody', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    expect(resultOf(state, acquire(state, 'a', 1, { owner: 'CN=a' }))).toEqual({ type: 'granted', lease });
  });
});

describe('acquire that is held back', () => {
  it('is answered recovering while the state is holding, before anything else about the domain', () => {
    const state = emptyState({ holding: true });
    expect(resultOf(state, acquire(state, 'a', 1))).toEqual({
      type: 'notGranted',
      reason: 'recovering',
      current: undefined,
    });
    expect(liveCount(state)).toBe(0);
    next(state, END_HOLD);
    expect(resultOf(state, acquire(state, 'a', 1)).type).toBe('granted');
  });

  it('is too old when it has seen less than what is forgotten, and not when it has seen just that', () => {
    const state = emptyState({ keep: 3 });
    others(state, 4, 100);
    // Four finished at 2, 4, 6, 8; three are kept.
    expect(state.requests.forgotten).toBe(rev(2));
    const old = acquire(state, 'a', 1, { seenRevision: rev(1) });
    expect(next(state, old)).toEqual({ result: { type: 'tooOld', forgotten: rev(2) }, ...NOTHING });
    expect(resultOf(state, acquire(state, 'a', 1, { seenRevision: rev(2) })).type).toBe('granted');
  });

  it('is too old rather than recovering or held', () => {
    const state = emptyState({ holding: true, forgotten: rev(0) });
    const old = acquire(state, 'a', 1, { seenRevision: ZERO_REVISION });
    expect(resultOf(state, old)).toEqual({ type: 'tooOld', forgotten: rev(0) });
    next(state, END_HOLD);
    granted(state, 'a', 2);
    expect(resultOf(state, old)).toEqual({ type: 'tooOld', forgotten: rev(0) });
  });
});
