/**
 * The messages of a pipeline → requests and responses as the plain calls have them, which are then checked by the same
 * code: `public-parse.ts` for a server, `public-read.ts` for a client. Only what is peculiar to a pipeline is read here.
 */
import type { Header } from '../base/api.js';
import { StrictReader } from './public-messages.js';
import {
  endReasonName,
  notGrantedReasonName,
  PIPELINE_CALLS,
  PIPELINE_REQUEST,
  PIPELINE_RESPONSE,
} from './public-pipeline-messages.js';
import type { PipelineAnswer, PipelineCall } from './public-pipeline-messages.js';
import { receivedFailure } from './public-error.js';
import type { ReceivedFailure } from './public-error.js';
import { readHeader, readResponse } from './public-read.js';
import type {
  RequestMessages,
  ResponseMessages,
  WireEnded,
  WireHeader,
  WireInt64,
  WireLease,
  WireLeaseRef,
  WireRequest,
  WireResponse,
} from './public-types.js';
import { UnexpectedResponse } from './public-unexpected.js';

/** An operation that is not checked yet. */
export interface PipelineOperation {
  readonly id: number;
  /** 0 when the client set none. */
  readonly timeoutMs: number;
  /** Undefined when none is set, more than one is, or one that this version does not know. */
  readonly request: PipelineRequest | undefined;
}

/** A request of one of the four kinds. */
export type PipelineRequest = Extract<WireRequest, { readonly type: PipelineCall['type'] }>;

/** How one operation ended. */
export type PipelineResult =
  | { readonly id: number; readonly type: 'answer'; readonly answer: PipelineAnswer }
  | ({ readonly id: number; readonly type: 'failure' } & ReceivedFailure);

/** Thrown for bytes that are no PipelineRequest. */
export class UnreadablePipeline extends Error {
  override readonly name = 'UnreadablePipeline';
}

/** The operations in a PipelineRequest. Throws {@link UnreadablePipeline}. */
export function readOperations(bytes: Buffer): readonly PipelineOperation[] {
  let message: { readonly operations: readonly RawOperation[] };
  try {
    message = PIPELINE_REQUEST.decode(new StrictReader(bytes)) as unknown as typeof message;
  } catch (error) {
    throw new UnreadablePipeline('the bytes are no PipelineRequest', { cause: error });
  }
  return message.operations.map((raw) => ({ id: raw.id, timeoutMs: raw.timeoutMs, request: requestIn(raw) }));
}

/** The header and the results of a PipelineResponse. Throws {@link UnexpectedResponse}. */
export function readResults(bytes: Buffer): { readonly header: Header; readonly results: readonly PipelineResult[] } {
  let message: { readonly header: Raw<WireHeader> | null; readonly results: readonly RawResult[] };
  try {
    message = PIPELINE_RESPONSE.decode(new StrictReader(bytes)) as unknown as typeof message;
  } catch (error) {
    throw new UnexpectedResponse('the response', 'is no PipelineResponse', { cause: error });
  }
  if (message.header === null) throw new UnexpectedResponse('header', 'is missing');
  // Field by field: what is not on the wire is on the prototype.
  const { cluster, incarnation, revision, nodeId, leaderId } = message.header;
  const header = readHeader({ cluster, incarnation, revision: int64(revision), nodeId, leaderId });
  return { header, results: message.results.map(resultIn) };
}

/** What protobufjs makes of an `int64`. */
interface Halves {
  readonly low: number;
  readonly high: number;
  toString(): string;
}
/** A message whose 64-bit integers and enumerations are as protobufjs hands them out. */
type Raw<T> = {
  readonly [K in keyof T]: bigint extends T[K]
    ? Halves
    : K extends 'reason'
      ? number
      : T[K] extends readonly (infer E)[]
        ? readonly Raw<E>[]
        : K extends 'metadata'
          ? T[K]
          : T[K] extends object | null | undefined
            ? Raw<NonNullable<T[K]>> | null
            : T[K];
};
type RawOperation = { readonly id: number; readonly timeoutMs: number } & {
  readonly [T in PipelineCall['type']]: Raw<RequestMessages[T]> | null;
};
interface RawError {
  readonly reason: string;
  readonly message: string;
  readonly outcomeUnknown: boolean;
  readonly retryDelayMs: number;
  readonly revision: Halves;
}
type RawResult = { readonly id: number; readonly error: RawError | null } & {
  readonly [T in PipelineCall['type']]: Raw<ResponseMessages[T]> | null;
};

function requestIn(raw: RawOperation): PipelineRequest | undefined {
  if (kindsOf(raw) !== 1) return undefined;
  if (raw.acquire !== null) {
    const { domain, requestId, holder, ttlMs, waitMs, metadata, coolDownMs, slots, seenRevision } = raw.acquire;
    const rest = { domain, requestId, holder, ttlMs, waitMs, metadata, coolDownMs, slots };
    return { type: 'acquire', message: { ...rest, seenRevision: int64(seenRevision) } };
  }
  if (raw.renew !== null) return { type: 'renew', message: { leases: raw.renew.leases.map(refIn) } };
  if (raw.release !== null) return { type: 'release', message: { lease: refOrNull(raw.release.lease) } };
  return raw.withdraw === null ? undefined : { type: 'withdraw', message: raw.withdraw };
}

/** How many kinds are set: a message that says two is none. */
function kindsOf(raw: Readonly<Record<PipelineCall['type'], unknown>>): number {
  let kinds = 0;
  for (const type of PIPELINE_CALLS) if (raw[type] !== null) kinds++;
  return kinds;
}

function resultIn(raw: RawResult): PipelineResult {
  const { id, error } = raw;
  const set = kindsOf(raw) + (error === null ? 0 : 1);
  if (set !== 1) throw new UnexpectedResponse(`result ${id}`, `has ${set} outcomes, or one that is not known`);
  if (error !== null) {
    const { reason: name, message, outcomeUnknown, retryDelayMs } = error;
    const revision = safe(error.revision);
    const outcome = outcomeUnknown ? 'unknown' : 'not-done';
    const said = { name, message, outcome, retryDelayMs, revision: revision > 0 ? revision : undefined } as const;
    return { id, type: 'failure', ...receivedFailure(said) };
  }
  // Of the same type as the response by construction.
  return { id, type: 'answer', answer: readResponse(responseIn(raw)).answer as PipelineAnswer };
}

function responseIn(raw: RawResult): WireResponse {
  if (raw.acquire !== null) {
    const { requestId, granted, queued, notGranted, ended } = raw.acquire;
    const message = {
      header: null,
      requestId,
      ...(granted == null ? {} : { granted: leaseIn(granted) }),
      ...(ended == null ? {} : { ended: endedIn(ended) }),
      ...(queued == null ? {} : { queued: { position: queued.position, current: leaseOrNull(queued.current) } }),
      ...(notGranted == null
        ? {}
        : {
            notGranted: {
              reason: notGrantedReasonName(notGranted.reason),
              current: leaseOrNull(notGranted.current),
              queueLength: notGranted.queueLength,
              coolDownLeftMs: notGranted.coolDownLeftMs,
            },
          }),
    };
    return { type: 'acquire', message };
  }
  if (raw.renew !== null) {
    const results = raw.renew.results.map(({ live, ended }) => {
      if (live != null) return { live };
      return ended == null ? {} : { ended: endedIn(ended) };
    });
    return { type: 'renew', message: { header: null, results } };
  }
  if (raw.release !== null) {
    const { released, ended } = raw.release;
    return { type: 'release', message: { header: null, released, ended: ended === null ? null : endedIn(ended) } };
  }
  return { type: 'withdraw', message: { header: null } };
}

function leaseIn({ domain, token, holder, metadata, ttlMs, grantedAtUnixMs }: Raw<WireLease>): WireLease {
  return { domain, token: int64(token), holder, metadata, ttlMs, grantedAtUnixMs: int64(grantedAtUnixMs) };
}

function leaseOrNull(lease: Raw<WireLease> | null): WireLease | null {
  return lease === null ? null : leaseIn(lease);
}

function endedIn({ lease, reason, by, note, currentToken }: Raw<WireEnded>): WireEnded {
  return { lease: refOrNull(lease), reason: endReasonName(reason), by, note, currentToken: int64(currentToken) };
}

function refIn({ domain, token }: Raw<WireLeaseRef>): WireLeaseRef {
  return { domain, token: int64(token) };
}

function refOrNull(ref: Raw<WireLeaseRef> | null): WireLeaseRef | null {
  return ref === null ? null : refIn(ref);
}

/** Exact for every value: the checks behind decide what may be, and tell the number that was sent. */
function int64(value: Halves): WireInt64 {
  const number = safe(value);
  return Number.isSafeInteger(number) ? number : BigInt(value.toString());
}

/** Exact where it is a safe integer; the high half is signed. */
function safe({ high, low }: Halves): number {
  return high * 2 ** 32 + (low >>> 0);
}
