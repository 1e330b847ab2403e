/** What a loaded table may not say: each contradiction among waiters, cool-downs, counting names and limits. */
import { describe, expect, it } from 'vitest';
import type { Revision } from '../../src/base/revision.js';
import { CorruptState, createState } from '../../src/lease/load.js';
import type { State } from '../../src/lease/state.js';
import type { FinishedRequest, Lease, StateLimits, StateRecord, Waiter } from '../../src/lease/types.js';
import { ASKED, BASE, domain, HISTORY, id, rev, summary } from './kit.js';

const SINCE = { requestId: id(0), ...ASKED, metadata: [], owner: '', principal: 'client' };

function held(name: string, request: number, token = rev(1), more: Partial<Lease> = {}): StateRecord {
  const { ttlMs, holder, coolDownMs, metadata, owner, principal } = SINCE;
  const fixed = { ttlMs, holder, coolDownMs, metadata, owner, principal, grantedAtUnixMs: 1, version: 0 };
  const lease = { domain: domain(name), token, requestId: id(request), ...fixed, checkpointLeftMs: undefined };
  return { type: 'domain', domain: domain(name), lease: { ...lease, ...more } };
}
function waits(name: string, request: number, queuedAt: Revision, more: Partial<Waiter> = {}): StateRecord {
  const waiter = { ...SINCE, domain: domain(name), requestId: id(request), queuedAt, waitMs: 9, queuedAtUnixMs: 1 };
  return { type: 'waiter', queuedAt, waiter: { ...waiter, ...more } };
}
function closed(name: string, since = rev(2)): StateRecord {
  return { type: 'coolDown', domain: domain(name), coolDown: { domain: domain(name), since, ms: 5 } };
}
function counts(name: string, slots: number): StateRecord {
  return { type: 'counting', domain: domain(name), counting: { name: domain(name), slots, principal: 'client' } };
}
function over(request: number, finishedAt: Revision, more: Partial<FinishedRequest> = {}): StateRecord {
  const fixed = { reason: 'withdrawn', by: '', note: '', owner: '', asked: undefined, token: undefined } as const;
  const requests = [{ requestId: id(request), domain: domain('a'), finishedAt, ...fixed, ...more }];
  return { type: 'finished', lastRevision: finishedAt, requests };
}
function stateOf(...records: StateRecord[]): State {
  return createState(summary(), HISTORY, rev(9), records);
}

describe('a state made of records', () => {
  it('may have all that does not contradict itself', () => {
    const state = stateOf(
      waits('a', 3, rev(4)),
      waits('gpu', 4, rev(5), { slots: 2 }),
      held('gpu#1', 2, rev(1)),
      // One entry may have granted several domains.
      held('a', 1, rev(1)),
      closed('gpu#0'),
      counts('gpu', 2),
      closed('b'),
      waits('b', 5, rev(6)),
      // A free domain with a queue.
      waits('c', 6, rev(7)),
      // One token ended in two domains, and lives in a third.
      over(7, rev(8), { token: rev(1), domain: domain('x') }),
      over(8, rev(9), { token: rev(1), domain: domain('gpu#0') }),
    );
    expect(state.leases.size).toBe(2);
    expect(state.coolDowns.size).toBe(2);
    expect([...state.queues].map(([name, queue]) => [name, queue.length])).toEqual([
      ['a', 1],
      ['gpu', 1],
      ['b', 1],
      ['c', 1],
    ]);
  });

  it('orders a queue by the revisions, in whatever order its records come', () => {
    const records = [waits('a', 3, rev(8)), waits('a', 1, rev(3)), waits('a', 2, rev(5))];
    const order = stateOf(...records).queues.get(domain('a'));
    expect(order?.map(({ requestId }) => requestId)).toEqual([id(1), id(2), id(3)]);
  });

  const gpu = counts('gpu', 2);
  const wrong: [string, RegExp, StateRecord[]][] = [
    [
      'a cool-down under another name',
      /cool-down of domain b is of a/,
      [{ ...closed('a'), domain: domain('b') } as StateRecord],
    ],
    ['two cool-downs of a domain', /two cool-downs of domain a/, [closed('a'), closed('a', rev(3))]],
    ['a domain that is held and closed', /a is held and closed/, [held('a', 1), closed('a')]],
    ['a cool-down since the base', /closed since \d+, not above the history's base/, [closed('a', BASE)]],
    ['a cool-down of the future', /closed since \d+, beyond the revision/, [closed('a', rev(10))]],
    ['a cool-down of a counting name', /gpu is held as a whole/, [gpu, closed('gpu')]],
    ['a cool-down of a slot of no name', /gpu#0 is no slot/, [closed('gpu#0')]],
    ['a cool-down of a slot too many', /gpu#2 is no slot/, [gpu, closed('gpu#2')]],

    [
      'a counting name under another',
      /record of counting name b is of gpu/,
      [{ ...gpu, domain: domain('b') } as StateRecord],
    ],
    ['two records of a counting name', /two records of counting name gpu/, [gpu, counts('gpu', 3)]],
    ['a counting name that is a slot', /gpu#0 is a slot/, [counts('gpu#0', 2)]],
    ['a counting name of one slot', /gpu has 1 slots/, [counts('gpu', 1)]],
    ['a counting name of too many slots', /gpu has 1001 slots/, [counts('gpu', 1_001)]],
    ['a counting name that is held as a whole', /gpu is held as a whole/, [gpu, held('gpu', 1)]],
    ['a lease of a slot of no name', /gpu#0 is no slot/, [held('gpu#0', 1)]],
    ['a lease of a slot too many', /gpu#2 is no slot/, [gpu, held('gpu#2', 1)]],
    ['a lease of a slot written otherwise', /gpu#01 is no slot/, [gpu, held('gpu#01', 1)]],

    [
      'a waiter under another revision',
      /record of the waiter of \d+ is of/,
      [{ ...waits('a', 1, rev(3)), queuedAt: rev(4) } as StateRecord],
    ],
    ['two waiters of one revision', /two waiters of/, [waits('a', 1, rev(3)), waits('b', 2, rev(3))]],
    ['a waiter of the base', /waits since \d+, not above the history's base/, [waits('a', 1, BASE)]],
    ['a waiter of the future', /waits since \d+, beyond the revision/, [waits('a', 1, rev(10))]],
    ['a request that waits twice', /which waits, is there twice/, [waits('a', 1, rev(3)), waits('b', 1, rev(4))]],
    ['a request that waits and holds', /which waits, is there twice/, [held('a', 1), waits('b', 1, rev(4))]],
    ['a request that waits and is over', /is finished, and there twice/, [waits('a', 1, rev(3)), over(1, rev(4))]],
    ['a waiter for a slot of its own', /waits for one of/, [gpu, waits('gpu#0', 1, rev(3))]],
    ['a waiter for slots of an exclusive name', /waits for one of 2 slots of a/, [waits('a', 1, rev(3), { slots: 2 })]],
    ['a waiter for a counting name as a whole', /waits for one of 1 slots of gpu/, [gpu, waits('gpu', 1, rev(3))]],
    ['a waiter for another number of slots', /waits for one of 3 slots/, [gpu, waits('gpu', 1, rev(3), { slots: 3 })]],

    [
      'a slot with one token twice',
      /token \d+ of gpu#0 was granted twice/,
      [gpu, held('gpu#0', 1), over(2, rev(4), { token: rev(1), domain: domain('gpu#0') })],
    ],
  ];
  it.each(wrong)('refuses %s', (_name, message, records) => {
    for (const list of [records, records.toReversed()]) {
      expect(() => stateOf(...list)).toThrow(CorruptState);
      expect(() => stateOf(...list)).toThrow(message);
    }
  });

  const prefix = { prefix: 'a', leases: 1, waiters: 1 };
  const limits: [string, RegExp, Partial<StateLimits>][] = [
    ['a negative limit', /its limit queue is -1/, { queue: -1 }],
    ['half a lease', /its limit leasesPerPrincipal is 0.5/, { leasesPerPrincipal: 0.5 }],
    ['no number', /its limit waitersPerPrincipal is NaN/, { waitersPerPrincipal: Number.NaN }],
    ['no end', /its limit countingNames is Infinity/, { countingNames: Number.POSITIVE_INFINITY }],
    ['two quotas of one prefix', /two quotas have one prefix/, { prefixes: [prefix, { ...prefix, leases: 2 }] }],
    ['a wrong quota of a prefix', /its limit of leases below a is -1/, { prefixes: [{ ...prefix, leases: -1 }] }],
    ['a quota of slots', /its quota below gpu# must be segments of/, { prefixes: [{ ...prefix, prefix: 'gpu#' }] }],
    ['another one', /its limit of waiters below a is 1.5/, { prefixes: [{ ...prefix, waiters: 1.5 }] }],
  ];
  it.each(limits)('refuses limits with %s', (_name, message, changed) => {
    const build = (): unknown => createState(summary({ limits: changed }), HISTORY, rev(9), []);
    expect(build).toThrow(CorruptState);
    expect(build).toThrow(message);
  });

  it('keeps what exceeds a limit that was lower when it was loaded than when it came', () => {
    const limited = summary({ limits: { queue: 1, leasesPerPrincipal: 0, waitersPerPrincipal: 0, countingNames: 0 } });
    const records = [counts('gpu', 2), held('gpu#0', 1), waits('a', 2, rev(3)), waits('a', 3, rev(4))];
    const state = createState(limited, HISTORY, rev(9), records);
    expect(state.counts.principals.get('client')).toEqual({ leases: 1, waiters: 2 });
  });
});
