import { describe, expect, it } from 'vitest';
import type { Incarnation } from '../../../src/base/ids.js';
import { requestId } from '../../client/world.js';
import { Coverage } from '../coverage.js';
import { Resource, judgeWrites } from '../resource.js';
import { Tokens } from './tokens.js';
import { DOMAIN, HISTORY, acquireOf, exchange, grant, ref, refusal, renewal } from './told.js';

const LATER = 'b'.repeat(32) as Incarnation;

function judging(): { readonly codes: string[]; readonly coverage: Coverage; readonly tokens: Tokens } {
  const codes: string[] = [];
  const coverage = new Coverage();
  const tokens = new Tokens((fault) => {
    codes.push(fault.code);
  }, coverage);
  tokens.begins(HISTORY, true);
  return { codes, coverage, tokens };
}

describe('tokens', () => {
  it('may rise, be told again, and be told in another order than they were granted in', () => {
    const { codes, tokens } = judging();
    grant(tokens, 1, 10, 0, 5);
    grant(tokens, 1, 10, 6, 9);
    grant(tokens, 3, 12, 10, 30);
    grant(tokens, 2, 11, 10, 31);
    tokens.begins(LATER, true);
    grant(tokens, 4, 20, 40, 41, { incarnation: LATER });
    expect(codes).toEqual([]);
  });

  it('must not fall', () => {
    const { codes, tokens } = judging();
    grant(tokens, 1, 10, 0, 5);
    grant(tokens, 2, 9, 6, 8);
    expect(codes).toEqual(['TOKEN']);
  });

  it('must not fall when a cluster is formed again, unless its base is behind', () => {
    const ahead = judging();
    grant(ahead.tokens, 1, 10, 0, 5);
    ahead.tokens.begins(LATER, true);
    grant(ahead.tokens, 2, 9, 6, 8, { incarnation: LATER });
    expect(ahead.codes).toEqual(['TOKEN']);
    const behind = judging();
    grant(behind.tokens, 1, 10, 0, 5);
    behind.tokens.begins(LATER, false);
    grant(behind.tokens, 2, 9, 6, 8, { incarnation: LATER });
    behind.tokens.refused(LATER, DOMAIN, 9, 10, 9);
    expect(behind.codes).toEqual([]);
    expect(behind.coverage.counts.get('token fell behind an older history')).toBe(2);
  });

  it('must not be refused by the resource while they are held', () => {
    const { codes, tokens } = judging();
    tokens.refused(HISTORY, DOMAIN, 10, 11, 5);
    expect(codes).toEqual(['TOKEN']);
  });

  it('belong to one request each', () => {
    const { codes, tokens } = judging();
    grant(tokens, 1, 10, 0, 5);
    tokens.granted(HISTORY, DOMAIN, 10, requestId(2), 6);
    expect(codes).toEqual(['SHARED']);
  });

  it('are one for each request that knew a revision', () => {
    const { codes, coverage, tokens } = judging();
    grant(tokens, 1, 10, 0, 5);
    tokens.granted(HISTORY, DOMAIN, 12, requestId(1), 6);
    expect(codes).toEqual(['ONCE']);
    grant(tokens, 2, 13, 7, 8, { seenRevision: 0 });
    tokens.granted(HISTORY, DOMAIN, 14, requestId(2), 9);
    tokens.granted(LATER, DOMAIN, 15, requestId(2), 9);
    expect(codes).toEqual(['ONCE']);
    expect(coverage.counts.get('id without seen_revision granted again')).toBe(1);
  });

  it('are not granted to a request that was withdrawn before', () => {
    const { codes, tokens } = judging();
    const withdraw = { type: 'withdraw', domain: DOMAIN, requestId: requestId(1) } as const;
    exchange(tokens, withdraw, 0, 5, { type: 'withdraw' }, { revision: 20 });
    tokens.granted(HISTORY, DOMAIN, 19, requestId(1), 6);
    expect(codes).toEqual([]);
    tokens.granted(HISTORY, DOMAIN, 21, requestId(1), 7);
    expect(codes).toEqual(['ONCE', 'ONCE']);
  });

  it('are not live again once they were said to be over', () => {
    const { codes, tokens } = judging();
    renewal(tokens, 10, 0, 5, 'ended');
    renewal(tokens, 10, 4, 8);
    expect(codes).toEqual([]);
    renewal(tokens, 10, 6, 9);
    expect(codes).toEqual(['REVIVED']);
    exchange(tokens, { type: 'release', lease: ref(11) }, 10, 12, {
      type: 'release',
      released: true,
      ended: undefined,
    });
    grant(tokens, 3, 11, 13, 14);
    expect(codes).toEqual(['REVIVED', 'REVIVED']);
  });

  it('come with answers that belong to their calls', () => {
    const { codes, tokens } = judging();
    refusal(tokens, acquireOf(1), 5, 'NO_LEADER');
    expect(codes).toEqual([]);
    refusal(tokens, acquireOf(1), 6, 'INTERNAL');
    exchange(tokens, acquireOf(1), 7, 8, { type: 'withdraw' });
    expect(codes).toEqual(['INTERNAL', 'CODEC']);
  });
});

describe('the resource', () => {
  it('refuses tokens below the greatest that it accepted', () => {
    const coverage = new Coverage();
    const resource = new Resource(coverage);
    const write = { domain: 'd', client: 'c1', incarnation: HISTORY, kind: 'write' } as const;
    expect(resource.write({ ...write, token: 10 }, 1)).toBe(true);
    expect(resource.write({ ...write, token: 10 }, 2)).toBe(true);
    expect(resource.write({ ...write, token: 11, client: 'c2', kind: 'advance' }, 3)).toBe(true);
    expect(resource.write({ ...write, token: 10 }, 4)).toBe(false);
    expect(coverage.counts.get('stale write refused')).toBe(1);
    expect(judgeWrites(resource.written)).toEqual([]);
  });

  it('is found out when it accepts what it must not', () => {
    const write = { domain: 'd', incarnation: HISTORY, kind: 'write', accepted: true, fence: 0 } as const;
    const fell = [
      { ...write, client: 'c1', token: 11, at: 1 },
      { ...write, client: 'c2', token: 10, at: 2 },
    ];
    expect(judgeWrites(fell).map(({ code }) => code)).toEqual(['STALE']);
    const shared = [
      { ...write, client: 'c1', token: 10, at: 1 },
      { ...write, client: 'c2', token: 10, at: 2 },
    ];
    expect(judgeWrites(shared).map(({ code }) => code)).toEqual(['SHARED']);
  });
});
