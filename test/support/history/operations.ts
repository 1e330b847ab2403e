/**
 * A history: what clients asked of a cluster and what they were told, call by call, for the judges of this folder. One
 * history belongs to one incarnation. Whoever records keeps to this:
 *  - An operation is one call as it reached a node, not what a client library makes of several: a repeated Acquire with
 *    the same request id is an operation of its own.
 *  - Every call on a domain is recorded, by whomever: a grant that nobody asked for is judged as a fault.
 *  - A Renew of many leases is one operation for each, see {@link eachLease}.
 *  - Different request ids come with different holders or metadata: answers name a lease's holder, never its request id.
 */
import type {
  Answer,
  ChangeLimitsCall,
  ForwardableCall,
  ListCall,
  TransferLeadershipCall,
} from '../../../src/base/api.js';
import type { NodeId, RequestId } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';

/** The calls that are judged. */
export type JudgedCall = Exclude<ForwardableCall, TransferLeadershipCall | ListCall | ChangeLimitsCall>;

/** What became of a call. */
export type Outcome =
  /** `revision` is that of the header. */
  | { readonly type: 'answer'; readonly answer: Answer; readonly revision: Revision }
  /** Refused, and what refused it says that it did nothing (trailer `fencepost-outcome: not-done`), or never sent. */
  | { readonly type: 'not-done' }
  /** An error that leaves it open, or nothing was heard: it may have taken effect, or may still, or never will. */
  | { readonly type: 'unknown' };

/** One call. Times are milliseconds of one monotone clock for the whole history: true time, or that of the one recorder. */
export interface Operation {
  /** Who called, for messages to people. */
  readonly client: string;
  /** The node that was called. */
  readonly node?: NodeId;
  readonly call: JudgedCall;
  /** Before the call was sent. */
  readonly invokedAt: number;
  /** After the answer had come; undefined where there is none. Not used unless the outcome is an answer. */
  readonly returnedAt: number | undefined;
  readonly outcome: Outcome;
  /**
   * For an answer that says "you hold it": until when the holder is safe, on the history's clock. Default: contract 3's
   * deadline from `invokedAt` at true rate. A recorder that knows the rate of the holder's clock says what is true.
   */
  readonly safeUntil?: number;
}

/** What the applied log of any member says; makes sure what answers leave open. */
export interface LogFacts {
  /** The token that each request was granted, complete up to the last revision that any answer shows. */
  readonly granted: ReadonlyMap<RequestId, Revision>;
}

/** The operation, one for each lease of a Renew. */
export function eachLease(operation: Operation): readonly Operation[] {
  const { call, outcome } = operation;
  if (call.type !== 'renew' || call.leases.length === 1) return [operation];
  return call.leases.map((lease, index) => {
    const one: JudgedCall = { type: 'renew', leases: [lease] };
    if (outcome.type !== 'answer' || outcome.answer.type !== 'renew') return { ...operation, call: one };
    const results = outcome.answer.results.slice(index, index + 1);
    return { ...operation, call: one, outcome: { ...outcome, answer: { type: 'renew', results } } };
  });
}
