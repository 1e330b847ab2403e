/** The list of what is due, against a list that is searched as a whole. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createDueList, dropDue, setDue, takeDue } from '../../src/replica/due.js';
import type { Due } from '../../src/replica/due.js';

interface Item extends Due {
  readonly name: number;
}

function items(count: number): Item[] {
  return Array.from({ length: count }, (_, name) => ({ name, dueAt: Infinity }));
}

describe('a list of what is due', () => {
  it('gives each item once, not before its time and not more than a step after it, however they were moved', () => {
    const action = fc.oneof(
      fc.record({ type: fc.constant('set' as const), item: fc.nat(9), at: fc.integer({ min: -50, max: 2_000 }) }),
      fc.record({ type: fc.constant('drop' as const), item: fc.nat(9) }),
      fc.record({ type: fc.constant('take' as const), ms: fc.nat(200), limit: fc.integer({ min: 1, max: 12 }) }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const all = items(10);
        const list = createDueList<Item>();
        const due = new Map<Item, number>();
        let now = 0;
        for (const each of actions) {
          if (each.type === 'take') {
            now += each.ms;
            const taken = takeDue(list, now, each.limit);
            for (const item of taken) {
              expect(due.get(item)).toBeLessThanOrEqual(now);
              due.delete(item);
            }
            const late = [...due.values()].filter((at) => at <= now - 20);
            if (taken.length < each.limit) expect(late).toEqual([]);
            else expect(taken).toHaveLength(each.limit);
          } else {
            const item = all[each.item];
            if (item === undefined) throw new Error('no such item');
            if (each.type === 'drop') {
              dropDue(list, item);
              due.delete(item);
            } else {
              setDue(list, item, each.at);
              due.set(item, each.at);
            }
          }
          for (const item of all) expect(item.dueAt).toBe(due.get(item) ?? Infinity);
        }
        expect([...list.steps.values()].reduce((sum, step) => sum + step.size, 0)).toBe(due.size);
        expect([...list.steps.values()].every((step) => step.size > 0)).toBe(true);
      }),
    );
  });

  it('gives oldest first, over steps that lie hours apart', () => {
    const list = createDueList<Item>();
    const [late, early, middle] = items(3) as [Item, Item, Item];
    setDue(list, late, 7_200_000);
    setDue(list, early, 5);
    setDue(list, middle, 3_600_000);
    expect(takeDue(list, 4)).toEqual([]);
    expect(takeDue(list, 8_000_000)).toEqual([early, middle, late]);
    expect(list.steps.size).toBe(0);
    setDue(list, early, 1);
    expect(takeDue(list, 8_000_000)).toEqual([early]);
  });

  it('takes one out that is due never', () => {
    const list = createDueList<Item>();
    const [item] = items(1) as [Item];
    setDue(list, item, 10);
    setDue(list, item, Infinity);
    expect(list.steps.size).toBe(0);
    expect(takeDue(list, 1e9)).toEqual([]);
  });
});
