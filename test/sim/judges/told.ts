/** Short ways to write by hand what clients were told: one domain, tokens and times as small numbers. */
import type { Answer, Call } from '../../../src/base/api.js';
import type { Domain, Incarnation, NodeId } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import { failure } from '../../../src/base/errors.js';
import type { Reply } from '../../../src/client/channel.js';
import { requestId } from '../../client/world.js';
import type { Attempt, AttemptObserver } from '../clients/attempts.js';

/** The domain of every call. */
export const DOMAIN = 'd' as Domain;
/** The TTL of every lease: safe for 940 ms of the holder's clock. */
export const TTL_MS = 1_000;
/** The history in which every call is answered, unless it says otherwise. */
export const HISTORY = 'a'.repeat(32) as Incarnation;

/** How a call differs from the usual: its client's clock is right and it is answered by {@link HISTORY}. */
export interface How {
  readonly client?: string;
  readonly rate?: number;
  readonly incarnation?: Incarnation;
  /** What the answer's header shows. */
  readonly revision?: number;
}

let numbers = 0;

/** A call was sent and not answered yet. */
export function attempt(call: Call, sentAt: number, { client = 'c1', rate = 1 }: How = {}): Attempt {
  numbers++;
  return {
    number: numbers,
    client,
    process: `${client}.1`,
    rate,
    node: 'n1' as NodeId,
    call,
    sentAt,
    answeredBy: undefined,
    reply: undefined,
    receivedAt: undefined,
  };
}

/** Shows a call, and then its answer, to a judge. */
export function exchange(
  judge: AttemptObserver,
  call: Call,
  sentAt: number,
  receivedAt: number,
  answer: Answer,
  how: How = {},
): void {
  const { incarnation = HISTORY, revision = 1 } = how;
  const sent = attempt(call, sentAt, how);
  judge.sent(sent);
  const header = {
    cluster: 'sim',
    incarnation,
    revision: revision as Revision,
    node: 'n1' as NodeId,
    leader: undefined,
  };
  const reply: Reply = { type: 'answer', header, answer, version: '' };
  judge.told(Object.assign(sent, { reply, receivedAt }));
}

/** An acquire with the nth request id. */
export function acquireOf(n: number, seenRevision = 1): Extract<Call, { type: 'acquire' }> {
  return {
    type: 'acquire',
    domain: DOMAIN,
    requestId: requestId(n),
    holder: 'h',
    ttlMs: TTL_MS,
    waitMs: 0,
    metadata: [],
    coolDownMs: 0,
    slots: 1,
    seenRevision: seenRevision as Revision,
  };
}

/** The nth request is granted `token`. */
export function grant(
  judge: AttemptObserver,
  n: number,
  token: number,
  sentAt: number,
  receivedAt: number,
  how: How & { readonly seenRevision?: number } = {},
): void {
  const call = acquireOf(n, how.seenRevision ?? 1);
  const lease = {
    domain: DOMAIN,
    token: token as Revision,
    holder: 'h',
    metadata: [],
    ttlMs: TTL_MS,
    grantedAtUnixMs: 1,
  };
  const answer: Answer = { type: 'acquire', requestId: call.requestId, outcome: { type: 'granted', lease } };
  exchange(judge, call, sentAt, receivedAt, answer, how);
}

/** A renewal of `token` is answered. */
export function renewal(
  judge: AttemptObserver,
  token: number,
  sentAt: number,
  receivedAt: number,
  type: 'live' | 'ended' = 'live',
): void {
  const lease = ref(token);
  const ended = { lease, reason: 'expired', by: '', note: '', currentToken: 0 as Revision } as const;
  exchange(judge, { type: 'renew', leases: [lease] }, sentAt, receivedAt, {
    type: 'renew',
    results: [type === 'live' ? { type, ttlMs: TTL_MS } : { type, ended }],
  });
}

/** (domain, token). */
export function ref(token: number): { readonly domain: Domain; readonly token: Revision } {
  return { domain: DOMAIN, token: token as Revision };
}

/** A failure that a node reports. */
export function refusal(judge: AttemptObserver, call: Call, at: number, reason: 'INTERNAL' | 'NO_LEADER'): void {
  const sent = attempt(call, at - 1);
  judge.sent(sent);
  const reply: Reply = { type: 'failure', failure: failure(reason, 'said'), retryDelayMs: 0 };
  judge.told(Object.assign(sent, { reply, receivedAt: at }));
}
