import { describe, expect, it } from 'vitest';
import { hashState } from '../../src/lease/hash.js';
import { createState } from '../../src/lease/load.js';
import { allRecords } from '../../src/lease/records.js';
import type { State } from '../../src/lease/state.js';
import { summaryOf } from '../../src/lease/state.js';
import type {
  CoolDown,
  CountingName,
  FinishedRequest,
  Lease,
  StateRecord,
  StateSummary,
  Waiter,
} from '../../src/lease/types.js';
import { ASKED, domain, emptyState, expire, granted, HISTORY, id, next, queued, release, rev } from './kit.js';

/** One record of each kind. */
function sample(): State {
  const prefixes = [{ prefix: 'b', leases: 9, waiters: 9 }];
  const state = emptyState({ limits: { prefixes } });
  next(state, release(granted(state, 'a', 1, { metadata: [['k', 'v']], owner: 'CN=a' }), 'CN=a'));
  granted(state, 'b', 2, { metadata: [['k', 'v']] });
  queued(state, 'b', 3, { metadata: [['k', 'v']] });
  next(state, expire([granted(state, 'gpu', 4, { slots: 2, coolDownMs: 5 })]));
  return state;
}

/** Changes a record where it is of that kind. */
const inLease =
  (more: Partial<Lease>) =>
  (record: StateRecord): StateRecord =>
    record.type === 'domain' ? { ...record, lease: { ...record.lease, ...more } } : record;
const inWaiter =
  (more: Partial<Waiter>) =>
  (record: StateRecord): StateRecord => {
    if (record.type !== 'waiter') return record;
    const waiter = { ...record.waiter, ...more };
    return { type: 'waiter', queuedAt: waiter.queuedAt, waiter };
  };
const inCoolDown =
  (more: Partial<CoolDown>) =>
  (record: StateRecord): StateRecord => {
    if (record.type !== 'coolDown') return record;
    const coolDown = { ...record.coolDown, ...more };
    return { type: 'coolDown', domain: coolDown.domain, coolDown };
  };
const inCounting =
  (more: Partial<CountingName>) =>
  (record: StateRecord): StateRecord =>
    record.type === 'counting' ? { ...record, counting: { ...record.counting, ...more } } : record;
const inFinished =
  (more: Partial<FinishedRequest>) =>
  (record: StateRecord): StateRecord => {
    if (record.type !== 'finished') return record;
    return { ...record, requests: record.requests.map((one) => (one.requestId === id(1) ? { ...one, ...more } : one)) };
  };

describe('the hash of a state', () => {
  const state = sample();
  const records = [...allRecords(state)];
  const hashOf = (
    change: (record: StateRecord) => StateRecord = (record) => record,
    more: Partial<StateSummary> = {},
    revision = state.revision,
  ): string => hashState(createState({ ...summaryOf(state), ...more }, HISTORY, revision, records.map(change)));

  it('is 16 hex digits, and the same for the same state', () => {
    expect(hashState(state)).toMatch(/^[0-9a-f]{16}$/);
    expect(hashOf()).toBe(hashState(state));
    expect(new Set(records.map(({ type }) => type)).size).toBe(5);
  });

  it('does not depend on the order in which leases and waiters came', () => {
    const forward = [record('x', 8, rev(2)), record('y', 9, rev(3)), ...records];
    const build = (list: StateRecord[]): string =>
      hashState(createState(summaryOf(state), HISTORY, state.revision, list));
    expect(build(forward)).toBe(build(forward.toReversed()));
  });

  it('does not depend on the order of the fields of the limits', () => {
    const { limits } = summaryOf(state);
    const turned = Object.fromEntries(Object.entries(limits).toReversed()) as unknown as typeof limits;
    expect(hashOf(undefined, { limits: turned })).toBe(hashOf());
  });

  const moreMetadata = [
    ['k', 'v'],
    ['l', ''],
  ] as const;
  it.each<Partial<Lease>>([
    { token: rev(2) },
    { requestId: id(7) },
    { holder: 'other' },
    { metadata: [['k', 'w']] },
    { metadata: moreMetadata },
    { ttlMs: 1 },
    { coolDownMs: 1 },
    { grantedAtUnixMs: 1 },
    { owner: 'x' },
    { principal: 'x' },
    { version: 1 },
    { checkpointLeftMs: 0 },
  ])('changes with %o of a lease', (more) => {
    expect(hashOf(inLease(more))).not.toBe(hashOf());
  });

  it.each<Partial<Waiter>>([
    { domain: domain('z') },
    { queuedAt: rev(2) },
    { requestId: id(7) },
    { holder: 'other' },
    { metadata: [['k', 'w']] },
    { metadata: moreMetadata },
    { ttlMs: 1 },
    { coolDownMs: 1 },
    { domain: domain('gpu'), slots: 2 },
    { waitMs: 1 },
    { queuedAtUnixMs: 1 },
    { owner: 'x' },
    { principal: 'x' },
  ])('changes with %o of a waiter', (more) => {
    expect(hashOf(inWaiter(more))).not.toBe(hashOf());
  });

  it.each<Partial<CoolDown>>([{ domain: domain('gpu#1') }, { since: rev(2) }, { ms: 6 }])(
    'changes with %o of a cool-down',
    (more) => {
      expect(hashOf(inCoolDown(more))).not.toBe(hashOf());
    },
  );

  it('changes with the number of slots of a counting name, and with the name', () => {
    expect(hashOf(inCounting({ slots: 3 }))).not.toBe(hashOf());
    const named = (name: string): string => {
      const counting: StateRecord = {
        type: 'counting',
        domain: domain(name),
        counting: { name: domain(name), slots: 2, principal: 'client' },
      };
      return hashState(createState(summaryOf(state), HISTORY, state.revision, [counting]));
    };
    expect(named('x')).not.toBe(named('y'));
  });

  it('tells the same fields of a waiter and of a lease apart', () => {
    const only = (type: StateRecord['type']): string => {
      const some = records.filter((one) => one.type === type || one.type === 'counting');
      return hashState(createState(summaryOf(state), HISTORY, state.revision, some));
    };
    const kinds = (['domain', 'waiter', 'coolDown', 'counting', 'finished'] as const).map(only);
    expect(new Set(kinds).size).toBe(5);
  });

  it.each<Partial<FinishedRequest>>([
    { requestId: id(7) },
    { domain: domain('z') },
    { token: undefined },
    { reason: 'expired' },
    { by: 'x' },
    { note: 'x' },
    { owner: 'x' },
    { asked: undefined },
    { asked: { ...ASKED, ttlMs: 1 } },
    { asked: { ...ASKED, holder: 'x' } },
    { asked: { ...ASKED, coolDownMs: 1 } },
    { asked: { ...ASKED, slots: 2 } },
  ])('changes with %o of a finished request', (more) => {
    expect(hashOf(inFinished(more))).not.toBe(hashOf());
  });

  const { limits } = summaryOf(state);
  const quota = { prefix: 'b', leases: 9, waiters: 9 };
  it.each<Partial<StateSummary>>([
    { forgotten: rev(1) },
    { holding: true },
    { limits: { ...limits, finishedRequests: 999 } },
    { limits: { ...limits, queue: 999 } },
    { limits: { ...limits, leasesPerPrincipal: 999 } },
    { limits: { ...limits, waitersPerPrincipal: 999 } },
    { limits: { ...limits, countingNames: 999 } },
    { limits: { ...limits, prefixes: [] } },
    { limits: { ...limits, prefixes: [{ ...quota, prefix: 'c' }] } },
    { limits: { ...limits, prefixes: [{ ...quota, leases: 8 }] } },
    { limits: { ...limits, prefixes: [{ ...quota, waiters: 8 }] } },
  ])('changes with %o', (more) => {
    expect(hashOf(undefined, more)).not.toBe(hashOf());
  });

  it('changes with the revision', () => {
    expect(hashOf(undefined, {}, rev(50))).not.toBe(hashOf());
  });
});

function record(name: string, request: number, token: Lease['token']): StateRecord {
  return { type: 'domain', domain: domain(name), lease: { ...granted(emptyState(), name, request), token } };
}
