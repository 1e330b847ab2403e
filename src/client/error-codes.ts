/** The codes of errors that the client itself raises, with the class and the meaning of each. */
import type { Outcome, Reason } from '../base/errors.js';

interface Row {
  /** The class with this code. */
  readonly name: string;
  readonly retryable: boolean;
  /** Unless the place that raises the error knows better. */
  readonly outcome: Outcome;
  /** What happened, and what to do. */
  readonly meaning: string;
}

/**
 * Errors that only the client itself can raise; the others are the `fencepost-reason` of the server, in class
 * `ClusterError`. Printed in README; `test/client/errors.test.ts` holds the two together.
 */
export const CLIENT_ERRORS = {
  NOT_GRANTED: {
    name: 'NotGrantedError',
    retryable: true,
    outcome: 'not-done',
    meaning: 'Another holds the domain and `waitMs` is over, or waiting does not help: see `reason` and `current`.',
  },
  LEASE_LOST: {
    name: 'LeaseLostError',
    retryable: false,
    outcome: 'not-done',
    meaning: 'The safe deadline passed, or the cluster said how the lease ended. Stop its work; acquire anew.',
  },
  OLD_CLUSTER: {
    name: 'OldClusterError',
    retryable: false,
    outcome: 'unknown',
    meaning: 'Every node that answered is of an older history of the cluster than one this client has seen: stop it.',
  },
  ABORTED: {
    name: 'AbortedError',
    retryable: false,
    outcome: 'unknown',
    meaning: "The caller's own `signal` ended the call; what it may have been granted is given back.",
  },
  CLOSED: { name: 'ClosedError', retryable: false, outcome: 'unknown', meaning: 'The client was closed.' },
  UNREACHABLE: {
    name: 'UnreachableError',
    retryable: true,
    outcome: 'unknown',
    meaning: 'No node answered in time; `not-done` when none could even be sent the call.',
  },
  UNEXPECTED_ANSWER: {
    name: 'UnexpectedAnswerError',
    retryable: false,
    outcome: 'unknown',
    meaning: 'What answered is no Fencepost node, or one of a version that this client does not understand.',
  },
  INVALID_OPTIONS: {
    name: 'InvalidOptionsError',
    retryable: false,
    outcome: 'not-done',
    meaning: 'An option or an argument is wrong; the message lists every fault.',
  },
} as const satisfies Record<string, Row>;

/** Stable upper-case name of an error: a reason from the server's table, or one of the client's own. */
export type ErrorCode = Reason | keyof typeof CLIENT_ERRORS;
