import { describe, expect, it } from 'vitest';
import { leaseOf } from '../../src/lease/lookup.js';
import type { State } from '../../src/lease/state.js';
import type { Command } from '../../src/lease/commands.js';
import type { Lease } from '../../src/lease/types.js';
import { NOTHING, acquire, domain, emptyState, expire, granted, next, release, resultOf } from './kit.js';

function checkpoint(lease: Lease, leftMs: number): Command {
  return { type: 'checkpoint', leases: [{ domain: lease.domain, token: lease.token, leftMs }] };
}
function voided(lease: Lease): Command {
  return { type: 'void', leases: [{ domain: lease.domain, token: lease.token }] };
}
function current(state: State): Lease {
  const lease = leaseOf(state, domain('a'));
  if (lease === undefined) throw new Error('a is free');
  return lease;
}

describe('checkpoint and void', () => {
  it('set and clear what is left, and raise the version each time', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    expect(next(state, checkpoint(lease, 7_650))).toEqual({ result: { type: 'done' }, ...NOTHING });
    expect(current(state)).toEqual({ ...lease, version: 1, checkpointLeftMs: 7_650 });
    next(state, checkpoint(lease, 3_000));
    expect(current(state)).toEqual({ ...lease, version: 2, checkpointLeftMs: 3_000 });
    next(state, voided(lease));
    expect(current(state)).toEqual({ ...lease, version: 3, checkpointLeftMs: undefined });
  });

  it('do not change the lease that was handed out before', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    next(state, checkpoint(lease, 1));
    expect(lease).toMatchObject({ version: 0, checkpointLeftMs: undefined });
  });

  it('do nothing to a lease that is not live, nor to its successor', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    next(state, release(lease));
    const after = granted(state, 'a', 2);
    next(state, checkpoint(lease, 7_650));
    next(state, voided(lease));
    expect(current(state)).toBe(after);
  });

  it('need no term: what an older leader wrote counts as well', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    next(state, checkpoint(lease, 7_650), 1);
    next(state, voided(lease), 9);
    expect(current(state)).toMatchObject({ version: 2, checkpointLeftMs: undefined });
  });
});

describe('expire against checkpoint and void', () => {
  it.each([
    ['checkpoint', (lease: Lease) => checkpoint(lease, 7_650)],
    ['void, also where no checkpoint was set', voided],
  ])('decided before a %s does nothing; decided anew, it ends the lease', (_name, between) => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    next(state, between(lease));
    expect(next(state, expire([lease])).ended).toEqual([]);
    const seen = current(state);
    expect(next(state, expire([seen])).ended).toEqual([{ lease: seen, reason: 'expired' }]);
  });

  it('a version of the future ends nothing either', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1);
    expect(next(state, expire([{ ...lease, version: 1 }])).ended).toEqual([]);
  });
});

describe('the end of the hold', () => {
  it('counts only in the term of its proposer', () => {
    const state = emptyState({ holding: true });
    next(state, { type: 'endHold', term: 1 }, 2);
    expect(resultOf(state, acquire(state, 'a', 1))).toMatchObject({ type: 'notGranted', reason: 'recovering' });
    next(state, { type: 'endHold', term: 2 }, 2);
    expect(resultOf(state, acquire(state, 'a', 1)).type).toBe('granted');
  });

  it('changes nothing where there is no hold', () => {
    const state = emptyState();
    expect(next(state, { type: 'endHold', term: 1 })).toEqual({ result: { type: 'done' }, ...NOTHING });
    expect(state.holding).toBe(false);
  });
});
