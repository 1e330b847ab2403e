/** A command line run against a cluster that answers what the test says. */
import type { Answer, Call, Header, LeaseView } from '../../src/base/api.js';
import type { Domain, Incarnation, NodeId } from '../../src/base/ids.js';
import { type Revision, ZERO_REVISION } from '../../src/base/revision.js';
import type { Cluster } from '../../src/cli/cluster.js';
import type { Io } from '../../src/cli/io.js';
import { runProgram } from '../../src/cli/program.js';
import { errorWith } from '../../src/client/errors.js';
import type { FencepostError } from '../../src/client/errors.js';
import type { Observation } from '../../src/client/observe.js';
import type { AnswerTo } from '../../src/client/transport.js';

export const TOKEN = '1796000000000041';
export const REQUEST = '01234567-89ab-cdef-0123-456789abcdef';
export const HEADER: Header = {
  cluster: 'local',
  incarnation: 'f'.repeat(32) as Incarnation,
  revision: 1_796_000_000_000_050 as Revision,
  node: 'n2' as NodeId,
  leader: 'n2' as NodeId,
};
export const LEASE: LeaseView = {
  domain: 'orders/eu' as Domain,
  token: Number(TOKEN) as Revision,
  holder: 'worker-a',
  metadata: [['zone', 'b']],
  ttlMs: 15_000,
  grantedAtUnixMs: Date.UTC(2026, 11, 1),
};
export const ENDED = {
  lease: { domain: LEASE.domain, token: LEASE.token },
  reason: 'force_released',
  by: 'ops',
  note: 'stuck',
  currentToken: ZERO_REVISION,
} as const;

export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly calls: readonly Call[];
  /** Prefix and start of each observation. */
  readonly observed: readonly (readonly [string, bigint | undefined])[];
  readonly connects: readonly (readonly [readonly string[], number])[];
  readonly closed: number;
}

export type Replies = (call: Call, endpoint: string | undefined) => Answer | FencepostError;
export const NOTHING: Replies = () => errorWith('UNREACHABLE', 'nobody there');

/** What an observation tells. */
export type Observed = () => AsyncIterable<Observation>;

/** Runs a command line against a cluster that answers what the test says. */
export async function run(
  line: string,
  replies: Replies = NOTHING,
  more: Partial<Io> = {},
  observations: Observed = nothingObserved,
): Promise<Run> {
  const lines = { out: [] as string[], err: [] as string[] };
  const calls: Call[] = [];
  const observed: (readonly [string, bigint | undefined])[] = [];
  const connects: (readonly [readonly string[], number])[] = [];
  let closed = 0;
  const io: Io = {
    out: (text) => lines.out.push(text),
    err: (text) => lines.err.push(text),
    colour: false,
    folder: process.cwd(),
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
        observe: (prefix, from) => {
          observed.push([prefix, from]);
          return observations();
        },
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
  return { code, out: lines.out.join('\n'), err: lines.err.join('\n'), calls, observed, connects, closed };
}

async function* nothingObserved(): AsyncGenerator<Observation> {
  await Promise.resolve();
  throw errorWith('UNREACHABLE', 'nobody there');
  yield { revision: 0n, changes: [] };
}
