/** Cool-down: after an expiry, and only then, a domain stays closed until an EndCoolDown. */
import { describe, expect, it } from 'vitest';
import { coolDownOf, coolDowns, leaseOf, queueOf } from '../../src/lease/lookup.js';
import type { State } from '../../src/lease/state.js';
import type { CoolDown } from '../../src/lease/types.js';
import {
  acquire,
  domain,
  emptyState,
  endCoolDown,
  endWait,
  expire,
  forceRelease,
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

const COOL = { coolDownMs: 500 };

/** Domain `a`, closed at revision 2. */
function closed(): { readonly state: State; readonly coolDown: CoolDown } {
  const state = emptyState();
  next(state, expire([granted(state, 'a', 1, COOL)]));
  return { state, coolDown: { domain: domain('a'), since: rev(2), ms: 500 } };
}

describe('an expiry of a lease with a cool-down', () => {
  it('closes the domain, although somebody waits', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1, COOL);
    const waiter = queued(state, 'a', 2);
    const coolDown = { domain: 'a', since: rev(3), ms: 500 };
    expect(next(state, expire([lease]))).toEqual({
      result: { type: 'done' },
      ...NOTHING,
      ended: [{ lease, reason: 'expired' }],
      closed: [coolDown],
    });
    expect(coolDownOf(state, domain('a'))).toEqual(coolDown);
    expect([...coolDowns(state)]).toEqual([coolDown]);
    expect(queueOf(state, domain('a'))).toEqual([waiter]);
  });

  it('refuses acquires that do not wait with cool_down, and queues the others', () => {
    const { state } = closed();
    const refused = { type: 'notGranted', reason: 'cool_down', current: undefined };
    expect(resultOf(state, acquire(state, 'a', 2))).toEqual(refused);
    expect(resultOf(state, acquire(state, 'a', 3, { waitMs: 1 }))).toMatchObject({
      type: 'queued',
      current: undefined,
    });
    // Nor does the call of a waiter open it.
    expect(resultOf(state, acquire(state, 'a', 3))).toMatchObject({ type: 'queued' });
    expect(leaseOf(state, domain('a'))).toBeUndefined();
    expect(granted(state, 'b', 4).domain).toBe('b');
  });

  it('is that of the lease which expired, also of one that was queued', () => {
    const state = emptyState();
    const first = granted(state, 'a', 1);
    queued(state, 'a', 2, { coolDownMs: 77 });
    next(state, expire([first]));
    const second = leaseOf(state, domain('a'));
    if (second === undefined) throw new Error('a was not handed over');
    expect(next(state, expire([second])).closed).toEqual([{ domain: 'a', since: rev(4), ms: 77 }]);
  });
});

describe('whatever else ends a lease with a cool-down', () => {
  it.each([
    ['release', release],
    ['withdrawal', () => withdraw('a', 1)],
    ['force-release', forceRelease],
    ['end of a wait', () => endWait([1])],
  ])('(%s) closes nothing', (_name, command) => {
    const state = emptyState();
    const lease = granted(state, 'a', 1, COOL);
    expect(next(state, command(lease)).closed).toEqual([]);
    expect(granted(state, 'a', 2).token).toBe(rev(3));
  });
});

describe('the end of a cool-down', () => {
  it('opens the domain', () => {
    const { state, coolDown } = closed();
    const expected = { result: { type: 'done' }, ...NOTHING, opened: [coolDown] };
    expect(next(state, endCoolDown([coolDown]))).toEqual(expected);
    expect(coolDownOf(state, domain('a'))).toBeUndefined();
    expect(granted(state, 'a', 2).token).toBe(rev(4));
  });

  it('hands over to the first waiter who is not detached, with its own revision as token', () => {
    const { state, coolDown } = closed();
    for (const request of [2, 3, 4]) queued(state, 'a', request);
    const applied = next(state, endCoolDown([coolDown], 1, [2]));
    expect(applied).toMatchObject({ opened: [coolDown], granted: [{ token: rev(6), requestId: id(3) }] });
    expect(queueOf(state, domain('a')).map(({ requestId }) => requestId)).toEqual([id(2), id(4)]);
  });

  it('compares: another one, an open domain or a held one stays as it is', () => {
    const { state, coolDown } = closed();
    const nothing = { result: { type: 'done' }, ...NOTHING };
    expect(next(state, endCoolDown([{ domain: domain('a'), since: rev(1) }]))).toEqual(nothing);
    expect(next(state, endCoolDown([{ domain: domain('b'), since: coolDown.since }]))).toEqual(nothing);
    // Listed twice, it is opened once.
    expect(next(state, endCoolDown([coolDown, coolDown])).opened).toEqual([coolDown]);
    const lease = granted(state, 'a', 2, COOL);
    expect(next(state, endCoolDown([coolDown]))).toEqual(nothing);
    next(state, expire([lease]));
    // An older entry must not open what was closed again meanwhile.
    expect(next(state, endCoolDown([coolDown]))).toEqual(nothing);
    expect(coolDownOf(state, domain('a'))?.since).toBe(state.revision - 1);
  });

  it('of another term does nothing at all', () => {
    const { state, coolDown } = closed();
    queued(state, 'a', 2);
    expect(next(state, endCoolDown([coolDown], 1), 2)).toEqual({ result: { type: 'done' }, ...NOTHING });
    expect(coolDownOf(state, domain('a'))).toEqual(coolDown);
  });

  it('opens many in one entry, each for its own queue', () => {
    const state = emptyState();
    const leases = ['a', 'b', 'c'].map((name, n) => granted(state, name, n, COOL));
    const { closed: all } = next(state, expire(leases));
    queued(state, 'a', 10);
    queued(state, 'c', 11);
    const { opened, granted: fresh } = next(state, endCoolDown(all));
    expect(opened).toEqual(all);
    expect(fresh.map((lease) => [lease.domain, lease.token])).toEqual([
      ['a', state.revision],
      ['c', state.revision],
    ]);
  });
});
