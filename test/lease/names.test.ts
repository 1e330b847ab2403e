/** The order of names that a List shows, against a plain sorted array; blocks split and vanish on the way. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import { listNames } from '../../src/lease/lookup.js';
import { addName, namesFrom, removeName } from '../../src/lease/names.js';
import type { Names } from '../../src/lease/names.js';
import { domain, emptyState, endCoolDown, expire, granted, next, queued, release, withdraw } from './kit.js';

function expected(all: Iterable<string>, prefix: string, after: string, limit: number): string[] {
  const shown = [...all].filter((name) => name.startsWith(prefix) && name > after);
  return shown.sort().slice(0, limit);
}

describe('the names of a List', () => {
  it('are those of a sorted array, over thousands of additions and removals', () => {
    const name = fc.nat({ max: 2_999 }).map((n) => `${'abc'.charAt(n % 3)}/${n}`);
    const question = fc.record({
      prefix: fc.constantFrom('', 'a', 'b/', 'b/1', 'c/29', 'd'),
      after: fc.oneof(fc.constant(''), name, fc.constantFrom('a', 'b/', 'zz')),
      limit: fc.constantFrom(0, 1, 7, 5_000),
    });
    const batch = fc.record({ add: fc.boolean(), from: fc.nat({ max: 2_999 }), step: fc.nat({ max: 9 }), question });
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 30 }), (batches) => {
        const names: Names = [];
        const plain = new Set<string>();
        for (const { add, from, step, question: q } of batches) {
          for (let n = 0; n < 900; n++) {
            const number = (from + n * (step + 1)) % 3_000;
            const one = domain(`${'abc'.charAt(number % 3)}/${number}`);
            if (add) addName(names, one);
            else removeName(names, one);
            if (add) plain.add(one);
            else plain.delete(one);
          }
          expect(namesFrom(names, q.prefix, q.after, q.limit)).toEqual(expected(plain, q.prefix, q.after, q.limit));
          expect(names.flat()).toEqual([...plain].sort());
          expect(names.every((block) => block.length > 0 && block.length <= 512)).toBe(true);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('come page by page, each once', () => {
    const names: Names = [];
    for (let n = 0; n < 2_000; n++) addName(names, domain(`n/${n}`));
    const pages: Domain[] = [];
    for (
      let page = namesFrom(names, 'n/', '', 300);
      page.length > 0;
      page = namesFrom(names, 'n/', pages.at(-1) ?? '', 300)
    ) {
      pages.push(...page);
    }
    expect(pages).toEqual(names.flat());
  });
});

describe('a name is shown', () => {
  it('while it is held, waited for or closed, and no longer', () => {
    const state = emptyState();
    const shown = (): readonly string[] => listNames(state, '', '', 99);
    const lease = granted(state, 'a', 1, { coolDownMs: 5 });
    queued(state, 'a', 2);
    expect(shown()).toEqual(['a']);
    const { closed } = next(state, expire([lease]));
    expect(shown()).toEqual(['a']);
    next(state, endCoolDown(closed, 1, [2]));
    expect(shown()).toEqual(['a']);
    next(state, withdraw('a', 2));
    expect(shown()).toEqual([]);
  });

  it('as a slot where it is held, and as a name where it is waited for', () => {
    const state = emptyState();
    const slots = [1, 2].map((request) => granted(state, 'gpu', request, { slots: 2 }));
    queued(state, 'gpu', 3, { slots: 2 });
    expect(listNames(state, 'gp', '', 99)).toEqual(['gpu', 'gpu#0', 'gpu#1']);
    for (const slot of slots) next(state, release(slot));
    expect(listNames(state, 'gp', '', 99)).toEqual(['gpu#0']);
  });
});
