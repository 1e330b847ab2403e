/** What one answer says of its domain, in one form for all calls. */
import type { AcquireAnswer, Answer, EndedView, EndReason, LeaseState, LeaseView } from '../../../src/base/api.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Revision } from '../../../src/base/revision.js';
import type { JudgedCall, Operation } from './operations.js';

/** How a lease ended, as far as it was said. */
export interface End {
  readonly reason: EndReason;
  /** Who and with what note; undefined where the answer has no place for them. */
  readonly by: string | undefined;
  readonly note: string | undefined;
}

/**
 * An operation and what its answer says; nothing, if there was none. Everything is as of the one moment at which the
 * answering state was looked at.
 */
export interface Told {
  readonly operation: Operation;
  /** The token of the live lease, 0 for none; undefined when nothing is said of it. */
  readonly current?: Revision;
  /** The live lease in full. */
  readonly view?: LeaseView;
  /** TTL of the lease `current`, where only that is told. */
  readonly ttlMs?: number;
  /** A lease that is over, or was never there: see `end.reason`. */
  readonly over?: Revision;
  readonly end?: End;
  /** The request that `over`, or else `current`, was granted to. */
  readonly grantedTo?: RequestId;
  /** A request that has been granted nothing. */
  readonly notGranted?: RequestId;
  /** A request that holds nothing and will hold nothing. */
  readonly withdrawn?: RequestId;
  /** It left its queue by itself: `withdrawn` is over without a Withdraw. */
  readonly left?: true;
  /** The request waits or waited: it may be granted later by this call, or was, for a while of which nobody was told (F7). */
  readonly waits?: true;
  /** Nothing has been granted in this history yet. */
  readonly recovering?: true;
  /** The caller holds `current` and counts from this call. */
  readonly confirms?: true;
  /** The answer does not fit the call. */
  readonly fault?: string;
}

/** The domain a call is about. */
export function domainOf(call: JudgedCall): Domain {
  switch (call.type) {
    case 'renew': {
      const [first] = call.leases;
      if (first === undefined || call.leases.length > 1) throw new Error('a renew is one operation for each lease');
      return first.domain;
    }
    case 'release':
    case 'verify':
      return call.lease.domain;
    case 'acquire':
    case 'withdraw':
    case 'get':
    case 'forceRelease':
      return call.domain;
  }
}

/** The token that a call names; undefined if it names none. */
export function tokenOf(call: JudgedCall): Revision | undefined {
  switch (call.type) {
    case 'renew':
      return call.leases[0]?.token;
    case 'release':
    case 'verify':
      return call.lease.token;
    case 'forceRelease':
      return call.token;
    case 'acquire':
    case 'withdraw':
    case 'get':
      return undefined;
  }
}

/** What the answer of the operation says. */
export function toldBy(operation: Operation): Told {
  if (operation.outcome.type !== 'answer') return { operation };
  const told = { operation, ...read(operation.call, operation.outcome.answer) };
  const { view } = told;
  if (view !== undefined && view.domain !== domainOf(operation.call)) {
    return { operation, fault: `tells of a lease of ${view.domain}` };
  }
  return told;
}

type Said = Omit<Told, 'operation'>;

function read(call: JudgedCall, answer: Answer): Said {
  switch (answer.type) {
    case 'acquire':
      if (call.type === 'acquire' && answer.requestId === call.requestId) return acquired(call.requestId, answer);
      break;
    case 'renew': {
      const [result] = answer.results;
      if (call.type !== 'renew' || result === undefined || answer.results.length > 1) break;
      const said = state(call, result);
      return result.type === 'live' ? { ...said, confirms: true } : said;
    }
    case 'verify':
      if (call.type === 'verify') return state(call, answer.outcome);
      break;
    case 'release':
      if (call.type !== 'release') break;
      if (answer.released)
        return { ...over(call.lease.token, 'released'), ...(answer.ended && { fault: 'tells of another end' }) };
      return answer.ended === undefined ? { fault: 'lacks the end' } : ended(call, answer.ended);
    case 'withdraw':
      if (call.type === 'withdraw') return { withdrawn: call.requestId };
      break;
    case 'get':
      if (call.type !== 'get' || answer.domain !== call.domain) break;
      return answer.lease === undefined ? { current: ZERO_REVISION } : live(answer.lease);
    case 'forceRelease':
      if (call.type !== 'forceRelease') break;
      if (answer.currentToken === call.token) return { fault: 'tells that the lease lives' };
      if (!answer.released) return { current: answer.currentToken };
      // Of a lease that it ended it says no more: whoever waited may hold the domain now.
      return over(call.token, 'force_released');
    case 'list':
    case 'changeLimits':
    case 'transferLeadership':
    case 'getStatus':
    case 'getStateHash':
  }
  return { fault: 'does not belong to the call' };
}

function acquired(requestId: RequestId, { outcome }: AcquireAnswer): Said {
  switch (outcome.type) {
    case 'granted':
      return { ...live(outcome.lease), grantedTo: requestId, confirms: true };
    case 'queued':
      return { ...inTheWay(outcome.current), notGranted: requestId, waits: true };
    case 'notGranted':
      if (outcome.reason === 'recovering') return { recovering: true, notGranted: requestId };
      if (outcome.current === undefined && outcome.reason === 'held')
        return { fault: 'lacks the lease that stands in the way' };
      if (outcome.reason === 'wait_over')
        return { ...inTheWay(outcome.current), withdrawn: requestId, left: true, waits: true };
      return { ...inTheWay(outcome.current), notGranted: requestId };
    case 'ended': {
      const { lease, reason, currentToken } = outcome.ended;
      if (lease !== undefined) return { ...end(outcome.ended), over: lease.token, grantedTo: requestId };
      if (reason === 'left_queue') return { withdrawn: requestId, left: true, waits: true, current: currentToken };
      return reason === 'withdrawn'
        ? { withdrawn: requestId, current: currentToken }
        : { fault: 'lacks the lease that ended' };
    }
  }
}

/** Nobody holds a domain that somebody waits for while it is closed, or free for who calls next. */
function inTheWay(current: LeaseView | undefined): Said {
  return current === undefined ? { current: ZERO_REVISION } : live(current);
}

function live(view: LeaseView): Said {
  return { current: view.token, view };
}

function state(call: JudgedCall, result: LeaseState): Said {
  const token = tokenOf(call);
  if (result.type === 'ended' || token === undefined) {
    return result.type === 'ended' ? ended(call, result.ended) : { fault: 'names no lease' };
  }
  return { current: token, ttlMs: result.ttlMs };
}

function ended(call: JudgedCall, view: EndedView): Said {
  const token = tokenOf(call);
  if (token === undefined || view.lease?.token !== token || view.lease.domain !== domainOf(call)) {
    return { fault: 'tells of the end of another lease' };
  }
  if (view.currentToken === token) return { fault: 'tells that the lease has ended and lives' };
  return { ...end(view), over: token };
}

function end({ reason, by, note, currentToken }: EndedView): Said {
  return { end: { reason, by, note }, current: currentToken };
}

function over(token: Revision, reason: EndReason): Said {
  return { over: token, end: { reason, by: undefined, note: undefined } };
}
