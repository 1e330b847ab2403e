/**
 * Failures ↔ what a gRPC call ends with: a status code, a message and trailing metadata. Three plain text trailers that
 * any client can read, and the same as `google.rpc.Status` with ErrorInfo and RetryInfo in `grpc-status-details-bin`,
 * written by hand because those messages belong to files that this project does not carry.
 */
import protobuf from 'protobufjs';
import { ERRORS } from '../base/errors.js';
import type { Failure, Outcome, Reason } from '../base/errors.js';

/** Key of the stable name of the error. */
export const TRAILER_REASON = 'fencepost-reason';
/** Key of `not-done` or `unknown`. */
export const TRAILER_OUTCOME = 'fencepost-outcome';
/** Key of the time to wait before the next try, in milliseconds; absent when a retry cannot help. */
export const TRAILER_RETRY_DELAY = 'retry-delay-ms';
/** Key of a revision that a new request id may carry as seen; only with REQUEST_TOO_OLD. */
export const TRAILER_REVISION = 'fencepost-revision';
/** Key of the encoded `google.rpc.Status`. */
export const TRAILER_DETAILS = 'grpc-status-details-bin';

/** `ErrorInfo.domain` of every error of this product. */
const ERROR_DOMAIN = 'fencepost';

/** How a call fails. Values of keys that end in `-bin` are bytes. */
export interface CallStatus {
  /** gRPC status code. */
  readonly code: number;
  readonly message: string;
  readonly trailers: readonly (readonly [key: string, value: string | Uint8Array])[];
}

/** The part of grpc-js's Metadata that is read here. */
export interface Trailers {
  get(key: string): readonly (string | Uint8Array)[];
}

/** A failure as a client finds it. */
export interface ReceivedFailure {
  readonly failure: Failure;
  /** 0 when a retry cannot help. */
  readonly retryDelayMs: number;
}

/** What a server ends the call with. */
export function failureToStatus(failure: Failure): CallStatus {
  const { code, retryDelayMs } = ERRORS[failure.reason];
  const trailers: [string, string | Uint8Array][] = [
    [TRAILER_REASON, failure.reason],
    [TRAILER_OUTCOME, failure.outcome],
  ];
  if (retryDelayMs > 0) trailers.push([TRAILER_RETRY_DELAY, String(retryDelayMs)]);
  if (failure.revision !== undefined) trailers.push([TRAILER_REVISION, String(failure.revision)]);
  trailers.push([TRAILER_DETAILS, encodeStatus(failure, code, retryDelayMs)]);
  return { code, message: failure.message, trailers };
}

/**
 * The failure in the trailers of a call, or undefined when they are not those of a Fencepost node (the call did not
 * reach one, or its answer got lost). A reason from a newer server counts as LEADER_CHANGED when the node says that a
 * retry may help, else as INTERNAL; the message then begins with it.
 */
export function failureFromTrailers(message: string, trailers: Trailers): ReceivedFailure | undefined {
  const name = textOf(trailers, TRAILER_REASON);
  if (name === undefined) return undefined;
  const retryDelayMs = digitsOf(trailers, TRAILER_RETRY_DELAY) ?? 0;
  // Whatever is not clearly "not done" may have happened.
  const outcome = textOf(trailers, TRAILER_OUTCOME) === ('not-done' satisfies Outcome) ? 'not-done' : 'unknown';
  return receivedFailure({ name, message, outcome, retryDelayMs, revision: digitsOf(trailers, TRAILER_REVISION) });
}

/** As {@link failureFromTrailers}, for a failure whose parts were read already. */
export function receivedFailure(said: {
  readonly name: string;
  readonly message: string;
  readonly outcome: Outcome;
  readonly retryDelayMs: number;
  readonly revision: number | undefined;
}): ReceivedFailure {
  const { name, message, outcome, retryDelayMs, revision } = said;
  const known = isReason(name);
  const failure: Failure = {
    reason: known ? name : retryDelayMs > 0 ? 'LEADER_CHANGED' : 'INTERNAL',
    message: known ? message : `${name}: ${message}`,
    outcome,
    ...(revision === undefined ? {} : { revision }),
  };
  return { failure, retryDelayMs };
}

function isReason(name: string): name is Reason {
  return Object.hasOwn(ERRORS, name);
}

function textOf(trailers: Trailers, key: string): string | undefined {
  const value = trailers.get(key)[0];
  return typeof value === 'string' ? value : undefined;
}

function digitsOf(trailers: Trailers, key: string): number | undefined {
  const text = textOf(trailers, key);
  if (text === undefined || !/^\d{1,16}$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Wire types of protobuf. */
const VARINT = 0;
const LENGTH_DELIMITED = 2;

function encodeStatus(failure: Failure, code: number, retryDelayMs: number): Uint8Array {
  // google.rpc.Status: code = 1, message = 2, details = 3 (repeated google.protobuf.Any).
  const status = protobuf.Writer.create();
  status.uint32(key(1, VARINT)).int32(code);
  status.uint32(key(2, LENGTH_DELIMITED)).string(failure.message);
  status.uint32(key(3, LENGTH_DELIMITED)).bytes(packed('google.rpc.ErrorInfo', errorInfo(failure)));
  if (retryDelayMs > 0) {
    status.uint32(key(3, LENGTH_DELIMITED)).bytes(packed('google.rpc.RetryInfo', retryInfo(retryDelayMs)));
  }
  return status.finish();
}

/** google.rpc.ErrorInfo: reason = 1, domain = 2, metadata = 3 (map of text to text). */
function errorInfo(failure: Failure): Uint8Array {
  const info = protobuf.Writer.create();
  info.uint32(key(1, LENGTH_DELIMITED)).string(failure.reason);
  info.uint32(key(2, LENGTH_DELIMITED)).string(ERROR_DOMAIN);
  const metadata: [string, string][] = [
    ['outcome', failure.outcome],
    ['remedy', ERRORS[failure.reason].remedy],
  ];
  if (failure.revision !== undefined) metadata.push(['revision', String(failure.revision)]);
  for (const [name, value] of metadata) {
    info.uint32(key(3, LENGTH_DELIMITED)).fork();
    info.uint32(key(1, LENGTH_DELIMITED)).string(name).uint32(key(2, LENGTH_DELIMITED)).string(value);
    info.ldelim();
  }
  return info.finish();
}

/** google.rpc.RetryInfo: retry_delay = 1, a google.protobuf.Duration: seconds = 1, nanos = 2. */
function retryInfo(delayMs: number): Uint8Array {
  const info = protobuf.Writer.create();
  info.uint32(key(1, LENGTH_DELIMITED)).fork();
  info.uint32(key(1, VARINT)).int64(Math.floor(delayMs / 1_000));
  info.uint32(key(2, VARINT)).int32((delayMs % 1_000) * 1_000_000);
  return info.ldelim().finish();
}

/** google.protobuf.Any: type_url = 1, value = 2. */
function packed(type: string, value: Uint8Array): Uint8Array {
  const any = protobuf.Writer.create();
  any.uint32(key(1, LENGTH_DELIMITED)).string(`type.googleapis.com/${type}`);
  any.uint32(key(2, LENGTH_DELIMITED)).bytes(value);
  return any.finish();
}

function key(field: number, wireType: number): number {
  return (field << 3) | wireType;
}
