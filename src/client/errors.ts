/** The client's errors: one class, told apart by `code`. */
import { ERRORS } from '../base/errors.js';
import type { NotGrantedReason } from '../base/api.js';
import type { Failure, Outcome, Reason } from '../base/errors.js';
import type { EndInfo, LeaseInfo } from './views.js';

/** Errors that only the client itself can raise; the others are the `fencepost-reason` of the server. */
const CLIENT_ERRORS = {
  /** The lease is held by somebody else (or grants are held back after a restore), and `waitMs` is over. */
  NOT_GRANTED: { retryable: true, outcome: 'not-done' },
  /** The lease is over: its safe deadline passed, or the server said how it ended. */
  LEASE_LOST: { retryable: false, outcome: 'not-done' },
  /** Every reachable node belongs to an older history of the cluster than one that this client has seen. */
  OLD_CLUSTER: { retryable: false, outcome: 'unknown' },
  /** What was to be observed lies before what the cluster keeps of its changes: list what there is, and observe from now. */
  COMPACTED: { retryable: false, outcome: 'not-done' },
  /** The caller's own `signal` ended the call. */
  ABORTED: { retryable: false, outcome: 'unknown' },
  /** The client was closed. */
  CLOSED: { retryable: false, outcome: 'unknown' },
  /** No node answered before the call's deadline. "Not done" when none could even be sent the call. */
  UNREACHABLE: { retryable: true, outcome: 'unknown' },
  /** What answered is no Fencepost node, or one of a version that this client does not understand. */
  UNEXPECTED_ANSWER: { retryable: false, outcome: 'unknown' },
  /** An option or an argument is wrong; the message lists every fault. */
  INVALID_OPTIONS: { retryable: false, outcome: 'not-done' },
} as const satisfies Record<string, { retryable: boolean; outcome: Outcome }>;

/** Stable upper-case name of an error: a reason from the server's table, or one of the client's own. */
export type ErrorCode = Reason | keyof typeof CLIENT_ERRORS;

/**
 * Every error that this package throws on purpose. Compare `code`, not the class: two copies of the package in one
 * process have two classes.
 */
export class FencepostError extends Error {
  override readonly name: string = 'FencepostError';
  /** What happened. */
  readonly code: ErrorCode;
  /** `not-done`: the call had no effect. `unknown`: it may have had one. */
  readonly outcome: Outcome;
  /** May the same thing be tried again with a chance of success? */
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, more: { outcome?: Outcome; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    const facts = code in CLIENT_ERRORS ? CLIENT_ERRORS[code as keyof typeof CLIENT_ERRORS] : ERRORS[code as Reason];
    this.code = code;
    this.outcome = more.outcome ?? facts.outcome;
    this.retryable = facts.retryable;
  }
}

/** The error for a failure that a node reported; `node` names the endpoint that did. */
export function errorOf(failure: Failure, endpoint: string): FencepostError {
  return new FencepostError(failure.reason, `${failure.message} (from ${endpoint}). ${ERRORS[failure.reason].remedy}`, {
    outcome: failure.outcome,
  });
}

/** The lease was not granted, and `waitMs` is over or waiting does not help. Code `NOT_GRANTED`. */
export class NotGrantedError extends FencepostError {
  override readonly name = 'NotGrantedError';
  /**
   * `held`, `wait_over`: by the lease in `current`. `queue_full`: as many wait as may. `cool_down`: closed for a while after
   * an expiry. `slots_differ`: the name has another number of slots. `recovering`: grants are held back after a restore.
   */
  readonly reason: NotGrantedReason;
  /** The lease in the way, if there is one. */
  readonly current: LeaseInfo | undefined;

  constructor(domain: string, reason: NotGrantedReason, current: LeaseInfo | undefined, waitMs: number) {
    super('NOT_GRANTED', `${domain} was not granted${waited(reason, waitMs)}: ${why(reason, current)}.`);
    this.reason = reason;
    this.current = current;
  }
}

function waited(reason: NotGrantedReason, waitMs: number): string {
  return reason === 'wait_over' ? ` within waitMs = ${waitMs}` : '';
}

/** What is in the way, and what to do about it. */
function why(reason: NotGrantedReason, current: LeaseInfo | undefined): string {
  const holder = current === undefined ? 'another' : `${JSON.stringify(current.holder)} under token ${current.token}`;
  switch (reason) {
    case 'held':
      return `it is held by ${holder}. Try again later, or let acquire wait (waitMs)`;
    case 'wait_over':
      return `it was held all the time, now by ${holder}. Wait longer, or try again later`;
    case 'queue_full':
      return 'as many as may wait for it do so already. Try again later';
    case 'cool_down':
      return 'it is closed for a while because its last lease expired. Try again later, or let acquire wait (waitMs)';
    case 'slots_differ':
      return 'the name is in use with another number of slots, which never changes. Take another name';
    case 'recovering':
      return 'the cluster holds grants back for a while after a restore. Try again later, or let acquire wait (waitMs)';
  }
}

/** The lease is over; stop working. The reason of an aborted `lease.signal`. Code `LEASE_LOST`. */
export class LeaseLostError extends FencepostError {
  override readonly name = 'LeaseLostError';
  readonly domain: string;
  readonly token: bigint;
  /** How it ended, when the server said so; undefined when the safe deadline passed without word from the server. */
  readonly ended: EndInfo | undefined;

  constructor(domain: string, token: bigint, ended: EndInfo | undefined) {
    const why =
      ended === undefined
        ? 'no renewal was confirmed before its safe deadline'
        : `the cluster says: ${ended.reason}${ended.note === '' ? '' : ` (${ended.note})`}`;
    super(
      'LEASE_LOST',
      `The lease of ${domain} under token ${token} is lost: ${why}. Stop its work; acquire anew to go on.`,
    );
    this.domain = domain;
    this.token = token;
    this.ended = ended;
  }
}

/** Changes were missed that no node keeps any more. Nobody can say what they were. Code `COMPACTED`. */
export class CompactedError extends FencepostError {
  override readonly name = 'CompactedError';
  /** The oldest revision from which changes can be observed. */
  readonly oldestRevision: bigint;

  constructor(from: bigint, oldestRevision: bigint, why: string) {
    super(
      'COMPACTED',
      `The changes from revision ${from} on are not kept any more (${why}); the oldest that are begin at ${oldestRevision}. ` +
        'List what there is, and observe from then on.',
    );
    this.oldestRevision = oldestRevision;
  }
}
