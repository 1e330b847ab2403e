import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Command } from '../../src/lease/commands.js';
import { hashState } from '../../src/lease/hash.js';
import { createState } from '../../src/lease/load.js';
import { describeEnd, listNames, position, queueOf } from '../../src/lease/lookup.js';
import { allRecords, changedBytes } from '../../src/lease/records.js';
import { summaryOf } from '../../src/lease/state.js';
import type { State } from '../../src/lease/state.js';
import type { Applied, Lease } from '../../src/lease/types.js';
import { contents, createTable, cut, emptyState, HISTORY, inOrder, load, next, summary } from './kit.js';
import type { SummaryOptions } from './kit.js';
import { Model } from './model.js';
import { commandOf, operation, SMALL_LIMITS } from './operations.js';

const options = (holding: boolean): SummaryOptions => ({ keep: 3, holding, limits: SMALL_LIMITS });
const holds = fc.oneof({ arbitrary: fc.constant(false), weight: 3 }, { arbitrary: fc.constant(true), weight: 1 });
const many = { minLength: 1, maxLength: 150, size: 'max' } as const;
const operations = fc.array(operation, many);

/** The same state out of its records, in another order. */
function reloaded(state: State): State {
  return createState(summaryOf(state), HISTORY, state.revision, [...allRecords(state)].reverse());
}

describe('apply, over random commands with small limits', () => {
  it('gives the results, changes and state of the model, also when it is loaded anew in between', () => {
    const steps = fc.array(fc.record({ one: operation, reload: fc.nat({ max: 7 }) }), many);
    fc.assert(
      fc.property(steps, holds, (list, holding) => {
        let state = emptyState(options(holding));
        const model = new Model(summary(options(holding)));
        for (const { one, reload } of list) {
          const { leases, waiters, coolDowns } = model;
          const before = { leases, waiters, coolDowns: [...coolDowns] };
          const command = commandOf(one, model);
          const applied = next(state, command, 0);
          expect(applied.result).toEqual(model.apply(0, command));
          expect(inOrderOf(applied)).toEqual(changesOf(model, before));
          if (reload === 0) state = reloaded(state);
          compareState(state, model);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('gives one order of tokens and at most one live lease in each domain and slot', () => {
    fc.assert(
      fc.property(operations, (list) => {
        const model = new Model(summary(options(false)));
        const state = emptyState(options(false));
        const newest = new Map<string, number>();
        for (const one of list) {
          const command = commandOf(one, model);
          model.apply(0, command);
          const { granted } = next(state, command, 0);
          // Several grants of one entry share its token, so each is of another domain (L11).
          expect(new Set(granted.map(({ domain }) => domain)).size).toBe(granted.length);
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
      fc.property(operations, holds, (list, holding) => {
        const model = new Model(summary(options(holding)));
        const state = emptyState(options(holding));
        for (const one of list) {
          const command = commandOf(one, model);
          model.apply(0, command);
          next(state, command, 0);
          const again = reloaded(state);
          expect(hashState(again)).toBe(hashState(state));
          expect(contents(allRecords(again))).toEqual(contents(allRecords(state)));
          expect(summaryOf(again)).toEqual(summaryOf(state));
          expect(again.counts).toEqual(state.counts);
          expect(again.slots).toEqual(state.slots);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('gathered cut by cut give the same state, whatever the rhythm, and a restart goes on as if nothing had been', () => {
    const step = { one: operation, cutA: fc.boolean(), cutB: fc.nat({ max: 9 }), restart: fc.nat({ max: 9 }) };
    fc.assert(
      fc.property(fc.array(fc.record(step), many), (list) => {
        const model = new Model(summary(options(false)));
        const a = emptyState(options(false));
        let b = emptyState(options(false));
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
        const { leases, waiters, coolDowns, counting } = inOrder(model);
        expect(contents(tableA.records.values())).toMatchObject({ leases, waiters, coolDowns, counting });
        expect(hashState(load(tableB))).toBe(hashState(load(tableA)));
      }),
      { numRuns: 60 },
    );
  });
});

/** What an entry changed, each list in an order of its own. */
function inOrderOf({ granted, ended, queued, left, closed, opened }: Applied): object {
  return {
    granted: granted.map(leaseKey).sort(),
    ended: ended.map(({ lease, reason }) => `${leaseKey(lease)} ${reason}`).sort(),
    queued,
    left: left.map((waiter) => waiter.queuedAt).sort(),
    closed: closed.map((one) => `${one.domain} ${one.since} ${one.ms}`).sort(),
    opened: opened.map((one) => `${one.domain} ${one.since} ${one.ms}`).sort(),
  };
}

/** The same from the model, by comparing it with what it was. */
function changesOf(model: Model, before: Pick<Model, 'leases' | 'waiters' | 'coolDowns'>): object {
  const { leases, waiters, coolDowns, finished, revision } = model;
  const gone = before.leases.filter((lease) => model.live(lease) === undefined);
  const ended = gone.map((lease) => {
    const over = finished.find((one) => one.requestId === lease.requestId && one.finishedAt === revision);
    return `${leaseKey(lease)} ${over?.reason}`;
  });
  const coolDownKey = (one: (typeof coolDowns)[number]): string => `${one.domain} ${one.since} ${one.ms}`;
  const closedNow = coolDowns.map(coolDownKey);
  const closedBefore = before.coolDowns.map(coolDownKey);
  return {
    granted: leases
      .filter((lease) => lease.token === revision)
      .map(leaseKey)
      .sort(),
    ended: ended.sort(),
    queued: waiters.find((waiter) => waiter.queuedAt === revision),
    left: before.waiters
      .filter((waiter) => !waiters.includes(waiter))
      .map((waiter) => waiter.queuedAt)
      .sort(),
    closed: closedNow.filter((key) => !closedBefore.includes(key)).sort(),
    opened: closedBefore.filter((key) => !closedNow.includes(key)).sort(),
  };
}

function leaseKey({ domain, token }: Lease): string {
  return `${domain} ${token}`;
}

function compareState(state: State, model: Model): void {
  expect(contents(allRecords(state))).toEqual(inOrder(model));
  const { forgotten, holding, limits } = model;
  expect(summaryOf(state)).toEqual({ forgotten, holding, limits });
  const shown = [...model.leases, ...model.waiters, ...model.coolDowns].map(({ domain }) => domain);
  expect(listNames(state, '', '', shown.length + 1)).toEqual([...new Set(shown)].sort());
  for (const waiter of model.waiters) {
    const place = model.queue(waiter.domain).indexOf(waiter);
    expect(queueOf(state, waiter.domain)[place]).toEqual(waiter);
    expect(queueOf(state, waiter.domain).map((one) => position(state, one))[place]).toBe(place + 1);
  }
  for (const lease of model.everGranted.slice(-8)) {
    if (model.live(lease) === undefined) expect(describeEnd(state, lease)).toEqual(model.describeEnd(lease));
  }
}
