import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DomainOrder } from '../../src/server/pipeline-order.js';
import type { Ordered } from '../../src/server/pipeline-order.js';

interface Piece extends Ordered {
  readonly at: number;
}

it('whatever ends when: those of one domain begin in the order they came, one at a time, and all of them begin', () => {
  const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(names, { maxLength: 12 }), fc.infiniteStream(fc.nat()), (pieces, picks) => {
      const order = new DomainOrder<Piece>();
      const running: Piece[] = [];
      const begun: number[] = [];
      const begin = (piece: Piece): void => {
        for (const other of running) expect(piece.names.filter((name) => other.names.includes(name))).toEqual([]);
        running.push(piece);
        begun.push(piece.at);
      };
      const endOne = (): void => {
        const [piece] = running.splice((picks.next().value ?? 0) % running.length, 1);
        if (piece !== undefined) order.leave(piece).forEach(begin);
      };
      pieces.forEach((of, at) => {
        const piece = { at, names: of, before: 0 };
        if (order.enter(piece)) begin(piece);
        if ((picks.next().value ?? 0) % 2 === 0 && running.length > 0) endOne();
      });
      while (running.length > 0) endOne();
      expect([...begun].sort((left, right) => left - right)).toEqual(pieces.map((_, at) => at));
      for (const name of ['a', 'b', 'c', 'd'] as const) {
        const of = begun.filter((at) => pieces[at]?.includes(name));
        expect(of).toEqual([...of].sort((left, right) => left - right));
      }
    }),
  );
});

it('one that gives up its place in the middle frees nobody who waits for another', () => {
  const order = new DomainOrder<Piece>();
  const [first, second, third] = [0, 1, 2].map((at) => ({ at, names: ['a'], before: 0 }));
  if (first === undefined || second === undefined || third === undefined) throw new Error('three are made');
  expect([order.enter(first), order.enter(second), order.enter(third)]).toEqual([true, false, false]);
  expect(order.leave(second)).toEqual([]);
  expect(order.leave(first)).toEqual([third]);
  expect(order.leave(third)).toEqual([]);
  expect(order.enter({ at: 3, names: ['a'], before: 0 })).toBe(true);
});
