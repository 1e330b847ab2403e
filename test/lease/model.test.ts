import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hashState } from '../../src/lease/hash.js';
import { allRecords, changedBytes } from '../../src/lease/records.js';
import { describeEnd } from '../../src/lease/lookup.js';
import { createState, summaryOf } from '../../src/lease/load.js';
import type { State } from '../../src/lease/state.js';
import type { Command } from '../../src/lease/commands.js';
import { contents, createTable, cut, emptyState, HISTORY, load, next } from './kit.js';
import { Model } from './model.js';
import { commandOf, operation } from './operations.js';

const KEEP = 3;
const operations = fc.array(operation, { minLength: 1, maxLength: 120, size: 'max' });

describe('apply, over random commands with a table of three requests', () => {
  it('gives the results, grants, ends and state of the model', () => {
    fc.assert(
      fc.property(operations, fc.boolean(), (list, holding) => {
        const state = emptyState({ keep: KEEP, holding });
        const model = new Model(KEEP, holding);
        for (const one of list) {
          const before = model.leases;
          const command = commandOf(one, model);
          const applied = next(state, command, 0);
          expect(applied.result).toEqual(model.apply(0, command));
          compareChanges(applied, before, model);
          compareState(state, model);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('gives one order of tokens and at most one live lease in each domain', () => {
    fc.assert(
      fc.property(operations, (list) => {
        const model = new Model(KEEP, false);
        const state = emptyState({ keep: KEEP });
        const newest = new Map<string, number>();
        for (const one of list) {
          const command = commandOf(one, model);
          model.apply(0, command);
          const { granted } = next(state, command, 0);
          // One grant an entry: otherwise two leases would share a token (L11).
          expect(granted.length).toBeLessThanOrEqual(1);
          for (const { domain, token } of granted) {
            expect(token).toBeGreaterThan(newest.get(domain) ?? 0);
            expect(token).toBe(state.revision);
            newest.set(domain, token);
          }
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe('the records, over random commands', () => {
  it('are the state: it comes back from them with the same hash after every entry, in any order of the records', () => {
    fc.assert(
      fc.property(operations, fc.boolean(), (list, holding) => {
        const model = new Model(KEEP, holding);
        const state = emptyState({ keep: KEEP, holding });
        for (const one of list) {
          const command = commandOf(one, model);
          model.apply(0, command);
          next(state, command, 0);
          const records = [...allRecords(state)].reverse();
          const again = createState(summaryOf(state), HISTORY, state.revision, records);
          expect(hashState(again)).toBe(hashState(state));
          expect(contents(allRecords(again))).toEqual(contents(allRecords(state)));
          expect(summaryOf(again)).toEqual(summaryOf(state));
        }
      }),
      { numRuns: 40 },
    );
  });

  it('gathered cut by cut give the same state, whatever the rhythm, and a restart goes on as if nothing had been', () => {
    const steps = fc.array(
      fc.record({ one: operation, cutA: fc.boolean(), cutB: fc.nat({ max: 9 }), restart: fc.nat({ max: 9 }) }),
      {
        minLength: 1,
        maxLength: 120,
        size: 'max',
      },
    );
    fc.assert(
      fc.property(steps, (list) => {
        const model = new Model(KEEP, false);
        const a = emptyState({ keep: KEEP });
        let b = emptyState({ keep: KEEP });
        const tableA = createTable(a);
        const tableB = createTable(b);
        let sinceCut: (Command | undefined)[] = [];
        for (const { one, cutA, cutB, restart } of list) {
          const command = commandOf(one, model);
          model.apply(0, command);
          const expected = next(a, command, 0);
          expect(next(b, command, 0)).toEqual(expected);
          sinceCut.push(command);
          if (cutA) {
            cut(tableA, a);
            expect(changedBytes(a)).toBe(0);
            expect(hashState(load(tableA))).toBe(hashState(a));
          }
          if (cutB === 0) {
            cut(tableB, b);
            sinceCut = [];
          }
          if (restart === 0) {
            b = load(tableB);
            for (const entry of sinceCut) next(b, entry, 0);
          }
          expect(hashState(b)).toBe(hashState(a));
        }
        cut(tableA, a);
        cut(tableB, b);
        expect(contents(tableA.records.values()).leases).toEqual(model.leases);
        expect(hashState(load(tableB))).toBe(hashState(load(tableA)));
      }),
      { numRuns: 60 },
    );
  });
});

function compareChanges(applied: ReturnType<typeof next>, before: Model['leases'], model: Model): void {
  const tokens = (leases: Model['leases']): number[] => leases.map((lease) => lease.token).sort();
  const grantedNow = model.leases.filter((lease) => lease.token === model.revision);
  expect(applied.granted).toEqual(grantedNow);
  const gone = before.filter((lease) => !model.leases.some((other) => other.token === lease.token));
  expect(tokens(applied.ended.map(({ lease }) => lease))).toEqual(tokens(gone));
  for (const { lease, reason } of applied.ended) {
    const over = model.finished.find((one) => one.requestId === lease.requestId && one.finishedAt === model.revision);
    expect(over).toMatchObject({ reason, token: lease.token });
  }
}

function compareState(state: State, model: Model): void {
  const found = contents(allRecords(state));
  expect(found.leases).toEqual(model.leases);
  expect(found.finished).toEqual(sorted(model.finished));
  expect(summaryOf(state)).toEqual({
    forgotten: model.forgotten,
    holding: model.holding,
    limits: { finishedRequests: KEEP },
  });
  for (const lease of model.everGranted.slice(-8)) {
    if (!model.leases.some((one) => one.token === lease.token)) {
      expect(describeEnd(state, lease)).toEqual(model.describeEnd(lease));
    }
  }
}

function sorted(finished: Model['finished']): Model['finished'] {
  return [...finished].sort(
    (left, right) => left.finishedAt - right.finishedAt || (left.requestId < right.requestId ? -1 : 1),
  );
}
