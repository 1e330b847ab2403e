import { describe, expect, it } from 'vitest';
import { addByLease, findByLease, removeByLease } from '../../src/lease/by-lease.js';
import type { ByLease } from '../../src/lease/by-lease.js';
import type { Domain } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { FinishedRequest } from '../../src/lease/types.js';

const TOKEN = 1_796_000_000_000_041 as Revision;
const NEXT = 1_796_000_000_000_042 as Revision;
const [A, B, C] = ['a', 'b', 'c'] as unknown as [Domain, Domain, Domain];

function finished(domain: Domain, token = TOKEN): FinishedRequest {
  return { domain, token } as FinishedRequest;
}

function tableOf(...requests: readonly FinishedRequest[]): ByLease {
  const table: ByLease = new Map();
  for (const request of requests) addByLease(table, request.token ?? TOKEN, request);
  return table;
}

describe('finished requests by lease', () => {
  it('are found by token and domain, never by one of them', () => {
    const [a, next] = [finished(A), finished(A, NEXT)];
    const table = tableOf(a, next);
    expect(findByLease(table, A, TOKEN)).toBe(a);
    expect(findByLease(table, A, NEXT)).toBe(next);
    expect(findByLease(table, B, TOKEN)).toBeUndefined();
    removeByLease(table, B, TOKEN);
    expect(findByLease(table, A, TOKEN)).toBe(a);
  });

  it('are kept apart that had one token in several domains', () => {
    const requests = [finished(A), finished(B), finished(C)];
    const table = tableOf(...requests);
    expect([A, B, C].map((domain) => findByLease(table, domain, TOKEN))).toEqual(requests);
    removeByLease(table, A, TOKEN);
    expect([A, B, C].map((domain) => findByLease(table, domain, TOKEN)?.domain)).toEqual([undefined, B, C]);
  });

  it('take the place of one with the same lease', () => {
    for (const others of [[], [finished(B)]]) {
      const again = finished(A);
      const table = tableOf(finished(A), ...others, again);
      expect(findByLease(table, A, TOKEN)).toBe(again);
      removeByLease(table, A, TOKEN);
      expect(findByLease(table, A, TOKEN)).toBeUndefined();
    }
  });

  it('leave nothing behind when all are taken out', () => {
    const table = tableOf(finished(A), finished(B), finished(C), finished(A, NEXT));
    for (const domain of [A, B, C]) removeByLease(table, domain, TOKEN);
    removeByLease(table, A, NEXT);
    expect(table.size).toBe(0);
  });
});
