/** Counting names (F12): n slots with one queue; the number is fixed for good. */
import { describe, expect, it } from 'vitest';
import { findRequest, leaseInTheWay, leaseOf, position, queueOf, slotsOf } from '../../src/lease/lookup.js';
import type { State } from '../../src/lease/state.js';
import type { Lease } from '../../src/lease/types.js';
import {
  acquire,
  createTable,
  cut,
  domain,
  emptyState,
  endCoolDown,
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
  rev,
  withdraw,
} from './kit.js';

const THREE = { slots: 3 };
const GPU = domain('gpu');

/** `gpu` with three slots, all held, by requests 0 to 2. */
function full(more: { readonly coolDownMs?: number } = {}): {
  readonly state: State;
  readonly leases: readonly [Lease, Lease, Lease];
} {
  const state = emptyState();
  const slot = (request: number): Lease => granted(state, 'gpu', request, { ...THREE, ...more });
  return { state, leases: [slot(0), slot(1), slot(2)] };
}
function holders(state: State): (string | undefined)[] {
  return [0, 1, 2].map((number) => leaseOf(state, domain(`gpu#${number}`))?.requestId);
}

describe('an acquire of one of several slots', () => {
  it('gets the lowest that is free, each slot a domain of its own', () => {
    const { state, leases } = full();
    expect(leases.map((lease) => [lease.domain, lease.token])).toEqual([
      ['gpu#0', rev(1)],
      ['gpu#1', rev(2)],
      ['gpu#2', rev(3)],
    ]);
    expect(slotsOf(state, GPU)).toBe(3);
    expect(leaseOf(state, GPU)).toBeUndefined();
    next(state, release(leases[2]));
    next(state, release(leases[0]));
    expect(granted(state, 'gpu', 3, THREE).domain).toBe('gpu#0');
    expect(granted(state, 'gpu', 4, THREE).domain).toBe('gpu#2');
  });

  it('is refused, or queued, when all are held; the lowest lease is the one in the way', () => {
    const { state, leases } = full();
    const held = { type: 'notGranted', reason: 'held', current: leases[0] };
    expect(resultOf(state, acquire(state, 'gpu', 3, THREE))).toEqual(held);
    const waiter = queued(state, 'gpu', 4, THREE);
    expect(waiter).toMatchObject({ domain: 'gpu', slots: 3 });
    expect(queueOf(state, GPU)).toEqual([waiter]);
    next(state, release(leases[0], '', [4]));
    expect(leaseInTheWay(state, GPU)).toEqual(leases[1]);
  });

  it('with a known id is answered with its slot', () => {
    const { state, leases } = full();
    expect(resultOf(state, acquire(state, 'gpu', 1, THREE))).toEqual({ type: 'granted', lease: leases[1] });
    next(state, release(leases[1]));
    const ended = { lease: { domain: 'gpu#1', token: rev(2) }, reason: 'released', by: '', note: '', currentToken: 0 };
    expect(resultOf(state, acquire(state, 'gpu', 1, THREE))).toEqual({ type: 'ended', ended });
    // Who holds the slot now is what its end tells.
    const later = granted(state, 'gpu', 9, THREE);
    const again = resultOf(state, acquire(state, 'gpu', 1, THREE));
    expect(again).toMatchObject({ ended: { currentToken: later.token } });
  });

  it.each(['live', 'over'])('with the id of another number of slots, or another name, is refused: %s', (what) => {
    const { state, leases } = full();
    if (what === 'over') next(state, release(leases[1]));
    const difference = (name: string, slots: number): unknown => resultOf(state, acquire(state, name, 1, { slots }));
    expect(difference('gpu', 2)).toEqual({ type: 'reused', difference: 'slots' });
    expect(difference('gpu', 1)).toEqual({ type: 'reused', difference: 'slots' });
    expect(difference('cpu', 3)).toEqual({ type: 'reused', difference: 'domain' });
  });
});

describe('the number of slots', () => {
  it('is fixed by the first grant for good, through every end of every lease', () => {
    const { state, leases } = full();
    const differ = (slots: number): unknown => resultOf(state, acquire(state, 'gpu', 50, { slots, waitMs: 9 }));
    const refused = (current: Lease | undefined): object => ({ type: 'notGranted', reason: 'slots_differ', current });
    for (const slots of [1, 2, 4]) expect(differ(slots)).toEqual(refused(leases[0]));
    for (const lease of leases) next(state, release(lease));
    for (const slots of [1, 2, 4]) expect(differ(slots)).toEqual(refused(undefined));
    expect(findRequest(state, id(50))).toBeUndefined();
    expect(granted(state, 'gpu', 60, THREE).domain).toBe('gpu#0');
  });

  it('is not fixed by an acquire that is refused', () => {
    const state = emptyState({ limits: { leasesPerPrincipal: 0 } });
    expect(resultOf(state, acquire(state, 'gpu', 1, THREE)).type).toBe('overQuota');
    expect(slotsOf(state, GPU)).toBeUndefined();
    expect(state.slots.size).toBe(0);
  });
});

describe('a name is exclusive or counting, never both', () => {
  const differs = { reason: 'slots_differ' };

  it('while somebody holds it as a whole', () => {
    const state = emptyState();
    const lease = granted(state, 'gpu', 1);
    expect(resultOf(state, acquire(state, 'gpu', 2, THREE))).toMatchObject({ ...differs, current: lease });
    next(state, release(lease));
    expect(granted(state, 'gpu', 2, THREE).domain).toBe('gpu#0');
  });

  it('while somebody waits for it as a whole, though nobody holds it', () => {
    const state = emptyState();
    const lease = granted(state, 'gpu', 1);
    queued(state, 'gpu', 2);
    next(state, release(lease, '', [2]));
    expect(resultOf(state, acquire(state, 'gpu', 3, THREE))).toMatchObject(differs);
    next(state, endWait([2]));
    expect(granted(state, 'gpu', 3, THREE).domain).toBe('gpu#0');
  });

  it('while it is closed as a whole', () => {
    const state = emptyState();
    const { closed } = next(state, expire([granted(state, 'gpu', 1, { coolDownMs: 9 })]));
    expect(resultOf(state, acquire(state, 'gpu', 2, THREE))).toMatchObject(differs);
    next(state, endCoolDown(closed));
    expect(granted(state, 'gpu', 2, THREE).domain).toBe('gpu#0');
  });

  it('and once it counts, for ever', () => {
    const state = emptyState();
    next(state, release(granted(state, 'gpu', 1, THREE)));
    expect(resultOf(state, acquire(state, 'gpu', 2))).toMatchObject(differs);
  });
});

describe('a freed slot', () => {
  it.each([
    ['release', (lease: Lease) => release(lease)],
    ['withdrawal', () => withdraw('gpu', 1)],
    ['expiry', (lease: Lease) => expire([lease])],
    ['end of a wait', () => endWait([1])],
  ])('(%s) goes to the head of the one queue', (_name, command) => {
    const { state, leases } = full();
    const [first, second] = [queued(state, 'gpu', 10, THREE), queued(state, 'gpu', 11, THREE)];
    expect(position(state, second)).toBe(2);
    const applied = next(state, command(leases[1]));
    expect(applied.granted).toMatchObject([{ domain: 'gpu#1', token: state.revision, requestId: id(10) }]);
    expect(applied.left).toEqual([first]);
    expect(position(state, second)).toBe(1);
  });

  it('with others goes lowest first to the first of the queue, in whatever order they were listed', () => {
    const { state, leases } = full();
    for (const request of [10, 11]) queued(state, 'gpu', request, THREE);
    const applied = next(state, expire([leases[2], leases[1], leases[0]]));
    expect(applied.granted.map(({ domain: of, token, requestId }) => [of, token, requestId])).toEqual([
      ['gpu#0', rev(6), id(10)],
      ['gpu#1', rev(6), id(11)],
    ]);
    expect(holders(state)).toEqual([id(10), id(11), undefined]);
  });

  it('closed after its expiry is passed over until it is opened; then the lowest goes first again', () => {
    const { state, leases } = full({ coolDownMs: 9 });
    for (const request of [10, 11, 12]) queued(state, 'gpu', request, THREE);
    const { closed, granted: none } = next(state, expire([leases[1], leases[0]]));
    expect(none).toEqual([]);
    expect(closed.map((one) => one.domain)).toEqual(['gpu#1', 'gpu#0']);
    next(state, release(leases[2]));
    expect(holders(state)).toEqual([undefined, undefined, id(10)]);
    const opened = next(state, endCoolDown(closed));
    expect(opened.opened).toEqual(closed);
    expect(holders(state)).toEqual([id(11), id(12), id(10)]);
    // The others of the name were neither closed nor opened.
    expect(state.coolDowns.size).toBe(0);
  });

  it('passes over the detached; a call of one of them gets it', () => {
    const { state, leases } = full();
    for (const request of [10, 11]) queued(state, 'gpu', request, THREE);
    next(state, release(leases[2], '', [10, 11]));
    expect(queueOf(state, GPU)).toHaveLength(2);
    expect(granted(state, 'gpu', 11, THREE).domain).toBe('gpu#2');
  });

  it('takes with it another one that was free with the queue', () => {
    const { state, leases } = full();
    for (const request of [10, 11, 12]) queued(state, 'gpu', request, THREE);
    next(state, release(leases[2], '', [10, 11, 12]));
    next(state, release(leases[0], '', [11]));
    expect(holders(state)).toEqual([id(10), id(1), id(12)]);
    expect(queueOf(state, GPU).map(({ requestId }) => requestId)).toEqual([id(11)]);
  });

  it('has its own order of tokens; another slot may have the same token', () => {
    const { state, leases } = full();
    for (const request of [10, 11]) queued(state, 'gpu', request, THREE);
    next(state, expire(leases));
    const [first, second] = [leaseOf(state, domain('gpu#0')), leaseOf(state, domain('gpu#1'))];
    expect(first?.token).toBe(second?.token);
    if (first !== undefined) next(state, release(first));
    expect(leaseOf(state, domain('gpu#1'))).toBe(second);
  });
});

describe('commands for a slot', () => {
  it('renew its clock and name it; a withdrawal names the name', () => {
    const { state, leases } = full();
    const { domain: of, token } = leases[1];
    next(state, { type: 'checkpoint', leases: [{ domain: of, token, leftMs: 5 }] });
    expect(leaseOf(state, of)).toMatchObject({ version: 1, checkpointLeftMs: 5 });
    expect(resultOf(state, withdraw('gpu#1', 1))).toEqual({ type: 'reused', difference: 'domain' });
    expect(next(state, withdraw('gpu', 1)).ended).toHaveLength(1);
  });
});

describe('a name whose slots are all closed', () => {
  it('is refused because of that, not because somebody holds it', () => {
    const { state, leases } = full({ coolDownMs: 9 });
    next(state, expire([leases[0], leases[1]]));
    expect(resultOf(state, acquire(state, 'gpu', 9, THREE))).toMatchObject({ reason: 'held', current: leases[2] });
    next(state, expire([leases[2]]));
    const closed = { type: 'notGranted', reason: 'cool_down', current: undefined };
    expect(resultOf(state, acquire(state, 'gpu', 9, THREE))).toEqual(closed);
  });
});

describe('the limit of counting names', () => {
  const ANN = { ...THREE, principal: 'ann' };
  const over = { type: 'overQuota', of: 'this cluster', what: 'counting names', limit: 4 };
  const annHas = (limit: number): object => ({ ...over, of: 'ann', limit });
  const begin = (state: State, name: string, request: number, principal: string): void => {
    next(state, release(granted(state, name, request, { ...THREE, principal })));
  };

  it('refuses one more name, and nothing else', () => {
    const state = emptyState({ limits: { countingNames: 4 } });
    for (const [at, principal] of ['ann', 'ann', 'bob', 'cid'].entries()) begin(state, `n${at}`, at, principal);
    const command = acquire(state, 'more', 10, { ...THREE, principal: 'dee', waitMs: 9 });
    expect(next(state, command)).toEqual({ result: over, ...NOTHING });
    expect(findRequest(state, id(10))).toBeUndefined();
    expect(granted(state, 'more', 11).domain).toBe('more');
    expect(granted(state, 'n0', 12, THREE).domain).toBe('n0#0');
  });

  it('leaves to others at least as many as one principal has begun', () => {
    const state = emptyState({ limits: { countingNames: 4 } });
    begin(state, 'a', 1, 'ann');
    begin(state, 'b', 2, 'ann');
    expect(next(state, acquire(state, 'c', 3, { ...ANN, waitMs: 9 }))).toEqual({ result: annHas(2), ...NOTHING });
    // What counts already is open to everybody.
    expect(granted(state, 'a', 4, ANN).domain).toBe('a#0');
    begin(state, 'c', 5, 'bob');
    expect(resultOf(state, acquire(state, 'd', 6, { ...THREE, principal: 'bob' }))).toMatchObject({ of: 'bob' });
    begin(state, 'd', 7, 'cid');
  });

  it('is the same after a restart', () => {
    const state = emptyState({ limits: { countingNames: 4 } });
    const table = createTable(state);
    begin(state, 'a', 1, 'ann');
    begin(state, 'b', 2, 'ann');
    cut(table, state);
    const loaded = load(table);
    expect(loaded.counts).toEqual(state.counts);
    expect(resultOf(loaded, acquire(loaded, 'c', 3, ANN))).toEqual(annHas(2));
  });
});
