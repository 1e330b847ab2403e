/** The records of waiters, cool-downs and counting names: what a cut puts and removes, and what comes back. */
import { describe, expect, it } from 'vitest';
import { hashState } from '../../src/lease/hash.js';
import { coolDownOf, position, queueOf, slotsOf } from '../../src/lease/lookup.js';
import { changedBytes, takeChanges } from '../../src/lease/records.js';
import type { State } from '../../src/lease/state.js';
import {
  createTable,
  cut,
  domain,
  emptyState,
  endCoolDown,
  endWait,
  expire,
  granted,
  id,
  keyText,
  load,
  next,
  queued,
  release,
  rev,
  withdraw,
} from './kit.js';

/** Domain `a` held with two waiters, `b` closed with one, `gpu` with one of two slots held and the other closed. */
function full(): State {
  const state = emptyState();
  granted(state, 'a', 1, { metadata: [['k', 'v']], owner: 'CN=a' });
  const closing = [granted(state, 'b', 2, { coolDownMs: 7 }), granted(state, 'gpu', 3, { slots: 2, coolDownMs: 8 })];
  granted(state, 'gpu', 4, { slots: 2 });
  next(state, expire(closing));
  queued(state, 'a', 5, { coolDownMs: 3, owner: 'CN=b', principal: 'p', metadata: [['k', 'w']] });
  queued(state, 'b', 6);
  queued(state, 'a', 7);
  return state;
}

describe('a cut', () => {
  it('puts each kind of record once', () => {
    const state = full();
    const { put, remove } = takeChanges(state);
    expect(put.map(keyText).sort()).toEqual(
      [
        ...['coolDown b', 'coolDown gpu#0', 'counting gpu', 'domain a', 'domain gpu#1', `finished ${rev(5)}`],
        ...[6, 7, 8].map((at) => `waiter ${rev(at)}`),
      ].sort(),
    );
    expect(remove).toEqual([]);
    expect(takeChanges(state)).toMatchObject({ put: [], remove: [] });
  });

  it('is loaded as the same state: queues in their order, slots taken, domains closed', () => {
    const state = full();
    const table = createTable(state);
    cut(table, state);
    const again = load(table);
    expect(hashState(again)).toBe(hashState(state));
    expect(queueOf(again, domain('a'))).toEqual(queueOf(state, domain('a')));
    expect(queueOf(again, domain('a')).map((waiter) => [waiter.requestId, position(again, waiter)])).toEqual([
      [id(5), 1],
      [id(7), 2],
    ]);
    expect(coolDownOf(again, domain('b'))).toEqual({ domain: 'b', since: rev(5), ms: 7 });
    expect(slotsOf(again, domain('gpu'))).toBe(2);
    expect(again.slots).toEqual(state.slots);
    expect(again.counts).toEqual(state.counts);
  });

  it('removes the waiters and cool-downs that the one before has, and no others', () => {
    const state = full();
    const table = createTable(state);
    cut(table, state);
    next(state, endWait([5]));
    next(state, endCoolDown([{ domain: domain('b'), since: rev(5) }]));
    // Queued and gone, closed and opened between two cuts: in no record.
    queued(state, 'a', 20);
    next(state, withdraw('a', 20));
    const { closed } = next(state, expire([granted(state, 'c', 21, { coolDownMs: 1 })]));
    next(state, endCoolDown(closed));
    const { put, remove } = cut(table, state);
    expect(remove.map(keyText).sort()).toEqual(['coolDown b', `waiter ${rev(6)}`, `waiter ${rev(7)}`]);
    // The waiter of b holds it now.
    expect(put.filter(({ type }) => type !== 'finished').map(keyText)).toEqual(['domain b']);
    expect(hashState(load(table))).toBe(hashState(state));
  });

  it('removes after a restart what the cut before the restart has', () => {
    const before = full();
    const table = createTable(before);
    cut(table, before);
    const state = load(table);
    const [first] = queueOf(state, domain('a'));
    next(state, withdraw('a', 5, 'CN=b'));
    next(state, endCoolDown([{ domain: domain('gpu#0'), since: rev(5) }]));
    const { remove } = cut(table, state);
    expect(first?.requestId).toBe(id(5));
    expect(remove.map(keyText).sort()).toEqual(['coolDown gpu#0', `waiter ${rev(6)}`]);
    expect(hashState(load(table))).toBe(hashState(state));
  });

  it('puts a domain that was closed again with its new revision', () => {
    const state = full();
    const table = createTable(state);
    cut(table, state);
    next(state, endCoolDown([{ domain: domain('gpu#0'), since: rev(5) }]));
    next(state, expire([granted(state, 'gpu', 30, { slots: 2, coolDownMs: 9 })]));
    const { put, remove } = cut(table, state);
    expect(remove).toEqual([]);
    expect(put).toContainEqual({
      type: 'coolDown',
      domain: 'gpu#0',
      coolDown: { domain: 'gpu#0', since: state.revision, ms: 9 },
    });
  });

  it('keeps a counting name for ever, though nothing of it is left', () => {
    const state = emptyState({ keep: 1 });
    const table = createTable(state);
    next(state, release(granted(state, 'gpu', 1, { slots: 2 })));
    cut(table, state);
    for (let i = 0; i < 9; i++) next(state, release(granted(state, 'other', 100 + i)));
    cut(table, state);
    expect([...table.records.keys()].filter((key) => !key.startsWith('finished'))).toEqual(['counting gpu']);
    expect(slotsOf(load(table), domain('gpu'))).toBe(2);
  });
});

describe('the estimate of changed bytes', () => {
  it('grows with waiters, cool-downs and counting names, and falls as they go', () => {
    const state = emptyState();
    const lease = granted(state, 'a', 1, { coolDownMs: 5 });
    takeChanges(state);
    queued(state, 'a', 2, { metadata: [['k', 'x'.repeat(1_000)]] });
    expect(changedBytes(state)).toBeGreaterThan(1_000);
    next(state, withdraw('a', 2));
    expect(changedBytes(state)).toBeLessThan(300);
    const before = changedBytes(state);
    next(state, expire([lease]));
    expect(changedBytes(state)).toBeGreaterThan(before + 30);
    const closed = changedBytes(state);
    granted(state, 'gpu', 3, { slots: 2 });
    expect(changedBytes(state)).toBeGreaterThan(closed + 30);
    takeChanges(state);
    expect(changedBytes(state)).toBe(0);
  });
});
