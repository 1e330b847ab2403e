/**
 * The one table of errors that a client can meet. `fencepost-reason` in the trailing metadata is the key; a reason is
 * never renamed or reused. Answers such as "held" or "that lease is over" are not errors and not here.
 */

/** What a caller may conclude about the effect of a call that failed. */
export type Outcome = 'not-done' | 'unknown';

interface Row {
  /** gRPC status code. */
  readonly code: number;
  /** May the same call (same request id) be sent again with a chance of success? */
  readonly retryable: boolean;
  /** The outcome unless the place that raises the error knows better. */
  readonly outcome: Outcome;
  /** How long to wait before the next try, in milliseconds; 0 when a retry cannot help. */
  readonly retryDelayMs: number;
  /** What the caller or the operator does about it. */
  readonly remedy: string;
}

const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const DEADLINE_EXCEEDED = 4;
const RESOURCE_EXHAUSTED = 8;
const FAILED_PRECONDITION = 9;
const INTERNAL = 13;
const UNAVAILABLE = 14;

/** Reason → facts. Printed in README; `test/base/readme.test.ts` holds the two together. */
export const ERRORS = {
  INVALID_REQUEST: {
    code: INVALID_ARGUMENT,
    retryable: false,
    outcome: 'not-done',
    retryDelayMs: 0,
    remedy: 'Correct the fields that the message names.',
  },
  REQUEST_ID_REUSED: {
    code: INVALID_ARGUMENT,
    retryable: false,
    outcome: 'not-done',
    retryDelayMs: 0,
    remedy: 'The request id was used before with other contents. Take a new id for each attempt to own.',
  },
  REQUEST_TOO_OLD: {
    code: FAILED_PRECONDITION,
    retryable: false,
    outcome: 'unknown',
    retryDelayMs: 0,
    remedy:
      'The record of this request may have been forgotten. If this id was never sent before, take a new id with seen_revision = the trailer fencepost-revision; else withdraw it first.',
  },
  NO_LEADER: {
    code: UNAVAILABLE,
    retryable: true,
    outcome: 'not-done',
    retryDelayMs: 200,
    remedy:
      'The node knows no leader: repeat the call, on another node. If it lasts, see that a majority of the nodes runs.',
  },
  LEADER_CHANGED: {
    code: UNAVAILABLE,
    retryable: true,
    outcome: 'unknown',
    retryDelayMs: 50,
    remedy: 'The leader changed while the call was under way: repeat it with the same request id.',
  },
  SHUTTING_DOWN: {
    code: UNAVAILABLE,
    retryable: true,
    outcome: 'unknown',
    retryDelayMs: 50,
    remedy: 'The node is stopping: repeat the call on another node.',
  },
  TOO_MANY_HELD_CALLS: {
    code: UNAVAILABLE,
    retryable: true,
    outcome: 'not-done',
    retryDelayMs: 500,
    remedy: 'The node has no leader and holds as many calls as it may: repeat later, on another node.',
  },
  NODE_BEHIND: {
    code: UNAVAILABLE,
    retryable: true,
    outcome: 'not-done',
    retryDelayMs: 500,
    remedy:
      'The node has not applied the revision at which the watch starts: watch from another node. If all say so, it is of another cluster or history: List, then watch from there.',
  },
  OVERLOADED: {
    code: RESOURCE_EXHAUSTED,
    retryable: true,
    outcome: 'not-done',
    retryDelayMs: 100,
    remedy: 'The leader has too much uncommitted or unapplied work: repeat later and send less.',
  },
  QUOTA_EXCEEDED: {
    code: RESOURCE_EXHAUSTED,
    retryable: true,
    outcome: 'not-done',
    retryDelayMs: 1_000,
    remedy: 'The quota that the message names is used up: release what is not needed, or have the limit raised.',
  },
  DISK_FULL: {
    code: RESOURCE_EXHAUSTED,
    retryable: true,
    outcome: 'not-done',
    retryDelayMs: 5_000,
    remedy:
      'Less than the disk floor is free on the leader or on a majority of members: new leases are refused, renewals and releases go on. Free space; it clears itself.',
  },
  TIMED_OUT: {
    code: DEADLINE_EXCEEDED,
    retryable: true,
    outcome: 'unknown',
    retryDelayMs: 50,
    remedy: 'The call ended at its deadline without an answer: repeat it with the same request id.',
  },
  NOT_A_VOTER: {
    code: FAILED_PRECONDITION,
    retryable: false,
    outcome: 'not-done',
    retryDelayMs: 0,
    remedy: 'Leadership can be handed to a voter only: name one that `fencepost status` lists as voter.',
  },
  UNKNOWN_MEMBER: {
    code: NOT_FOUND,
    retryable: false,
    outcome: 'not-done',
    retryDelayMs: 0,
    remedy: 'No member has this name: `fencepost status` lists them.',
  },
  TRANSFER_FAILED: {
    code: UNAVAILABLE,
    retryable: true,
    outcome: 'unknown',
    retryDelayMs: 1_000,
    remedy:
      'Leadership was not handed over within an election time-out: see that the target is reachable and caught up, then repeat.',
  },
  NOT_FORMED: {
    code: UNAVAILABLE,
    retryable: true,
    outcome: 'not-done',
    retryDelayMs: 1_000,
    remedy: 'This node has not formed or joined a cluster yet: `fencepost status` and its log say what it waits for.',
  },
  INTERNAL: {
    code: INTERNAL,
    retryable: false,
    outcome: 'unknown',
    retryDelayMs: 0,
    remedy: 'A defect of Fencepost: report it with the log of the node that answered.',
  },
} as const satisfies Record<string, Row>;

/** Stable upper-case name of an error. */
export type Reason = keyof typeof ERRORS;

/** An error as it travels: between rooms, over a forward stream and to the client. */
export interface Failure {
  readonly reason: Reason;
  /** For people: names the thing, the limit and the next step. */
  readonly message: string;
  readonly outcome: Outcome;
  /** Trailer `fencepost-revision` (only REQUEST_TOO_OLD): a revision that a new id may carry as seen. */
  readonly revision?: number;
}

/** A failure with the table's outcome, unless `more` says otherwise. */
export function failure(reason: Reason, message: string, more: { outcome?: Outcome; revision?: number } = {}): Failure {
  const { outcome } = ERRORS[reason];
  return { reason, message, outcome, ...more };
}
