import { describe, expect, it } from 'vitest';
import type { Answer, GetStatusAnswer } from '../../src/base/api.js';
import type { NodeId, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { errorWith } from '../../src/client/errors.js';
import type { FencepostError } from '../../src/client/errors.js';
import { ENDED, HEADER, LEASE, type Replies, REQUEST, type Run, run, TOKEN } from './kit.js';
import { domainAnswer, notGranted } from '../support/answers.js';

/** The request id that was sent: what is shown, whatever an answer says. */
function askedId({ calls }: Run): string {
  const call = calls.at(-1);
  if (call?.type !== 'acquire') throw new Error('no acquire was sent');
  return call.requestId;
}

describe('acquire', () => {
  const answer =
    (outcome: Extract<Answer, { type: 'acquire' }>['outcome']): Replies =>
    (call) =>
      call.type === 'get'
        ? domainAnswer(LEASE.domain)
        : { type: 'acquire', requestId: REQUEST as string as RequestId, outcome };

  it('reads a header first, so that the new id goes with a seen revision', async () => {
    const result = await run(
      'acquire orders/eu --ttl-ms 60000 --holder a --meta zone=b --meta app=x=y',
      answer({ type: 'granted', lease: LEASE }),
    );
    expect(result.code).toBe(0);
    expect(result.calls).toEqual([
      { type: 'get', domain: 'orders/eu', freshness: 'local' },
      expect.objectContaining({
        type: 'acquire',
        domain: 'orders/eu',
        ttlMs: 60_000,
        holder: 'a',
        metadata: [
          ['app', 'x=y'],
          ['zone', 'b'],
        ],
        seenRevision: HEADER.revision,
        requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      }),
    ]);
    expect(result.out).toBe(
      `granted        yes
domain         orders/eu
token          ${TOKEN}
holder         worker-a
ttl            15000 ms
granted at     2026-12-01T00:00:00.000Z
meta zone      b
request id     ${askedId(result)}
seen revision  ${HEADER.revision}`,
    );
  });

  it('prints tokens as text with --json', async () => {
    const result = await run('acquire orders/eu --json', answer({ type: 'granted', lease: LEASE }));
    expect(JSON.parse(result.out)).toEqual({
      outcome: 'granted',
      requestId: askedId(result),
      seenRevision: String(HEADER.revision),
      lease: { ...LEASE, token: TOKEN, metadata: { zone: 'b' } },
    });
  });

  it('ends with 1 when another holds the domain', async () => {
    const result = await run('acquire orders/eu', answer(notGranted('held', LEASE)));
    expect(result.code).toBe(1);
    expect(result.out).toContain('granted     no');
    expect(result.out).toContain('the domain is held by the lease below');
    expect(result.out).toContain(TOKEN);
  });

  it('ends with 1 when the request is over', async () => {
    const result = await run('acquire orders/eu --json', answer({ type: 'ended', ended: ENDED }));
    expect(result.code).toBe(1);
    expect(JSON.parse(result.out)).toMatchObject({
      outcome: 'ended',
      ended: { reason: 'force_released', currentToken: null },
    });
  });

  it('says how to ask again after a failure, and then asks with the very same words', async () => {
    const failed = await run('acquire a', (call) =>
      call.type === 'get' ? domainAnswer(LEASE.domain) : errorWith('TIMED_OUT', 'late'),
    );
    expect(failed.code).toBe(3);
    expect(failed.err.split('\n')[0]).toBe('TIMED_OUT: acquire: late');
    const again = /--request-id (\S+) --seen-revision (\d+)/.exec(failed.err);
    expect(again?.[2]).toBe(String(HEADER.revision));
    const repeated = await run(`acquire a ${again?.[0] ?? ''}`, answer({ type: 'granted', lease: LEASE }));
    expect(repeated.calls).toEqual([
      expect.objectContaining({ type: 'acquire', requestId: again?.[1], seenRevision: HEADER.revision }),
    ]);
  });
});

describe('a failed acquire', () => {
  const failing = (error: FencepostError): Replies => {
    return (call) => (call.type === 'get' ? domainAnswer(LEASE.domain) : error);
  };

  it('that was not done gives no hint', async () => {
    const result = await run('acquire a', failing(errorWith('NO_LEADER', 'none')));
    expect(result).toMatchObject({ code: 3, out: '', err: 'NO_LEADER: acquire: none' });
  });

  it('carries its request id and revision with --json', async () => {
    const result = await run('acquire a --json', failing(errorWith('TIMED_OUT', 'late')));
    expect(result).toMatchObject({ code: 3, err: '' });
    expect(JSON.parse(result.out)).toEqual({
      error: { code: 'TIMED_OUT', message: 'late', outcome: 'unknown' },
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      seenRevision: String(HEADER.revision),
    });
  });

  it('was not done when not even the revision could be read, and is named by its command', async () => {
    const replies: Replies = () => errorWith('UNREACHABLE', 'no node answered (a:1: connection refused)');
    expect((await run('acquire a', replies)).err).toBe(
      'UNREACHABLE: acquire: no node answered (a:1: connection refused)',
    );
    expect(JSON.parse((await run('acquire a --json', replies)).out)).toMatchObject({ error: { outcome: 'not-done' } });
  });
});

describe('renew, verify, release, get', () => {
  const ref = { domain: LEASE.domain, token: LEASE.token };

  it('renew: live and ended', async () => {
    const live = await run(`renew orders/eu ${TOKEN}`, () => ({
      type: 'renew',
      results: [{ type: 'live', ttlMs: 9_000 }],
    }));
    expect(live).toMatchObject({ code: 0, calls: [{ type: 'renew', leases: [ref] }] });
    expect(live.out).toBe(`renewed  yes\ndomain   orders/eu\ntoken    ${TOKEN}\nttl      9000 ms`);
    const ended = await run(`renew orders/eu ${TOKEN}`, () => ({
      type: 'renew',
      results: [{ type: 'ended', ended: ENDED }],
    }));
    expect(ended.code).toBe(1);
    expect(ended.out).toContain('ended     ended by an operator');
    expect(ended.out).toContain('note      stuck');
  });

  it('verify: live and ended, linearizable and local', async () => {
    const live = await run(`verify orders/eu ${TOKEN} --local --json`, () => ({
      type: 'verify',
      outcome: { type: 'live', ttlMs: 9_000 },
    }));
    expect(live).toMatchObject({ code: 0, calls: [{ type: 'verify', lease: ref, freshness: 'local' }] });
    expect(JSON.parse(live.out)).toEqual({ live: true, domain: 'orders/eu', token: TOKEN, ttlMs: 9_000 });
    const ended = await run(`verify orders/eu ${TOKEN} --json`, () => ({
      type: 'verify',
      outcome: { type: 'ended', ended: ENDED },
    }));
    expect(ended.code).toBe(1);
    expect(ended.calls).toMatchObject([{ freshness: 'linearizable' }]);
  });

  it('release: done and not live', async () => {
    const done = await run(`release orders/eu ${TOKEN}`, () => ({ type: 'release', released: true, ended: undefined }));
    expect(done).toMatchObject({ code: 0, calls: [{ type: 'release', lease: ref }] });
    const late = await run(`release orders/eu ${TOKEN} --json`, () => ({
      type: 'release',
      released: false,
      ended: ENDED,
    }));
    expect(late.code).toBe(1);
    expect(JSON.parse(late.out)).toMatchObject({
      released: false,
      domain: LEASE.domain,
      token: TOKEN,
      ended: { by: 'ops' },
    });
  });

  it('get: held and free are both answers', async () => {
    const held = await run('get orders/eu', () => domainAnswer(LEASE.domain, LEASE, 1_234.5));
    expect(held.code).toBe(0);
    expect(held.out).toContain('time left   1235 ms without a renewal');
    const free = await run('get orders/eu --json', () => domainAnswer(LEASE.domain));
    expect(free.code).toBe(0);
    const nobody = { queueLength: 0, waiters: [], coolDownLeftMs: 0 };
    expect(JSON.parse(free.out)).toEqual({ domain: 'orders/eu', lease: null, leftMs: null, ...nobody });
  });
});

describe('operators', () => {
  it('transfer-leadership names whom, or nobody', async () => {
    const replies: Replies = () => ({ type: 'transferLeadership', leader: 'n3' as NodeId });
    expect(await run('transfer-leadership n3', replies)).toMatchObject({
      code: 0,
      out: 'leader  n3',
      calls: [{ type: 'transferLeadership', to: 'n3' }],
    });
    expect((await run('transfer-leadership', replies)).calls).toEqual([{ type: 'transferLeadership', to: undefined }]);
  });

  it('force-release ends with 1 when the lease was not live', async () => {
    const result = await run('force-release orders/eu 5 --note stuck --json', () => ({
      type: 'forceRelease',
      released: false,
      currentToken: LEASE.token,
    }));
    expect(result).toMatchObject({
      code: 1,
      calls: [{ type: 'forceRelease', domain: 'orders/eu', token: 5, note: 'stuck' }],
    });
    expect(JSON.parse(result.out)).toEqual({ released: false, domain: 'orders/eu', token: '5', currentToken: TOKEN });
  });
});

describe('status', () => {
  const status = (node: string, more: Partial<GetStatusAnswer>): GetStatusAnswer => ({
    type: 'getStatus',
    node: node as NodeId,
    leader: 'n2' as NodeId,
    role: 'follower',
    term: 7,
    base: 1 as Revision,
    lastRevision: 5 as Revision,
    durableRevision: 5 as Revision,
    committedRevision: 5 as Revision,
    appliedRevision: 4 as Revision,
    members: [],
    alarms: [],
    limits: undefined,
    ...more,
  });
  const replies: Replies = (_, endpoint) => {
    if (endpoint === 'c:3') return errorWith('UNREACHABLE', 'c:3: refused');
    if (endpoint === 'a:1') return status('n1', { leader: 'n1' as NodeId, term: 6, alarms: ['disk is nearly full'] });
    return status('n2', {
      role: 'leader',
      members: [
        { node: 'n1' as NodeId, directory: undefined, peerAddress: 'x:1', voter: true, reachable: false, lag: 12 },
        { node: 'n2' as NodeId, directory: undefined, peerAddress: 'x:2', voter: true, reachable: true, lag: 0 },
      ],
    });
  };

  it('asks every endpoint and believes the highest term', async () => {
    const result = await run('status --endpoints a:1,b:2,c:3', replies);
    expect(result.code).toBe(0);
    expect(result.calls).toHaveLength(3);
    expect(result.out).toBe(
      `cluster      local
incarnation  ${'f'.repeat(32)}
leader       n2

ENDPOINT  NODE  ROLE       TERM  COMMITTED  APPLIED
a:1       n1    follower      6          5        4
b:2       n2    leader        7          5        4
c:3             no answer

MEMBER  PEER ADDRESS  PART   REACHABLE  LAG  DIRECTORY
n1      x:1           voter  no          12  none
n2      x:2           voter  yes          0  none
n1: disk is nearly full
c:3 does not answer: refused; start its node, or see what its log says`,
    );
  });

  it('is one document with --json', async () => {
    const result = await run('status --endpoints a:1,b:2,c:3 --json', replies);
    expect(JSON.parse(result.out)).toMatchObject({
      cluster: 'local',
      leader: 'n2',
      nodes: [
        { node: 'n1', alarms: ['disk is nearly full'] },
        { node: 'n2', committedRevision: '5' },
        { error: 'refused' },
      ],
      members: [{ node: 'n1', lag: 12, directory: null }, { node: 'n2' }],
    });
  });

  it('ends with 3 when nobody knows a leader', async () => {
    const result = await run('status --endpoints a:1,c:3', (_, endpoint) =>
      endpoint === 'c:3' ? errorWith('UNREACHABLE', 'refused') : status('n1', { leader: undefined, role: 'candidate' }),
    );
    expect(result.code).toBe(3);
    expect(result.out).toContain('leader       none');
  });

  it('says how many members answer and how many are needed, and does not pretend to know who is reachable', async () => {
    const replies = (members: GetStatusAnswer['members']): Replies => {
      return (_, endpoint) =>
        endpoint === 'a:1'
          ? status('n1', { leader: undefined, members })
          : errorWith('UNREACHABLE', `${endpoint ?? ''}: connection refused`);
    };
    const members = ['n1', 'n2', 'n3'].map((node) => ({
      node: node as NodeId,
      directory: undefined,
      peerAddress: 'x:1',
      voter: true,
      reachable: true,
      lag: 0,
    }));
    const line = 'status --endpoints a:1,b:2,c:3';
    expect((await run(line, replies(members))).out).toContain(
      'no leader: 1 of 3 members answer, 2 are needed; start more',
    );
    expect((await run(line, replies([]))).out).toContain('no leader: 1 of 3 endpoints answer');
    expect(JSON.parse((await run(`${line} --json`, replies(members))).out)).toMatchObject({
      nodes: [{}, { endpoint: 'b:2', error: 'connection refused' }, {}],
      members: [{ reachable: null, lag: null }, {}, {}],
    });
    expect((await run('status --help')).out).toContain('also when there are alarms');
  });

  it('shows the picture when nobody answers', async () => {
    const result = await run('status --endpoints a:1');
    expect(result).toMatchObject({ code: 3, err: '' });
    expect(result.out).toContain('no node answered');
  });
});
