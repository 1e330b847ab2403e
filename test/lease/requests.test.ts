import { describe, expect, it } from 'vitest';
import { at, createFifo, from, push, shift } from '../../src/lease/fifo.js';
import { findRequest } from '../../src/lease/lookup.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { Revision } from '../../src/base/revision.js';
import { createRequests, hold, remember } from '../../src/lease/requests.js';
import type { FinishedRequest } from '../../src/lease/types.js';
import {
  cut,
  createTable,
  domain,
  emptyState,
  expire,
  granted,
  id,
  next,
  others,
  release,
  rev,
  withdraw,
} from './kit.js';

describe('the first-in-first-out ring', () => {
  it('keeps the order over growth and turns of the ring', () => {
    const fifo = createFifo<number>();
    const model: number[] = [];
    for (let i = 0; i < 500; i++) {
      push(fifo, i);
      model.push(i);
      if (i % 3 !== 0) expect(shift(fifo)).toBe(model.shift());
      expect(from(fifo, 0)).toEqual(model);
      expect(at(fifo, 0)).toBe(model[0]);
      expect(at(fifo, model.length - 1)).toBe(model.at(-1));
    }
    expect(from(fifo, 5)).toEqual(model.slice(5));
  });

  it('has nothing outside its length', () => {
    const fifo = createFifo<number>();
    expect(shift(fifo)).toBeUndefined();
    push(fifo, 1);
    shift(fifo);
    expect(at(fifo, 0)).toBeUndefined();
    expect(at(fifo, -1)).toBeUndefined();
    expect(fifo.ring).not.toContain(1);
  });
});

describe('the table of requests', () => {
  const over = (request: number, finishedAt: Revision): FinishedRequest => {
    const fixed = { reason: 'withdrawn', by: '', note: '', owner: '', asked: undefined, token: undefined } as const;
    return { requestId: id(request), domain: domain('a'), finishedAt, ...fixed };
  };

  it('takes no request twice', () => {
    const table = createRequests(ZERO_REVISION);
    remember(table, over(1, rev(1)));
    expect(() => {
      remember(table, over(1, rev(2)));
    }).toThrow(/finishes a second time/);
    expect(() => {
      hold(table, id(1), domain('a'));
    }).toThrow(/granted a second time/);
  });

  it('takes no request that is older than the newest, because eviction goes by the order', () => {
    const table = createRequests(ZERO_REVISION);
    remember(table, over(1, rev(2)));
    remember(table, over(2, rev(2)));
    expect(() => {
      remember(table, over(3, rev(1)));
    }).toThrow(/before the newest/);
  });
});

describe('eviction', () => {
  it('keeps the limit and forgets up to the youngest evicted', () => {
    const state = emptyState({ keep: 3 });
    for (let i = 1; i <= 5; i++) next(state, withdraw('a', i));
    expect([1, 2, 3, 4, 5].map((n) => findRequest(state, id(n)) !== undefined)).toEqual([
      false,
      false,
      true,
      true,
      true,
    ]);
    expect(state.requests.forgotten).toBe(rev(2));
  });

  it('takes all of one revision together, and only when the limit remains without them', () => {
    const state = emptyState({ keep: 3 });
    const leases = [granted(state, 'a', 1), granted(state, 'b', 2), granted(state, 'c', 3)];
    next(state, expire(leases));
    next(state, withdraw('d', 4));
    next(state, withdraw('d', 5));
    expect(state.requests.order.length).toBe(5);
    expect(state.requests.forgotten).toBe(0);
    next(state, withdraw('d', 6));
    expect(state.requests.order.length).toBe(3);
    expect(state.requests.forgotten).toBe(rev(4));
  });

  it('never takes the requests that the entry itself finished, however many', () => {
    const state = emptyState({ keep: 3 });
    const leases = Array.from({ length: 10 }, (_, i) => granted(state, `a/${i}`, i));
    next(state, expire(leases));
    expect(state.requests.order.length).toBe(10);
    next(state, withdraw('d', 100));
    expect(state.requests.order.length).toBe(11);
  });

  it('leaves every structure as large after 60 000 requests as after the first thousand', () => {
    const state = emptyState({ keep: 100 });
    const table = createTable(state);
    const sizes = (): number[] => [
      state.leases.size,
      state.requests.order.length,
      state.requests.order.ring.length,
      state.requests.known.size,
      state.requests.byLease.size,
      state.changes.dirty.domain.size,
      state.changes.outdated.length,
      state.changes.batches.ring.length,
    ];
    others(state, 1_000, 0);
    cut(table, state);
    const before = sizes();
    const lengthBefore = table.records.size;
    for (let round = 1; round < 60; round++) {
      others(state, 1_000, round * 1_000);
      cut(table, state);
    }
    expect(sizes()).toEqual(before);
    expect(table.records.size).toBe(lengthBefore);
  });

  it('bounds what a state holds that nobody ever cuts', () => {
    const state = emptyState({ keep: 100 });
    others(state, 10_000, 0);
    expect(state.requests.order.length).toBe(100);
    expect(state.requests.known.size).toBe(100);
    expect(state.requests.byLease.size).toBe(100);
    // One entry for each domain, of which there are as many as requests here.
    next(state, release(granted(state, 'other/0', 20_000)));
    expect(state.changes.dirty.domain.size).toBe(10_000);
  });
});
