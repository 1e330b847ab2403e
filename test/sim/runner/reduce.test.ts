import { describe, expect, it } from 'vitest';
import { reduce } from './reduce.js';

const all = Array.from({ length: 40 }, (_, index) => index);

describe('the reduction of a list', () => {
  it.each([[[]], [[17]], [[3, 31]], [[0, 13, 14, 39]]])('keeps exactly what is needed: %j', async (needed) => {
    const kept = await reduce(
      all,
      (left) => Promise.resolve(needed.every((each) => left.includes(each))),
      () => true,
    );
    expect(kept).toEqual(needed);
  });

  it('stops when its budget is spent, with a list that still fails', async () => {
    let calls = 0;
    const fails = (left: readonly number[]): Promise<boolean> => {
      calls++;
      return Promise.resolve([3, 31].every((each) => left.includes(each)));
    };
    const kept = await reduce(all, fails, () => calls < 5);
    expect(calls).toBe(5);
    expect(kept).toEqual(expect.arrayContaining([3, 31]));
    expect(kept.length).toBeLessThan(all.length);
  });
});
