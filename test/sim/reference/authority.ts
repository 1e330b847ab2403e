/**
 * Why an answer may leave (design 7 and 8; F5, F7, F8, S5, S9): something that came after its call confirmed that this
 * member led, in this term: an own entry that was applied, or a round that was sent after it. Who is told that it holds
 * a lease waits besides for the Void of a flagged one and for the outcome of an open Expire.
 */
import type { AcquireAnswer, AcquireCall } from '../../../src/base/api.js';
import type { CallResult } from '../../../src/replica/types.js';
import { subjectOf } from './calls.js';
import type { Calls, Decided, OpenCall } from './calls.js';
import { sameEnd } from './contents.js';
import { leaseKey } from './leader-clock.js';
import type { LeaderClock } from './leader-clock.js';
import type { LeaseModel, Outcome } from './lease-model.js';
import { isSame } from './limits.js';
import type { RaftModel } from './raft-state.js';
import type { Reign } from './reign.js';
import type { Leaving } from './waits.js';

/** Rounding of doubles. */
const EPSILON_MS = 1e-6;

/** What an answer is judged by. */
export interface Grounds {
  readonly model: RaftModel;
  readonly leases: LeaseModel;
  readonly calls: Calls;
  /** Of the leadership that the process has, or lost in this step; undefined when it is not ready. */
  readonly reign: Reign | undefined;
  readonly step: number;
  readonly nowMs: number;
  readonly fail: (text: string) => void;
}

type Answered = Extract<CallResult, { readonly type: 'answer' }>;

/** Judges a result that this process found itself. */
export function checkAuthority(grounds: Grounds, call: OpenCall, result: CallResult): void {
  if (result.type === 'answer') checkAnswer(grounds, call, result);
  else {
    const outcome = result.type === 'failure' ? result.failure.outcome : result.outcome;
    if (outcome === 'not-done') checkNotDone(grounds, call);
    if (result.type !== 'failure') return;
    const { reason } = result.failure;
    if (reason === 'REQUEST_TOO_OLD') needDecision(grounds, call, 'REQUEST_TOO_OLD', ({ type }) => type === 'tooOld');
    if (reason === 'REQUEST_ID_REUSED')
      needDecision(grounds, call, 'REQUEST_ID_REUSED', ({ type }) => type === 'reused');
  }
}

/** That nothing was done is said only when nothing can have been. */
function checkNotDone({ calls, fail }: Grounds, call: OpenCall): void {
  if (call.attempted || call.forwardedTo !== undefined)
    fail(`says that nothing came of call ${call.id}, which was passed on`);
  const subject = subjectOf(call.call);
  if (subject === undefined) return;
  const decided = calls.decided.get(subject)?.filter(({ index }) => index > call.since.index) ?? [];
  // Of several calls of one subject it is not known which one the entry was for.
  if (calls.taken.get(subject) === 1 && decided.length > 0)
    fail(`says that nothing came of call ${call.id}, whose entry is applied`);
}

function checkAnswer(grounds: Grounds, call: OpenCall, result: Answered): void {
  const { step, fail } = grounds;
  const { type } = call.call;
  const local = ('freshness' in call.call && call.call.freshness === 'local') || type.startsWith('getSta');
  if (local) {
    if (call.since.step !== step || call.from !== '') fail(`answers call ${call.id} late, or for another node`);
    return;
  }
  if (type === 'transferLeadership') return;
  const reign = leading(grounds, call, result);
  if (reign === undefined) return;
  const { clock } = reign;
  const { answer } = result;
  switch (answer.type) {
    case 'verify':
    case 'get':
    case 'list':
      needRound(grounds, clock, call);
      return;
    case 'renew':
      needRound(grounds, clock, call);
      if (call.call.type !== 'renew') return;
      for (const [at, ref] of call.call.leases.entries()) {
        if (answer.results[at]?.type === 'live') needFate(grounds, clock, call, ref);
      }
      return;
    case 'acquire': {
      checkAcquired(grounds, reign, call, result, answer.outcome);
      return;
    }
    case 'release':
      needDecision(grounds, call, 'released', (own) => {
        if (own.type !== 'released' || own.released !== answer.released) return false;
        if (own.ended === undefined || answer.ended === undefined) return own.ended === answer.ended;
        return sameEnd(own.ended, answer.ended);
      });
      return;
    case 'withdraw':
      needDecision(grounds, call, 'withdrawn', (own) => own.type === 'withdrawn');
      return;
    case 'forceRelease':
      needDecision(grounds, call, 'force-released', (own) => {
        return (
          own.type === 'forceReleased' && own.released === answer.released && own.currentToken === answer.currentToken
        );
      });
      return;
    case 'changeLimits':
      needDecision(grounds, call, 'limitsChanged', (own) => {
        if (own.type !== 'limitsChanged') return false;
        return isSame(own.before, answer.before) && isSame(own.after, answer.after);
      });
      return;
    case 'getStatus':
    case 'getStateHash':
    case 'transferLeadership':
  }
}

/** What became of an Acquire: decided by its own entry, or by one that took its request out of the queue. */
function checkAcquired(
  grounds: Grounds,
  reign: Reign,
  call: OpenCall,
  { revision }: Answered,
  outcome: AcquireAnswer['outcome'],
): void {
  const { leases, step, nowMs, fail } = grounds;
  const { waits, clock } = reign;
  const { requestId } = call.call as AcquireCall;
  if (waits.isEnding(requestId, step, revision - leases.base + leases.start)) {
    fail(`answers call ${call.id} ${outcome.type}, while an EndWait of ${requestId} is open`);
  }
  switch (outcome.type) {
    case 'granted': {
      const { token } = outcome.lease;
      const own = (decided: Outcome): boolean => decided.type === 'granted' && decided.token === token;
      needDecisionOr(grounds, reign, call, 'granted', own);
      needFate(grounds, clock, call, outcome.lease);
      clock.renew(outcome.lease, call.arrivedAt);
      return;
    }
    case 'queued':
      // It claims nothing: it says that the caller is to call again.
      if (nowMs < call.holdUntil - EPSILON_MS) {
        fail(`answers call ${call.id} queued, ${call.holdUntil - nowMs} ms before its hold is over`);
      }
      return;
    case 'ended':
      needDecisionOr(grounds, reign, call, 'ended', ({ type }) => type === 'ended' || type === 'granted');
      return;
    case 'notGranted': {
      const { reason } = outcome;
      const current = outcome.current?.token ?? 0;
      if (reason === 'wait_over') needDecisionOr(grounds, reign, call, 'waitOver', () => false);
      else {
        needDecision(grounds, call, reason, (own) => {
          return own.type === 'notGranted' && own.reason === reason && own.token === current;
        });
      }
    }
  }
}

/** An own entry decided it, or one that took its request out of the queue; and something after the call confirmed that. */
function needDecisionOr(
  grounds: Grounds,
  { waits, clock }: Reign,
  call: OpenCall,
  how: Leaving['how'],
  fits: (outcome: Outcome) => boolean,
): void {
  if (decisionOf(grounds, call, fits) !== undefined) return;
  const { requestId } = call.call as AcquireCall;
  const leaving = waits.groundFor(requestId, how);
  if (leaving === undefined) grounds.fail(`answers call ${call.id} ${how}; no entry of this leader came to that`);
  else if (leaving.index <= call.since.index) needRound(grounds, clock, call);
}

/** The leadership in whose name it is answered: ready, and not lost before. */
function leading({ model, leases, reign, fail }: Grounds, call: OpenCall, result: Answered): Reign | undefined {
  if (reign === undefined || !model.facts.led.has(reign.term)) {
    fail(`answers call ${call.id} and does not lead, or has not applied its no-op`);
    return undefined;
  }
  const index = result.revision - leases.base + leases.start;
  const { lostAt } = model.facts;
  if (lostAt !== undefined && index > lostAt) fail(`answers call ${call.id} after it stopped leading`);
  return reign;
}

function needRound({ model, fail }: Grounds, clock: LeaderClock, call: OpenCall): void {
  const confirmed = model.facts.led.get(clock.term)?.confirmed ?? 0;
  const sent = clock.rounds[confirmed] ?? 0;
  if (sent < call.since.step) {
    fail(
      `answers call ${call.id}, confirmed by round ${confirmed} of step ${sent}; the call came in step ${call.since.step}`,
    );
  }
}

function needDecision(grounds: Grounds, call: OpenCall, what: string, fits: (outcome: Outcome) => boolean): void {
  const found = decisionOf(grounds, call, fits);
  if (found === undefined) grounds.fail(`answers call ${call.id} ${what}; no own entry after it came to that`);
}

function decisionOf(
  { calls, model }: Grounds,
  call: OpenCall,
  fits: (outcome: Outcome) => boolean,
): Decided | undefined {
  const subject = subjectOf(call.call);
  const decided = subject === undefined ? undefined : calls.decided.get(subject);
  return decided?.find(({ index, term, outcome }) => {
    return index > call.since.index && model.facts.led.has(term) && fits(outcome);
  });
}

/** Who is told that it holds a lease is not told it while the lease may already be ending. */
function needFate(
  { leases, step, fail }: Grounds,
  clock: LeaderClock,
  call: OpenCall,
  lease: { readonly domain: string; readonly token: number },
): void {
  const key = leaseKey(lease);
  const expire = clock.expires.get(key);
  if (expire !== undefined && expire.step < step)
    fail(`says that ${key} lives while its Expire ${expire.index} is open`);
  if (!call.flagged.has(key)) return;
  const live = leases.live.get(lease.domain);
  // It has ended since, within this step.
  if (live?.token !== lease.token) return;
  const { voided, leftMs, checkpointed } = live;
  // What confirms a repeated Acquire is an entry of its own: a Void before that one is enough.
  const open = leftMs !== undefined && checkpointed <= call.since.index;
  const missed = voided?.term !== clock.term || voided.index <= call.since.index;
  if (call.call.type === 'acquire' ? open : missed) {
    fail(`says that ${key} lives, which was flagged when call ${call.id} came, and no Void came since`);
  }
}
