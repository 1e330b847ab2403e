import { describe, expect, it } from 'vitest';
import { requestId } from '../../client/world.js';
import { Coverage } from '../coverage.js';
import { Holds } from './holds.js';
import { DOMAIN, HISTORY, attempt, grant, ref, renewal } from './told.js';

function judging(): { readonly codes: string[]; readonly coverage: Coverage; readonly holds: Holds } {
  const codes: string[] = [];
  const coverage = new Coverage();
  const holds = new Holds((fault) => {
    codes.push(fault.code);
  }, coverage);
  return { codes, coverage, holds };
}

function claim(holds: Holds, client: string, token: number, at: number, slackMs = 0): void {
  holds.claimed({ client, incarnation: HISTORY, domain: DOMAIN, token, at, slackMs });
}

describe('holds', () => {
  it('accept one holder after the other', () => {
    const { codes, holds } = judging();
    grant(holds, 1, 10, 0, 5);
    renewal(holds, 10, 300, 305);
    claim(holds, 'c1', 10, 1_200);
    holds.expired(DOMAIN, 10, 1_412);
    grant(holds, 2, 11, 1_415, 1_420, { client: 'c2' });
    claim(holds, 'c2', 11, 2_300);
    expect(codes).toEqual([]);
  });

  it('refuse a second holder before the first one has to stop', () => {
    const { codes, holds } = judging();
    grant(holds, 1, 10, 0, 5);
    grant(holds, 2, 11, 930, 935, { client: 'c2' });
    expect(codes).toEqual(['OVERLAP']);
  });

  it('reckon with the rate of the holder’s clock', () => {
    const fast = judging();
    grant(fast.holds, 1, 10, 0, 5, { rate: 1.01 });
    grant(fast.holds, 2, 11, 932, 935, { client: 'c2' });
    expect(fast.codes).toEqual([]);
    const slow = judging();
    grant(slow.holds, 1, 10, 0, 5, { rate: 0.99 });
    grant(slow.holds, 2, 11, 942, 945, { client: 'c2' });
    expect(slow.codes).toEqual(['OVERLAP']);
  });

  it('let another hold what was released, withdrawn or ended by force', () => {
    const { codes, holds } = judging();
    grant(holds, 1, 10, 0, 5);
    holds.sent(attempt({ type: 'release', lease: ref(10) }, 100));
    grant(holds, 2, 11, 101, 103, { client: 'c2' });
    holds.sent(attempt({ type: 'withdraw', domain: DOMAIN, requestId: requestId(2) }, 200));
    grant(holds, 3, 12, 201, 203, { client: 'c3' });
    holds.sent(attempt({ type: 'forceRelease', ...ref(12), note: 'n' }, 300));
    grant(holds, 4, 13, 301, 303);
    claim(holds, 'c3', 12, 400);
    claim(holds, 'c1', 13, 401);
    expect(codes).toEqual([]);
  });

  it('take no notice of a grant that was given back before it was told', () => {
    const { codes, holds } = judging();
    holds.sent(attempt({ type: 'withdraw', domain: DOMAIN, requestId: requestId(1) }, 1));
    grant(holds, 1, 10, 0, 5);
    grant(holds, 2, 11, 6, 8, { client: 'c2' });
    expect(codes).toEqual([]);
  });

  it('refuse an expiry before the safe deadline, whichever is seen first', () => {
    const told = judging();
    grant(told.holds, 1, 10, 0, 5);
    renewal(told.holds, 10, 500, 505);
    told.holds.expired(DOMAIN, 10, 1_100);
    expect(told.codes).toEqual(['EARLY']);
    const underWay = judging();
    grant(underWay.holds, 1, 10, 0, 5);
    underWay.holds.expired(DOMAIN, 10, 800);
    expect(underWay.codes).toEqual(['EARLY']);
    const later = judging();
    later.holds.expired(DOMAIN, 10, 4);
    grant(later.holds, 1, 10, 0, 5);
    expect(later.codes).toEqual(['EARLY']);
  });

  it('do not count an answer that comes after the deadline', () => {
    const { codes, coverage, holds } = judging();
    grant(holds, 1, 10, 0, 5);
    renewal(holds, 10, 900, 945);
    holds.expired(DOMAIN, 10, 1_111);
    grant(holds, 2, 11, 1_112, 1_113, { client: 'c2' });
    expect(codes).toEqual([]);
    expect(coverage.counts.get('renewal answered after deadline')).toBe(1);
    claim(holds, 'c1', 10, 1_114);
    expect(codes).toEqual(['DEADLINE', 'OVERLAP']);
  });

  it('refuse a claim past the deadline, and one of a lease that nobody granted', () => {
    const { codes, holds } = judging();
    grant(holds, 1, 10, 0, 5);
    claim(holds, 'c1', 10, 939);
    claim(holds, 'c1', 10, 960, 26);
    expect(codes).toEqual([]);
    claim(holds, 'c1', 10, 941);
    claim(holds, 'c1', 12, 942);
    expect(codes).toEqual(['DEADLINE', 'DEADLINE']);
  });

  it('refuse a claim while another holds the domain', () => {
    const { codes, holds } = judging();
    grant(holds, 1, 10, 0, 5);
    renewal(holds, 10, 100, 105, 'ended');
    grant(holds, 2, 11, 110, 112, { client: 'c2' });
    expect(codes).toEqual([]);
    claim(holds, 'c1', 10, 120);
    expect(codes).toEqual(['OVERLAP']);
  });
});
