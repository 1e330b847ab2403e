/** The search alone, on registers: the textbook model. */
import { describe, expect, it } from 'vitest';
import { search } from './checker.js';
import type { Model, Timed } from './checker.js';

interface Access extends Timed {
  readonly type: 'read' | 'write' | 'swap';
  readonly value: number;
  /** For a swap: what was there before. */
  readonly before?: number;
}

const register: Model<number, Access> = {
  initial: 0,
  apply(state, { type, value, before }) {
    if (type === 'read') return state === value ? state : undefined;
    if (type === 'write') return value;
    return state === before ? value : undefined;
  },
  internal: () => [],
  key: String,
};

const read = (invokedAt: number, returnedAt: number, value: number): Access => ({
  type: 'read',
  invokedAt,
  returnedAt,
  value,
});
const write = (invokedAt: number, returnedAt: number | undefined, value: number): Access => ({
  type: 'write',
  invokedAt,
  returnedAt,
  value,
});
const swap = (invokedAt: number, returnedAt: number | undefined, before: number, value: number): Access => ({
  type: 'swap',
  invokedAt,
  returnedAt,
  before,
  value,
});

function found(history: readonly Access[], budget = 1_000_000): string {
  return search(register, history, budget).type;
}

describe('search', () => {
  it.each<[string, readonly Access[]]>([
    ['nothing', []],
    ['one after the other', [write(0, 1, 1), read(2, 3, 1), write(4, 5, 2), read(6, 7, 2)]],
    ['a read during a write sees either', [write(0, 10, 1), read(1, 2, 0), read(3, 4, 1)]],
    ['two writes at once, in the order that the reads need', [write(0, 10, 1), write(0, 10, 2), read(11, 12, 1)]],
    ['calls that touch are at once', [write(0, 5, 1), read(5, 6, 0), read(5, 6, 1)]],
    ['an unknown write that took effect late', [write(0, undefined, 1), read(10, 11, 0), read(12, 13, 1)]],
    ['an unknown write that never did', [write(0, undefined, 1), read(10, 11, 0), read(12, 13, 0)]],
    ['an unknown swap that could not', [swap(0, undefined, 7, 8), read(1, 2, 0)]],
    ['only unknown ones', [write(0, undefined, 1), write(0, undefined, 2)]],
    // The first way that is tried, the longest-known write first, is wrong.
    ['a way that must be gone back', [write(0, 10, 1), swap(1, 9, 0, 2), write(2, 8, 3), read(11, 12, 1)]],
  ])('finds an order: %s', (_, history) => {
    expect(found(history)).toBe('linearizable');
    expect(found(history.toReversed())).toBe('linearizable');
  });

  it.each<[string, readonly Access[]]>([
    ['a stale read', [write(0, 1, 1), read(2, 3, 0)]],
    ['new, then old', [write(0, 10, 1), read(1, 2, 1), read(3, 4, 0)]],
    ['a value of nowhere', [read(0, 1, 9)]],
    ['two swaps from one value', [swap(0, 1, 0, 1), swap(0, 1, 0, 2)]],
    ['an unknown write before it was sent', [read(0, 1, 1), write(2, undefined, 1)]],
    ['an unknown write twice', [write(0, undefined, 1), read(1, 2, 1), write(3, 4, 2), read(5, 6, 2), read(7, 8, 1)]],
  ])('finds none: %s', (_, history) => {
    expect(found(history)).toBe('impossible');
    expect(found(history.toReversed())).toBe('impossible');
  });

  it('says where it could not go on', () => {
    const late = read(4, 5, 0);
    const result = search(register, [write(0, 1, 1), read(2, 3, 1), late], 1_000);
    expect(result).toEqual({ type: 'impossible', state: 1, operation: late, done: 2 });
  });

  it('remembers positions: ten writes at once and an impossible read', () => {
    const writes = Array.from({ length: 10 }, (_, value) => write(0, 10, value));
    // 10! orders, but only 2^10 sets with at most 10 states each.
    expect(found([...writes, read(11, 12, 99)], 200_000)).toBe('impossible');
  });

  it('gives up with unknown when the budget is spent', () => {
    const writes = Array.from({ length: 10 }, (_, value) => write(0, 10, value));
    expect(found([...writes, read(11, 12, 99)], 1_000)).toBe('unknown');
    expect(found([write(0, 1, 1), read(2, 3, 1), read(4, 5, 0)], 1)).toBe('unknown');
  });

  it('takes a step of the model by itself only from its moment on', () => {
    // Falls back to 0 at 100 or later.
    const falling: Model<number, Access> = {
      ...register,
      internal: (state, latest) => (state !== 0 && latest >= 100 ? [0] : []),
    };
    const history = (returnedAt: number): Access[] => [write(0, 1, 5), read(50, returnedAt, 0)];
    expect(search(falling, history(99), 1_000).type).toBe('impossible');
    expect(search(falling, history(100), 1_000).type).toBe('linearizable');
    // Whatever follows it in the order lies after it in time.
    expect(search(falling, [...history(100), read(51, 99, 5)], 1_000).type).toBe('linearizable');
    expect(search(falling, [...history(150), write(60, 90, 7), read(91, 95, 7)], 1_000).type).toBe('linearizable');
    expect(search(falling, [write(0, 1, 5), read(50, 200, 0), read(201, 202, 5)], 1_000).type).toBe('impossible');
  });
});
