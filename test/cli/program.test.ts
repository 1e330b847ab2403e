import { describe, expect, it } from 'vitest';
import type { Answer, Call, GetStatusAnswer, Header, LeaseView } from '../../src/base/api.js';
import type { Domain, Incarnation, NodeId, RequestId } from '../../src/base/ids.js';
import { type Revision, ZERO_REVISION } from '../../src/base/revision.js';
import type { Cluster } from '../../src/cli/cluster.js';
import type { Io } from '../../src/cli/io.js';
import { COMMANDS, runProgram } from '../../src/cli/program.js';
import { FencepostError } from '../../src/client/errors.js';
import type { AnswerTo } from '../../src/client/transport.js';

const TOKEN = '1796000000000041';
const REQUEST = '01234567-89ab-cdef-0123-456789abcdef';
const HEADER: Header = {
  cluster: 'local',
  incarnation: 'f'.repeat(32) as Incarnation,
  revision: 1_796_000_000_000_050 as Revision,
  node: 'n2' as NodeId,
  leader: 'n2' as NodeId,
};
const LEASE: LeaseView = {
  domain: 'orders/eu' as Domain,
  token: Number(TOKEN) as Revision,
  holder: 'worker-a',
  metadata: [['zone', 'b']],
  ttlMs: 15_000,
  grantedAtUnixMs: Date.UTC(2026, 11, 1),
};
const ENDED = {
  lease: { domain: LEASE.domain, token: LEASE.token },
  reason: 'force_released',
  by: 'ops',
  note: 'stuck',
  currentToken: ZERO_REVISION,
} as const;

interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly calls: readonly Call[];
  readonly connects: readonly (readonly [readonly string[], number])[];
  readonly closed: number;
}

type Replies = (call: Call, endpoint: string | undefined) => Answer | FencepostError;
const NOTHING: Replies = () => new FencepostError('UNREACHABLE', 'nobody there');

/** Runs a command line against a cluster that answers what the test says. */
async function run(line: string, replies: Replies = NOTHING, more: Partial<Io> = {}): Promise<Run> {
  const lines = { out: [] as string[], err: [] as string[] };
  const calls: Call[] = [];
  const connects: (readonly [readonly string[], number])[] = [];
  let closed = 0;
  const io: Io = {
    out: (text) => lines.out.push(text),
    err: (text) => lines.err.push(text),
    colour: false,
    environment: {},
    connect: (endpoints, timeoutMs): Cluster => {
      connects.push([endpoints, timeoutMs]);
      const answer = <C extends Call>(call: C, endpoint?: string) => {
        calls.push(call);
        const reply = replies(call, endpoint);
        if (reply instanceof Error) return Promise.reject(reply);
        return Promise.resolve({ answer: reply as AnswerTo<C>, header: HEADER });
      };
      return {
        endpoints,
        call: answer,
        ask: (endpoint, call) => answer(call, endpoint),
        close: () => {
          closed++;
        },
      };
    },
    ...more,
  };
  const code = await runProgram(
    line.split(' ').filter((word) => word !== ''),
    io,
  );
  return { code, out: lines.out.join('\n'), err: lines.err.join('\n'), calls, connects, closed };
}

describe('usage', () => {
  it('reports every fault of a line in one message, and calls nobody', async () => {
    const result = await run(
      'acquire a//b --ttl-ms 0 --meta x --bogus --holder --request-id 7 --endpoints nowhere,1.2.3.4:5',
    );
    expect(result.code).toBe(2);
    expect(result.calls).toEqual([]);
    for (const text of [
      'there is no flag --bogus',
      'domain "a//b" must be segments',
      '--holder needs a value',
      '--meta must be KEY=VALUE, not "x"',
      '--request-id must be a UUID, not "7"',
      '--ttl-ms must be a whole number from 1 to 86400000, not "0"',
      '--endpoints must be HOST:PORT,… with ports from 1 to 65535; "nowhere" is not one',
    ])
      expect(result.err).toContain(`  - ${text}`);
    expect(result.err).toContain('cannot be run (fencepost acquire --help), 7 faults:');
    expect(result.err.split('\n')).toHaveLength(8);
  });

  it.each([
    ['renew orders/eu', ['the token is missing']],
    ['release', ['the domain is missing', 'the token is missing']],
    ['verify a 12x', ['the token must be a positive number']],
    ['verify a 9999999999999999', ['the token must be a positive number']],
    ['get a b', ['nothing is expected at "b"']],
    ['status extra', ['nothing is expected at "extra"']],
    ['get a --timeout-ms 0', ['--timeout-ms must be a whole number from 1']],
    ['acquire a --meta', ['--meta needs a value']],
    ['acquire a --meta k=1 --meta k=2', ['--meta names k twice']],
    ['acquire a --seen-revision 5', ['--seen-revision goes with --request-id']],
    ['force-release a 5', ['--note must have 1 to 500 bytes; this one has 0']],
    ['transfer-leadership n/1', ['node "n/1" must be']],
    ['dev --nodes 2 --config-dir x', ['--nodes must be 1 or 3', '--config-dir stands alone']],
    [
      'start --bogus --tick-ms --cluster a/b',
      [
        'no flag --bogus',
        '--tick-ms needs a value',
        'cluster must be',
        'nodeId is missing',
        'dataDir is missing',
        'members is missing',
      ],
    ],
  ])('%s', async (line, faults) => {
    const result = await run(line);
    expect(result.code).toBe(2);
    expect(result.err.split('\n').slice(1)).toEqual(faults.map((fault) => expect.stringContaining(fault) as string));
    expect(result.calls).toEqual([]);
  });

  it('knows no other command, and no flag before one', async () => {
    expect(await run('aquire x')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Did you mean acquire') as string,
    });
    expect(await run('--bogus')).toMatchObject({ code: 2 });
    expect(await run('')).toMatchObject({ code: 2, err: expect.stringContaining('Commands:') as string });
  });

  it('reads what stands behind -- as an operand', async () => {
    const result = await run('get -- -x', () => ({ type: 'get', domain: '-x' as Domain, lease: undefined, leftMs: 0 }));
    expect(result.calls).toEqual([{ type: 'get', domain: '-x', freshness: 'linearizable' }]);
  });

  it.each(COMMANDS.map(({ name }) => name))('%s --help shows flags and exit codes', async (name) => {
    const result = await run(`${name} --help`);
    expect(result.code).toBe(0);
    expect(result.out).toContain('Exit codes:');
    expect(result.out).toContain(`Usage: fencepost ${name}`);
  });

  it('lists every command in --help', async () => {
    const { out } = await run('--help');
    for (const { name } of COMMANDS) expect(out).toContain(`  ${name}`);
  });
});

describe('endpoints', () => {
  it.each([
    ['the local cluster by default', '', {}, ['127.0.0.1:7101', '127.0.0.1:7102', '127.0.0.1:7103']],
    ['the variable', '', { FENCEPOST_ENDPOINTS: 'a:1, b:2,a:1' }, ['a:1', 'b:2']],
    ['the flag before the variable', '--endpoints c:3', { FENCEPOST_ENDPOINTS: 'a:1' }, ['c:3']],
  ])('%s', async (_, flags, environment, expected) => {
    const result = await run(`get a ${flags}`, NOTHING, { environment });
    expect(result.connects).toEqual([[expected, 10_000]]);
    expect(result.closed).toBe(1);
  });

  it('gives the time-out to the transport', async () => {
    expect((await run('get a --timeout-ms 250')).connects[0]?.[1]).toBe(250);
  });
});

describe('errors of the cluster', () => {
  it('go to standard error with their code, exit code 3', async () => {
    expect(await run('get a')).toMatchObject({ code: 3, out: '', err: 'UNREACHABLE: nobody there' });
  });

  it('are a document with --json', async () => {
    const result = await run('get a --json');
    expect(result).toMatchObject({ code: 3, err: '' });
    expect(JSON.parse(result.out)).toEqual({
      error: { code: 'UNREACHABLE', message: 'nobody there', outcome: 'unknown' },
    });
  });

  it('are faults of usage when the server says so', async () => {
    expect((await run('get a', () => new FencepostError('INVALID_REQUEST', 'x'))).code).toBe(2);
  });
});

describe('acquire', () => {
  const answer =
    (outcome: Extract<Answer, { type: 'acquire' }>['outcome']): Replies =>
    (call) =>
      call.type === 'get'
        ? { type: 'get', domain: LEASE.domain, lease: undefined, leftMs: 0 }
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
      `granted     yes
domain      orders/eu
token       ${TOKEN}
holder      worker-a
ttl         15000 ms
granted at  2026-12-01T00:00:00.000Z
meta zone   b
request id  ${REQUEST}`,
    );
  });

  it('prints tokens as text with --json', async () => {
    const result = await run('acquire orders/eu --json', answer({ type: 'granted', lease: LEASE }));
    expect(JSON.parse(result.out)).toEqual({
      outcome: 'granted',
      requestId: REQUEST,
      lease: { ...LEASE, token: TOKEN, metadata: { zone: 'b' } },
    });
  });

  it('ends with 1 when another holds the domain', async () => {
    const result = await run('acquire orders/eu', answer({ type: 'notGranted', reason: 'held', current: LEASE }));
    expect(result.code).toBe(1);
    expect(result.out).toContain('granted     no');
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
      call.type === 'get'
        ? { type: 'get', domain: LEASE.domain, lease: undefined, leftMs: 0 }
        : new FencepostError('TIMED_OUT', 'late'),
    );
    expect(failed.code).toBe(3);
    const again = /--request-id (\S+) --seen-revision (\d+)/.exec(failed.err);
    expect(again?.[2]).toBe(String(HEADER.revision));
    const repeated = await run(`acquire a ${again?.[0] ?? ''}`, answer({ type: 'granted', lease: LEASE }));
    expect(repeated.calls).toEqual([
      expect.objectContaining({ type: 'acquire', requestId: again?.[1], seenRevision: HEADER.revision }),
    ]);
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
    expect(JSON.parse(late.out)).toMatchObject({ released: false, ended: { by: 'ops' } });
  });

  it('get: held and free are both answers', async () => {
    const held = await run('get orders/eu', () => ({
      type: 'get',
      domain: LEASE.domain,
      lease: LEASE,
      leftMs: 1_234.5,
    }));
    expect(held.code).toBe(0);
    expect(held.out).toContain('time left   1235 ms without a renewal');
    const free = await run('get orders/eu --json', () => ({
      type: 'get',
      domain: LEASE.domain,
      lease: undefined,
      leftMs: 0,
    }));
    expect(free.code).toBe(0);
    expect(JSON.parse(free.out)).toEqual({ domain: 'orders/eu', lease: null, leftMs: null });
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
    expect(JSON.parse(result.out)).toEqual({ released: false, currentToken: TOKEN });
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
    ...more,
  });
  const replies: Replies = (_, endpoint) => {
    if (endpoint === 'c:3') return new FencepostError('UNREACHABLE', 'refused');
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
c:3: refused`,
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
      endpoint === 'c:3'
        ? new FencepostError('UNREACHABLE', 'refused')
        : status('n1', { leader: undefined, role: 'candidate' }),
    );
    expect(result.code).toBe(3);
    expect(result.out).toContain('leader       none');
  });

  it('shows the picture when nobody answers', async () => {
    const result = await run('status --endpoints a:1');
    expect(result).toMatchObject({ code: 3, err: '' });
    expect(result.out).toContain('no node answered');
  });
});
