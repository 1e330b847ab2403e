import { describe, expect, it } from 'vitest';
import type { GetStatusAnswer } from '../../src/base/api.js';
import type { NodeId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { Revision } from '../../src/base/revision.js';
import type { SharedLimits } from '../../src/base/shared-limits.js';
import { errorWith } from '../../src/client/errors.js';
import { type Replies, run } from './kit.js';

const LIMITS: SharedLimits = {
  queueLimit: 1_000,
  leasesPerPrincipal: 7,
  waitersPerPrincipal: 5,
  prefixQuotas: [
    { prefix: 'orders/', leases: 3, waiters: 0 },
    { prefix: '', leases: 9, waiters: 9 },
  ],
};

function status(appliedRevision: number, limits: SharedLimits | undefined): GetStatusAnswer {
  const revisions = { base: ZERO_REVISION, lastRevision: ZERO_REVISION, durableRevision: ZERO_REVISION };
  return {
    type: 'getStatus',
    node: 'n1' as NodeId,
    leader: undefined,
    role: 'follower',
    term: 1,
    ...revisions,
    committedRevision: ZERO_REVISION,
    appliedRevision: appliedRevision as Revision,
    members: [],
    alarms: [],
    limits,
  };
}

describe('limits', () => {
  const replies: Replies = (_, endpoint) => {
    if (endpoint === 'a:1') return status(7, { ...LIMITS, queueLimit: 1 });
    return endpoint === 'b:2' ? status(8, LIMITS) : errorWith('UNREACHABLE', 'c:3: refused');
  };

  it('shows those of the node that has applied most', async () => {
    const result = await run('limits --endpoints a:1,b:2,c:3', replies);
    expect(result).toMatchObject({ code: 0, err: '', closed: 1 });
    expect(result.calls.map(({ type }) => type)).toEqual(['getStatus', 'getStatus', 'getStatus']);
    expect(result.out).toBe(
      `queueLimit           1000
leasesPerPrincipal   7
waitersPerPrincipal  5
prefixQuotas         orders/=3/0,=9/9`,
    );
    const json = await run('limits --endpoints c:3,b:2,a:1 --json', replies);
    expect(JSON.parse(json.out)).toEqual(LIMITS);
  });

  it('says why when no node knows them', async () => {
    const result = await run('limits --endpoints c:3,d:4', (call, endpoint) =>
      endpoint === 'd:4' ? status(0, undefined) : replies(call, endpoint),
    );
    expect(result).toMatchObject({ code: 3, out: '' });
    expect(result.err).toContain('c:3: refused');
    expect(result.err).toContain('d:4: belongs to no cluster yet');
  });
});

describe('limits set', () => {
  const before = LIMITS;
  const after = { ...LIMITS, queueLimit: 5, prefixQuotas: [] };

  it('sends what is named and shows what it was', async () => {
    const line = 'limits set --queue-limit 5 --prefix-quotas none';
    const result = await run(line, () => ({ type: 'changeLimits', before, after }));
    expect(result.code).toBe(0);
    expect(result.calls).toEqual([{ type: 'changeLimits', change: { queueLimit: 5, prefixQuotas: [] } }]);
    expect(result.out).toBe(
      `queueLimit           5 (was 1000)
leasesPerPrincipal   7
waitersPerPrincipal  5
prefixQuotas         none (was orders/=3/0,=9/9)`,
    );
    const json = await run(`${line} --json`, () => ({ type: 'changeLimits', before, after }));
    expect(JSON.parse(json.out)).toEqual({ before, after });
  });

  it('takes quotas as the configuration writes them', async () => {
    const line = 'limits set --leases-per-principal 7 --waiters-per-principal 0 --prefix-quotas orders/=3/0,a=b=9/9';
    const result = await run(line, () => ({ type: 'changeLimits', before, after: before }));
    const prefixQuotas = [
      { prefix: 'orders/', leases: 3, waiters: 0 },
      { prefix: 'a=b', leases: 9, waiters: 9 },
    ];
    const change = { leasesPerPrincipal: 7, waitersPerPrincipal: 0, prefixQuotas };
    expect(result.calls).toEqual([{ type: 'changeLimits', change }]);
  });

  it('ends with 3 when the cluster refuses or its leader changes', async () => {
    const result = await run('limits set --queue-limit 5', () => errorWith('LEADER_CHANGED', 'see what became of it'));
    expect(result.code).toBe(3);
    expect(result.err).toContain('see what became of it');
  });
});
