import { describe, expect, it } from 'vitest';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { Revision } from '../../src/base/revision.js';
import { findRequest, leaseOf, liveCount } from '../../src/lease/lookup.js';
import { allRecords, changedBytes, takeChanges } from '../../src/lease/records.js';
import { CorruptState, createState } from '../../src/lease/load.js';
import { summaryOf } from '../../src/lease/state.js';
import type { FinishedRequest, Lease, StateRecord } from '../../src/lease/types.js';
import {
  ASKED,
  BASE,
  HISTORY,
  acquire,
  createTable,
  cut,
  domain,
  emptyState,
  expire,
  granted,
  id,
  keyText,
  load,
  next,
  others,
  release,
  resultOf,
  rev,
  summary,
  withdraw,
} from './kit.js';

function leaseRecord(name: string, request: number, token: Revision, more: Partial<Lease> = {}): StateRecord {
  const state = emptyState();
  const lease = { ...granted(state, name, request), token, ...more };
  return { type: 'domain', domain: domain(name), lease };
}
function over(request: number, finishedAt: Revision, more: Partial<FinishedRequest> = {}): FinishedRequest {
  const fixed = { reason: 'withdrawn', by: '', note: '', owner: '', asked: undefined, token: undefined } as const;
  return { requestId: id(request), domain: domain('a'), finishedAt, ...fixed, ...more };
}
function batch(...requests: FinishedRequest[]): StateRecord {
  return { type: 'finished', lastRevision: requests.at(-1)?.finishedAt ?? ZERO_REVISION, requests };
}

describe('a cut', () => {
  it('puts the domains that changed and the requests that finished, and nothing a second time', () => {
    const state = emptyState();
    const a = granted(state, 'a', 1);
    const b = granted(state, 'b', 2);
    next(state, release(a));
    const first = takeChanges(state);
    expect(first.put).toEqual([
      { type: 'domain', domain: 'b', lease: b },
      {
        type: 'finished',
        lastRevision: rev(3),
        requests: [over(1, rev(3), { reason: 'released', token: a.token, asked: ASKED })],
      },
    ]);
    expect(first.remove).toEqual([]);
    expect(takeChanges(state)).toEqual({ summary: summaryOf(state), put: [], remove: [] });
  });

  it('removes a domain that the cut before has, and only such a one', () => {
    const state = emptyState();
    const a = granted(state, 'a', 1);
    takeChanges(state);
    next(state, release(granted(state, 'b', 2)));
    next(state, expire([a]));
    next(state, release(granted(state, 'a', 3)));
    expect(takeChanges(state).remove).toEqual([{ type: 'domain', domain: 'a' }]);
  });

  it('puts a domain again that was freed and granted anew, and a lease whose checkpoint changed', () => {
    const state = emptyState();
    const a = granted(state, 'a', 1);
    const b = granted(state, 'b', 2);
    takeChanges(state);
    next(state, release(a));
    const again = granted(state, 'a', 3);
    next(state, { type: 'checkpoint', leases: [{ domain: b.domain, token: b.token, leftMs: 5 }] });
    const { put, remove } = takeChanges(state);
    expect(put.filter((record) => record.type === 'domain')).toEqual([
      { type: 'domain', domain: 'a', lease: again },
      { type: 'domain', domain: 'b', lease: { ...b, version: 1, checkpointLeftMs: 5 } },
    ]);
    expect(remove).toEqual([]);
  });

  it('removes a record of finished requests once all in it are forgotten, and writes none that are forgotten already', () => {
    const state = emptyState({ keep: 3 });
    const table = createTable(state);
    next(state, withdraw('a', 1));
    next(state, withdraw('a', 2));
    cut(table, state);
    next(state, withdraw('a', 3));
    next(state, withdraw('a', 4));
    expect(cut(table, state).remove).toEqual([]);
    for (let i = 5; i <= 9; i++) next(state, withdraw('a', i));
    const { put, remove } = cut(table, state);
    expect(remove.map(keyText)).toEqual([`finished ${rev(2)}`, `finished ${rev(4)}`]);
    expect(put).toEqual([batch(over(7, rev(7)), over(8, rev(8)), over(9, rev(9)))]);
  });

  it('is the state at its own revision, whatever happens before it is written', () => {
    const state = emptyState();
    const a = granted(state, 'a', 1);
    const { put } = takeChanges(state);
    const then = structuredClone(put);
    next(state, { type: 'checkpoint', leases: [{ domain: a.domain, token: a.token, leftMs: 5 }] });
    next(state, withdraw('a', 1));
    expect(put).toEqual(then);
  });

  it('keeps the loaded records removable after a restart', () => {
    const state = emptyState({ keep: 3 });
    const table = createTable(state);
    granted(state, 'a', 1);
    others(state, 3, 100);
    cut(table, state);
    const restarted = load(table);
    next(restarted, withdraw('a', 1));
    others(restarted, 3, 200);
    expect(cut(table, restarted).remove.map(keyText)).toEqual(['domain a', `finished ${rev(7)}`]);
  });
});

describe('the estimate of changed bytes', () => {
  it('is 0 without changes, rises with what changes, and does not grow by repetition', () => {
    const state = emptyState({ keep: 2 });
    expect(changedBytes(state)).toBe(0);
    next(state, undefined);
    resultOf(state, { type: 'endHold', term: 1 });
    expect(changedBytes(state)).toBe(0);
    const lease = granted(state, 'a', 1, { metadata: [['key', 'x'.repeat(1_000)]] });
    const afterGrant = changedBytes(state);
    expect(afterGrant).toBeGreaterThan(1_000);
    expect(afterGrant).toBeLessThan(1_500);
    for (let i = 0; i < 100; i++) {
      next(state, { type: 'checkpoint', leases: [{ domain: lease.domain, token: lease.token, leftMs: i }] });
    }
    expect(changedBytes(state)).toBe(afterGrant);
    next(state, release(lease));
    expect(changedBytes(state)).toBeLessThan(500);
    for (let i = 0; i < 1_000; i++) next(state, withdraw('a', 100 + i));
    expect(changedBytes(state)).toBeLessThan(500);
    takeChanges(state);
    expect(changedBytes(state)).toBe(0);
  });

  it('counts the end of a hold, which only the summary shows', () => {
    const state = emptyState({ holding: true });
    next(state, { type: 'endHold', term: 1 });
    expect(changedBytes(state)).toBeGreaterThan(0);
    expect(takeChanges(state).summary.holding).toBe(false);
  });
});

describe('all records', () => {
  it('hold at most a thousand requests each, but never split a revision', () => {
    const state = emptyState({ keep: 10_000 });
    for (let i = 0; i < 999; i++) next(state, withdraw('a', i));
    const leases = Array.from({ length: 1_200 }, (_, i) => granted(state, `b/${i}`, 10_000 + i));
    next(state, expire(leases));
    for (let i = 0; i < 1_500; i++) next(state, withdraw('a', 20_000 + i));
    const records = [...allRecords(state)];
    const sizes = records.map((record) => (record.type === 'finished' ? record.requests.length : 0));
    expect(sizes).toEqual([2_199, 1_000, 500]);
    expect(new Set(records.map(keyText)).size).toBe(3);
    expect(summaryOf(createState(summaryOf(state), HISTORY, state.revision, records))).toEqual(summaryOf(state));
  });
});

describe('a state made of records', () => {
  it('discards what is forgotten, also out of a record that is not wholly forgotten', () => {
    const records = [batch(over(1, rev(1)), over(2, rev(2)), over(3, rev(3)))];
    const state = createState(summary({ forgotten: rev(2) }), HISTORY, rev(5), records);
    expect([1, 2, 3].map((n) => findRequest(state, id(n)) !== undefined)).toEqual([false, false, true]);
  });

  it('accepts an id that was forgotten and is known again', () => {
    const records = [batch(over(1, rev(1))), batch(over(1, rev(3)))];
    const state = createState(summary({ forgotten: rev(1) }), HISTORY, rev(5), records);
    expect(findRequest(state, id(1))).toMatchObject({ request: { finishedAt: rev(3) } });
    expect(takeChanges(state).remove).toEqual([{ type: 'finished', lastRevision: rev(1) }]);
  });

  it('keeps the ends of an earlier history', () => {
    const old = over(1, BASE, { token: rev(-100), reason: 'earlier_history' });
    const state = createState(summary(), HISTORY, BASE, [batch(old)]);
    const result = resultOf(state, acquire(state, 'a', 1));
    expect(result).toMatchObject({ type: 'ended', ended: { reason: 'earlier_history', lease: { token: rev(-100) } } });
  });

  it('goes on where it was', () => {
    const state = createState(summary(), HISTORY, rev(5), [leaseRecord('a', 1, rev(4))]);
    expect(liveCount(state)).toBe(1);
    expect(leaseOf(state, domain('a'))?.token).toBe(rev(4));
    expect(granted(state, 'b', 2).token).toBe(rev(6));
  });

  const lease = leaseRecord('a', 1, rev(4));
  const wrong: [string, RegExp, StateRecord[]][] = [
    ['two records of a domain', /two records of domain a/, [lease, leaseRecord('a', 2, rev(3))]],
    [
      'a lease under another name',
      /record of domain b holds a lease of a/,
      [{ ...lease, domain: domain('b') } as StateRecord],
    ],
    ['a token of the base', /not above the history's base/, [leaseRecord('a', 1, BASE)]],
    ['a token of the future', /beyond the revision/, [leaseRecord('a', 1, rev(6))]],
    ['one request that holds two domains', /holds two domains/, [lease, leaseRecord('b', 1, rev(3))]],
    ['a request that lives and is over', /is finished, and there twice/, [lease, batch(over(1, rev(5)))]],
    ['a request that is over twice', /is finished, and there twice/, [batch(over(1, rev(4))), batch(over(1, rev(5)))]],
    ['a request over in the future', /beyond the revision/, [batch(over(1, rev(6)))]],
    ['a request over before its grant', /not after its token/, [batch(over(1, rev(3), { token: rev(3) }))]],
    ['a token that lives and is over', /was granted twice/, [lease, batch(over(2, rev(5), { token: rev(4) }))]],
    [
      'a token that is over twice',
      /token \d+ of a was granted twice/,
      [batch(over(1, rev(4), { token: rev(3) }), over(2, rev(5), { token: rev(3) }))],
    ],
    ['a record under another key', /ends at/, [{ ...batch(over(1, rev(4))), lastRevision: rev(5) } as StateRecord]],
    ['an empty record of requests', /ends at 0/, [{ type: 'finished', lastRevision: rev(5), requests: [] }]],
    ['two records with one key', /two records of requests/, [batch(over(1, rev(4))), batch(over(2, rev(4)))]],
  ];
  it.each(wrong)('refuses %s', (_name, message, records) => {
    const build = (): unknown => createState(summary(), HISTORY, rev(5), records);
    expect(build).toThrow(CorruptState);
    expect(build).toThrow(message);
    expect(build).toThrow(/replace the member's data directory/);
  });

  it('refuses a summary that cannot be', () => {
    expect(() => createState(summary(), HISTORY, rev(-1), [])).toThrow(/before the history's base/);
    expect(() => createState(summary({ forgotten: rev(6) }), HISTORY, rev(5), [])).toThrow(/beyond its own revision/);
    expect(() => createState(summary({ keep: 0 }), HISTORY, rev(5), [])).toThrow(/at least 1 is needed/);
  });
});
