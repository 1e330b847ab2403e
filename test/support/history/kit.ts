/** Short ways to write operations by hand: one domain, one holder for each request, times in milliseconds. */
import type { AcquireAnswer, Answer, EndedView, EndReason, LeaseState, LeaseView } from '../../../src/base/api.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { JudgedCall, Operation } from './operations.js';
import { domainAnswer, notGranted, PLAIN } from '../answers.js';

/** The TTL of every lease. */
export const TTL_MS = 1_000;
/** How long after the sending of a confirmed call its holder is safe. */
export const SAFE_MS = 940;
const DOMAIN = 'd' as Domain;

/** When a call was sent and when its answer came. */
export type When = readonly [invokedAt: number, returnedAt: number];

export const rev = (value: number): Revision => value as Revision;

/** The lease with this token, granted to `request`. */
export function lease(token: number, request: string): LeaseView {
  const holder = `holder of ${request}`;
  return { domain: DOMAIN, token: rev(token), holder, metadata: [], ttlMs: TTL_MS, grantedAtUnixMs: 1 };
}

/** The end of a lease, or of a request without one. */
export function ended(token: number | undefined, reason: EndReason, current = 0): EndedView {
  const ref = token === undefined ? undefined : { domain: DOMAIN, token: rev(token) };
  return { lease: ref, reason, by: '', note: '', currentToken: rev(current) };
}

type AcquireOutcome = AcquireAnswer['outcome'];

/** Calls whose answer is lost: they may have taken effect. */
export const unanswered = {
  acquire: (sentAt: number, request: string): Operation => open(sentAt, acquireCall(request)),
  release: (sentAt: number, token: number): Operation => open(sentAt, releaseCall(token)),
  withdraw: (sentAt: number, request: string): Operation => open(sentAt, withdrawCall(request)),
  forceRelease: (sentAt: number, token: number): Operation => open(sentAt, forceCall(token)),
};

/** An Acquire that is granted `token`; `at` is the revision of the answer. */
export function granted(when: When, request: string, token: number, at = token): Operation {
  return acquired(when, request, at, { type: 'granted', lease: lease(token, request) });
}

/** An Acquire that finds the domain held by the lease `token` of `other`. */
export function held(when: When, request: string, token: number, other: string, at: number): Operation {
  return acquired(when, request, at, notGranted('held', lease(token, other)));
}

/** An Acquire that comes during the hold of a restored history. */
export function recovering(when: When, request: string, at: number): Operation {
  return acquired(when, request, at, notGranted('recovering'));
}

/** An Acquire whose request is over. */
export function acquireEnded(when: When, request: string, end: EndedView, at: number): Operation {
  return acquired(when, request, at, { type: 'ended', ended: end });
}

/** A Renew; `end` undefined: the lease lives. */
export function renewed(when: When, token: number, at: number, end?: EndedView): Operation {
  const call: JudgedCall = { type: 'renew', leases: [{ domain: DOMAIN, token: rev(token) }] };
  return answered(when, call, at, { type: 'renew', results: [stateOf(end)] });
}

/** A Verify; `end` undefined: the lease lives. */
export function verified(when: When, token: number, at: number, end?: EndedView): Operation {
  const call: JudgedCall = {
    type: 'verify',
    lease: { domain: DOMAIN, token: rev(token) },
    freshness: 'linearizable',
  };
  return answered(when, call, at, { type: 'verify', outcome: stateOf(end) });
}

/** A Release; `end` undefined: it is told that it, or an earlier copy, ended the lease. */
export function released(when: When, token: number, at: number, end?: EndedView): Operation {
  return answered(when, releaseCall(token), at, { type: 'release', released: end === undefined, ended: end });
}

export function withdrawn(when: When, request: string, at: number): Operation {
  return answered(when, withdrawCall(request), at, { type: 'withdraw' });
}

/** A ForceRelease that ended the lease, or with `current`, the token that lives, did not. */
export function forced(when: When, token: number, at: number, current?: number): Operation {
  const currentToken = current === undefined ? ZERO_REVISION : rev(current);
  return answered(when, forceCall(token), at, { type: 'forceRelease', released: current === undefined, currentToken });
}

/** A Get; `live` undefined: nobody holds the domain. */
export function got(
  when: When,
  live: LeaseView | undefined,
  at: number,
  freshness: 'linearizable' | 'local' = 'linearizable',
): Operation {
  const call: JudgedCall = { type: 'get', domain: DOMAIN, freshness };
  return answered(when, call, at, domainAnswer(DOMAIN, live));
}

/** The operation, refused without any effect. */
export function refused(operation: Operation): Operation {
  return { ...operation, outcome: { type: 'not-done' } };
}

function acquired(when: When, request: string, at: number, outcome: AcquireOutcome): Operation {
  return answered(when, acquireCall(request), at, { type: 'acquire', requestId: request as RequestId, outcome });
}

function answered([invokedAt, returnedAt]: When, call: JudgedCall, at: number, answer: Answer): Operation {
  return { client: 'c', call, invokedAt, returnedAt, outcome: { type: 'answer', answer, revision: rev(at) } };
}

function open(invokedAt: number, call: JudgedCall): Operation {
  return { client: 'c', call, invokedAt, returnedAt: undefined, outcome: { type: 'unknown' } };
}

function stateOf(end: EndedView | undefined): LeaseState {
  return end === undefined ? { type: 'live', ttlMs: TTL_MS } : { type: 'ended', ended: end };
}

function acquireCall(request: string): JudgedCall {
  const { domain, holder, metadata, ttlMs } = lease(1, request);
  const requestId = request as RequestId;
  return { type: 'acquire', domain, requestId, holder, ttlMs, metadata, ...PLAIN, seenRevision: ZERO_REVISION };
}

function releaseCall(token: number): JudgedCall {
  return { type: 'release', lease: { domain: DOMAIN, token: rev(token) } };
}

function withdrawCall(request: string): JudgedCall {
  return { type: 'withdraw', domain: DOMAIN, requestId: request as RequestId };
}

function forceCall(token: number): JudgedCall {
  return { type: 'forceRelease', domain: DOMAIN, token: rev(token), note: 'note' };
}
