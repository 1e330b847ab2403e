/** Random histories: those that hold are accepted, one wrong answer is found. */
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/base/random.js';
import { corrupt, CORRUPTIONS } from './corrupt-history.js';
import type { Corruption } from './corrupt-history.js';
import { judge } from './judge.js';
import { randomHistory } from './random-history.js';
import type { Shape } from './random-history.js';

const SHAPE: Shape = {
  operations: 150,
  domains: 1,
  gapMs: 200,
  delayMs: 100,
  lostPercent: 5,
  keep: 1_000,
  expiry: 1.01,
};

const shapes: Record<string, Shape> = {
  'one domain': SHAPE,
  'three domains': { ...SHAPE, domains: 3 },
  'many at once': { ...SHAPE, delayMs: 2_000 },
  'many without an answer': { ...SHAPE, lostPercent: 40 },
  'requests that are forgotten soon': { ...SHAPE, keep: 2, lostPercent: 20 },
  'nothing at once': { ...SHAPE, delayMs: 0, lostPercent: 0 },
};

describe('histories that hold', () => {
  it.each(Object.entries(shapes))('%s', (_, shape) => {
    for (let seed = 1; seed <= 25; seed++) {
      const { operations, granted } = randomHistory(seed, shape);
      expect(judge(operations, { granted }), `seed ${seed} with the log`).toEqual({ type: 'holds' });
      expect(judge(operations), `seed ${seed} without`).toEqual({ type: 'holds' });
    }
  });

  it('a long one', () => {
    const { operations, granted } = randomHistory(7, { ...SHAPE, operations: 20_000, domains: 4 });
    expect(judge(operations, { granted })).toEqual({ type: 'holds' });
  });
});

/** Of histories with one thing wrong, the share that must be found. */
const FOUND = 0.97;
/** What is changed may be right as well: nobody else saw the lease, or the answer could have been that one. */
const MAY_BE_RIGHT: Partial<Record<Corruption, number>> = {
  'a grant that says it was not done': 0.75,
  'a domain shown held': 0.85,
};

describe('one thing wrong', () => {
  const histories = Array.from({ length: 40 }, (_, seed) => ({ seed, ...randomHistory(seed, SHAPE) }));

  it.each(Object.keys(CORRUPTIONS) as Corruption[])('%s', (how) => {
    const verdicts = histories.flatMap(({ seed, operations, granted }) => {
      const wrong = corrupt(operations, how, createRandom(seed));
      return wrong === undefined ? [] : [judge(wrong, { granted }).type];
    });
    expect(verdicts.length).toBeGreaterThan(10);
    expect(verdicts).not.toContain('unknown');
    const found = verdicts.filter((verdict) => verdict === 'violated').length;
    expect(found / verdicts.length).toBeGreaterThanOrEqual(MAY_BE_RIGHT[how] ?? FOUND);
  });

  it('a leader that ends leases early', () => {
    const early = { ...SHAPE, delayMs: 20, expiry: 0.7 };
    const verdicts = Array.from({ length: 40 }, (_, seed) => judge(randomHistory(seed, early).operations).type);
    const found = verdicts.filter((verdict) => verdict === 'violated').length;
    expect(found / verdicts.length).toBeGreaterThanOrEqual(FOUND);
  });
});
