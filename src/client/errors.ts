/** The client's errors: one hierarchy of classes under {@link FencepostError}, one stable code each. */
import { assert } from '../base/assert.js';
import { ERRORS } from '../base/errors.js';
import type { NotGrantedReason } from '../base/api.js';
import type { Failure, Outcome, Reason } from '../base/errors.js';
import { CLIENT_ERRORS } from './error-codes.js';
import type { ErrorCode } from './error-codes.js';
import type { EndInfo, LeaseInfo } from './views.js';

/** What an error may say beside its text. */
export interface ErrorDetails {
  /** Default: that of its code. */
  readonly outcome?: Outcome;
  /** Default: that of its code. */
  readonly retryable?: boolean;
  /** What led to it. */
  readonly cause?: unknown;
}

/**
 * Every error that this package throws on purpose is of one of its subclasses. `instanceof` tells them apart, and so
 * does `code`, which alone is the same in two copies of the package in one process.
 */
export abstract class FencepostError extends Error {
  /** What happened. Never renamed or reused. */
  readonly code: ErrorCode;
  /** `not-done`: the call had no effect. `unknown`: it may have had one. */
  readonly outcome: Outcome;
  /** May the same thing be tried again with a chance of success? */
  readonly retryable: boolean;

  protected constructor(
    code: ErrorCode,
    facts: { readonly name: string; readonly outcome: Outcome; readonly retryable: boolean },
    message: string,
    details: ErrorDetails = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = facts.name;
    this.code = code;
    this.outcome = details.outcome ?? facts.outcome;
    this.retryable = details.retryable ?? facts.retryable;
  }
}

/**
 * The cluster could not, or would not, do what was asked: `code` is a reason from the table of errors that clients in
 * every language meet, and the message ends with what to do about it.
 */
export class ClusterError extends FencepostError {
  /** A key of `ERRORS`. */
  declare readonly code: Reason;

  constructor(code: Reason, message: string, details?: ErrorDetails) {
    super(code, { ...ERRORS[code], name: 'ClusterError' }, message, details);
  }
}

/** Every node that answered is of an older history of the cluster than one that this client has seen; nothing they said was used. */
export class OldClusterError extends FencepostError {
  /** Always this. */
  declare readonly code: 'OLD_CLUSTER';

  constructor(message: string, details?: ErrorDetails) {
    super('OLD_CLUSTER', CLIENT_ERRORS.OLD_CLUSTER, message, details);
  }
}

/** The caller's own `signal` ended the call; `cause` is its reason. What the call may have been granted is given back. */
export class AbortedError extends FencepostError {
  /** Always this. */
  declare readonly code: 'ABORTED';

  constructor(message: string, details?: ErrorDetails) {
    super('ABORTED', CLIENT_ERRORS.ABORTED, message, details);
  }
}

/** The client was closed, before the call or while it was under way. */
export class ClosedError extends FencepostError {
  /** Always this. */
  declare readonly code: 'CLOSED';

  constructor(message: string, details?: ErrorDetails) {
    super('CLOSED', CLIENT_ERRORS.CLOSED, message, details);
  }
}

/** No node answered in time. `outcome` is `not-done` when none could even be sent the call. */
export class UnreachableError extends FencepostError {
  /** Always this. */
  declare readonly code: 'UNREACHABLE';

  constructor(message: string, details?: ErrorDetails) {
    super('UNREACHABLE', CLIENT_ERRORS.UNREACHABLE, message, details);
  }
}

/** What answered is no Fencepost node, or one of a version that this client does not understand. */
export class UnexpectedAnswerError extends FencepostError {
  /** Always this. */
  declare readonly code: 'UNEXPECTED_ANSWER';

  constructor(message: string, details?: ErrorDetails) {
    super('UNEXPECTED_ANSWER', CLIENT_ERRORS.UNEXPECTED_ANSWER, message, details);
  }
}

/** An option or an argument is wrong. The message lists every fault; nothing was sent. */
export class InvalidOptionsError extends FencepostError {
  /** Always this. */
  declare readonly code: 'INVALID_OPTIONS';

  constructor(message: string, details?: ErrorDetails) {
    super('INVALID_OPTIONS', CLIENT_ERRORS.INVALID_OPTIONS, message, details);
  }
}

const CLASSES = {
  OLD_CLUSTER: OldClusterError,
  ABORTED: AbortedError,
  CLOSED: ClosedError,
  UNREACHABLE: UnreachableError,
  UNEXPECTED_ANSWER: UnexpectedAnswerError,
  INVALID_OPTIONS: InvalidOptionsError,
} as const;

/** The error with this code, in its class. Those that carry more than a text are made by their own constructors. */
export function errorWith(
  code: Exclude<ErrorCode, 'NOT_GRANTED' | 'LEASE_LOST' | 'COMPACTED'>,
  message: string,
  details?: ErrorDetails,
): FencepostError {
  return isOwn(code) ? new CLASSES[code](message, details) : new ClusterError(code, message, details);
}

function isOwn(code: ErrorCode): code is keyof typeof CLASSES {
  return code in CLASSES;
}

/** An error of a call again, with another text or outcome. */
export function retold({ code }: FencepostError, message: string, details: ErrorDetails): FencepostError {
  assert(code !== 'NOT_GRANTED' && code !== 'LEASE_LOST' && code !== 'COMPACTED', `${code} is no error of a call`);
  return errorWith(code, message, details);
}

/** The error for a failure that a node reported; `node` names the endpoint that did. */
export function errorOf(failure: Failure, endpoint: string): ClusterError {
  return new ClusterError(failure.reason, `${failure.message} (from ${endpoint}). ${ERRORS[failure.reason].remedy}`, {
    outcome: failure.outcome,
  });
}

/** The lease was not granted, and `waitMs` is over or waiting does not help. Code `NOT_GRANTED`. */
export class NotGrantedError extends FencepostError {
  /** Always this. */
  declare readonly code: 'NOT_GRANTED';
  /** What was asked for. */
  readonly domain: string;
  /**
   * `held`, `wait_over`: by the lease in `current`. `queue_full`: as many wait as may. `cool_down`: closed for a while after
   * an expiry. `slots_differ`: the name has another number of slots. `recovering`: grants are held back after a restore.
   */
  readonly reason: NotGrantedReason;
  /** The lease in the way, if there is one. */
  readonly current: LeaseInfo | undefined;

  constructor(domain: string, reason: NotGrantedReason, current: LeaseInfo | undefined, waitMs: number) {
    super(
      'NOT_GRANTED',
      CLIENT_ERRORS.NOT_GRANTED,
      `${domain} was not granted${waited(reason, waitMs)}: ${why(reason, current)}.`,
      {
        retryable: reason !== 'slots_differ',
      },
    );
    this.domain = domain;
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
  /** Always this. */
  declare readonly code: 'LEASE_LOST';
  /** What the lease was of. */
  readonly domain: string;
  /** Its fencing token. */
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
      CLIENT_ERRORS.LEASE_LOST,
      `The lease of ${domain} under token ${token} is lost: ${why}. Stop its work; acquire anew to go on.`,
    );
    this.domain = domain;
    this.token = token;
    this.ended = ended;
  }
}

/** Changes were missed that no node keeps any more. Nobody can say what they were. Code `COMPACTED`. */
export class CompactedError extends FencepostError {
  /** Always this. */
  declare readonly code: 'COMPACTED';
  /** The oldest revision from which changes can be observed. */
  readonly oldestRevision: bigint;

  constructor(from: bigint, oldestRevision: bigint, why: string) {
    super(
      'COMPACTED',
      CLIENT_ERRORS.COMPACTED,
      `The changes from revision ${from} on are not kept any more (${why}); the oldest that are begin at ${oldestRevision}. ` +
        'List what there is, and observe from then on.',
    );
    this.oldestRevision = oldestRevision;
  }
}
