import { describe, expect, it } from 'vitest';
import { hashState } from '../../src/lease/hash.js';
import { allRecords } from '../../src/lease/records.js';
import { createState } from '../../src/lease/load.js';
import { summaryOf } from '../../src/lease/state.js';
import type { FinishedRequest, Lease, StateRecord } from '../../src/lease/types.js';
import { HISTORY, domain, emptyState, granted, id, next, release, rev } from './kit.js';

describe('the hash of a state', () => {
  const state = emptyState();
  next(state, release(granted(state, 'a', 1, { metadata: [['k', 'v']], owner: 'CN=a' }), 'CN=a'));
  granted(state, 'b', 2, { metadata: [['k', 'v']] });
  const records = [...allRecords(state)];
  const hashOf = (
    change: (record: StateRecord) => StateRecord = (record) => record,
    more: { forgotten?: number; holding?: boolean; keep?: number; revision?: number } = {},
  ): string => {
    const { forgotten = summaryOf(state).forgotten, holding = false, keep = 1_000, revision = 3 } = more;
    const summary = { forgotten: forgotten as typeof state.revision, holding, limits: { finishedRequests: keep } };
    return hashState(createState(summary, HISTORY, rev(revision), records.map(change)));
  };

  it('is 16 hex digits, and the same for the same state', () => {
    expect(hashState(state)).toMatch(/^[0-9a-f]{16}$/);
    expect(hashOf()).toBe(hashState(state));
  });

  it('does not depend on the order in which leases came', () => {
    const forward = [leaseRecord('x', 8, rev(2)), leaseRecord('y', 9, rev(3))];
    const build = (list: StateRecord[]): string => hashState(createState(summaryOf(state), HISTORY, rev(3), list));
    expect(build(forward)).toBe(build([...forward].reverse()));
  });

  const lease: Lease = { ...firstLease(records) };
  const changedLease: Partial<Lease>[] = [
    { token: rev(2) },
    { requestId: id(7) },
    { holder: 'other' },
    { metadata: [['k', 'w']] },
    {
      metadata: [
        ['k', 'v'],
        ['l', ''],
      ],
    },
    { ttlMs: 1 },
    { grantedAtUnixMs: 1 },
    { owner: 'x' },
    { version: 1 },
    { checkpointLeftMs: 0 },
  ];
  it.each(changedLease)('changes with %o of a lease', (more) => {
    const changed = hashOf((record) =>
      record.type === 'domain' ? { ...record, lease: { ...lease, ...more } } : record,
    );
    expect(changed).not.toBe(hashOf());
  });

  const changedRequest: Partial<FinishedRequest>[] = [
    { requestId: id(7) },
    { domain: domain('z') },
    { token: undefined },
    { reason: 'expired' },
    { by: 'x' },
    { note: 'x' },
    { owner: 'x' },
    { asked: undefined },
    { asked: { ttlMs: 1, holder: 'worker' } },
    { asked: { ttlMs: 15_000, holder: 'x' } },
  ];
  it.each(changedRequest)('changes with %o of a finished request', (more) => {
    const changed = hashOf((record) =>
      record.type === 'finished'
        ? { ...record, requests: record.requests.map((one) => ({ ...one, ...more })) }
        : record,
    );
    expect(changed).not.toBe(hashOf());
  });

  it.each([{ forgotten: rev(1) }, { holding: true }, { keep: 999 }, { revision: 4 }])('changes with %o', (more) => {
    expect(hashOf(undefined, more)).not.toBe(hashOf());
  });
});

function firstLease(records: readonly StateRecord[]): Lease {
  for (const record of records) if (record.type === 'domain') return record.lease;
  throw new Error('no lease among the records');
}

function leaseRecord(name: string, request: number, token: Lease['token']): StateRecord {
  return { type: 'domain', domain: domain(name), lease: { ...granted(emptyState(), name, request), token } };
}
