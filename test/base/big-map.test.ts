import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BigMap, PARTS, SPLIT_ABOVE } from '../../src/base/big-map.js';

function filled(count: number, nameOf = (at: number): string => `orders/${at}`): BigMap<string, number> {
  const map = new BigMap<string, number>();
  for (let at = 0; at < count; at++) map.set(nameOf(at), at);
  return map;
}

describe('a big map', () => {
  it('holds what a Map holds, on both sides of its split', () => {
    const key = fc.integer({ min: 0, max: 40 }).map((at) => `k${at}`);
    const act = fc.oneof(
      fc.record({ type: fc.constant('set' as const), key, value: fc.integer() }),
      fc.record({ type: fc.constant('delete' as const), key, value: fc.constant(0) }),
    );
    const property = fc.property(
      fc.constantFrom(0, SPLIT_ABOVE - 20),
      fc.array(act, { maxLength: 200 }),
      (start, acts) => {
        const map = filled(start);
        const model = new Map(map);
        for (const { type, key: name, value } of acts) {
          if (type === 'set') {
            map.set(name, value);
            model.set(name, value);
          } else expect(map.delete(name)).toBe(model.delete(name));
          expect(map.size).toBe(model.size);
          expect(map.get(name)).toBe(model.get(name));
          expect(map.has(name)).toBe(model.has(name));
        }
        expect(new Map(map)).toEqual(model);
        expect(new Set(map.keys())).toEqual(new Set(model.keys()));
        expect([...map.values()].sort()).toEqual([...model.values()].sort());
        expect([...map]).toHaveLength(model.size);
      },
    );
    fc.assert(property, { numRuns: 30 });
  }, 60_000);

  it('is one map while it is small', () => {
    expect(filled(SPLIT_ABOVE).partSizes).toEqual([SPLIT_ABOVE]);
  });

  it.each([
    ['names with a number', (at: number) => `orders/${at}`],
    ['names of one length', (at: number) => `orders/${String(at).padStart(9, '0')}`],
    ['a number in front', (at: number) => `${at}/orders/eu`],
    ['request ids', (at: number) => `${(at * 2_654_435_761).toString(16).padStart(12, '0')}-4e5f-8a9b-0c1d2e3f4a5b`],
    [
      'keys of records, as bytes',
      (at: number) => `\u0001\u0000\u0000${String.fromCharCode(at & 255, (at >> 8) & 255, at >> 16)}`,
    ],
  ])('spreads %s evenly over many maps: none moves more than a small part at once', (_, nameOf) => {
    const count = 200_000;
    const sizes = filled(count, nameOf).partSizes;
    expect(sizes).toHaveLength(PARTS);
    expect(Math.max(...sizes)).toBeLessThan((1.5 * count) / PARTS);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(count);
  });

  it('shows all that stay to whoever walks it while it grows, splits and shrinks, and nothing that is gone', () => {
    const map = filled(SPLIT_ABOVE - 10);
    const seen = new Set<string>();
    let added = 0;
    for (const [key] of map) {
      expect(map.has(key)).toBe(true);
      seen.add(key);
      // Each step adds one, far past the split, and takes one away that may have been seen or not.
      if (added < 2_000) map.set(`new/${added++}`, 0);
      if (added % 3 === 0) map.delete(`orders/${SPLIT_ABOVE - added}`);
    }
    expect(map.partSizes).toHaveLength(PARTS);
    for (const key of map.keys()) if (key.startsWith('orders/')) expect(seen.has(key)).toBe(true);
  });
});
