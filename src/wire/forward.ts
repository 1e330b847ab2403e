/**
 * Clients' calls on their way to the leader and back ↔ `peer.proto`, ForwardedCall and ForwardedResult. A call travels
 * as its public request message and an answer as its public response, so there is one mapping of each.
 */
import type { ForwardableCall } from '../base/api.js';
import { ERRORS } from '../base/errors.js';
import type { Failure, Outcome, Reason } from '../base/errors.js';
import { MAX_TTL_MS } from '../base/limits.js';
import type { CallId, CallResult, Principal } from '../replica/types.js';
import { CorruptBytes } from './corrupt.js';
import {
  anyText,
  bytes as bytesOf,
  enumName,
  enumNumber,
  flag,
  has,
  integer,
  name,
  part,
  revision,
  variant,
  wellFormed,
} from './fields.js';
import type { Names } from './fields.js';
import { uint32, uint64 } from './numbers.js';
import { decodeFields, encodeFields, messageType } from './proto.js';
import type { Fields } from './proto.js';
import { encodeCall, METHOD_OF } from './public.js';
import { parseRequest } from './public-parse.js';
import type { TtlLimits } from './public-parse.js';

const CALL = messageType('ForwardedCall');
const RESULT = messageType('ForwardedResult');

/** In the order of their numbers on the wire: the closed list of what may be forwarded (S6). */
export const FORWARDED_METHODS: Names<ForwardableCall['type']> = [
  'acquire',
  'renew',
  'release',
  'withdraw',
  'verify',
  'get',
  'forceRelease',
  'transferLeadership',
  'list',
  'changeLimits',
];
/** In the order of their numbers on the wire. */
export const FAILURE_OUTCOMES: Names<Outcome> = ['not-done', 'unknown'];

/** The node that took the call has applied its limits and filled in the defaults. */
const NO_TTL_LIMITS: TtlLimits = { minTtlMs: 1, maxTtlMs: MAX_TTL_MS, defaultTtlMs: 0 };

/** A call that is passed on. */
export interface ForwardedCall {
  readonly id: CallId;
  /** The term of the leader for whom it is. */
  readonly term: number;
  readonly principal: Principal;
  /** What is left of the client's deadline; sent as whole milliseconds, rounded up. */
  readonly timeoutMs: number;
  /** How long it may still be held if it is queued; sent as whole milliseconds, rounded down. */
  readonly holdMs: number;
  readonly call: ForwardableCall;
}

/** What became of it. */
export interface ForwardedResult {
  readonly id: CallId;
  readonly result: CallResult;
}

/** The bytes of a call that is passed on. */
export function encodeForwardedCall(forwarded: ForwardedCall): Uint8Array {
  return encodeFields(CALL, {
    id: uint64(forwarded.id, 'id'),
    term: uint64(forwarded.term, 'term'),
    principal: wellFormed(forwarded.principal.name, 'principal'),
    authenticated: forwarded.principal.authenticated,
    timeoutMs: uint32(Math.max(0, Math.ceil(forwarded.timeoutMs)), 'timeoutMs'),
    holdMs: uint32(Math.max(0, Math.floor(forwarded.holdMs)), 'holdMs'),
    method: enumNumber(FORWARDED_METHODS, forwarded.call.type),
    request: encodeCall(forwarded.call),
  });
}

/** Throws {@link CorruptBytes}, also for a call that breaks a limit: the node that passed it on should have refused it. */
export function decodeForwardedCall(bytes: Uint8Array): ForwardedCall {
  const what = 'forwarded call';
  const fields = decodeFields(CALL, bytes, what);
  const type = enumName(FORWARDED_METHODS, fields, 'method', what);
  return {
    id: integer(fields, 'id', what),
    term: integer(fields, 'term', what),
    principal: { name: name(fields, 'principal', what), authenticated: flag(fields, 'authenticated', what) },
    timeoutMs: integer(fields, 'timeoutMs', what),
    holdMs: integer(fields, 'holdMs', what),
    call: readCall(type, bytesOf(fields, 'request', what), `forwarded ${type}`),
  };
}

/** The bytes of a result on its way back. */
export function encodeForwardedResult({ id, result }: ForwardedResult): Uint8Array {
  return encodeFields(RESULT, { id: uint64(id, 'id'), ...resultFields(result) });
}

/** Throws {@link CorruptBytes}. */
export function decodeForwardedResult(bytes: Uint8Array): ForwardedResult {
  const what = 'forwarded result';
  const fields = decodeFields(RESULT, bytes, what);
  const id = integer(fields, 'id', what);
  const type = variant(fields, 'result', what);
  const body = part(fields, type, what);
  switch (type) {
    case 'answer':
      return { id, result: readAnswer(body, 'forwarded answer') };
    case 'failure':
      return { id, result: { type, failure: readFailure(body, 'forwarded failure') } };
    case 'notLeader':
      return { id, result: { type, outcome: enumName(FAILURE_OUTCOMES, body, 'outcome', what) } };
    default:
      throw new CorruptBytes(what, `is of a kind '${type}' that this version does not know`);
  }
}

function readCall(type: ForwardableCall['type'], bytes: Uint8Array, what: string): ForwardableCall {
  const parsed = parseRequest(METHOD_OF[type].requestDeserialize(asBuffer(bytes)), NO_TTL_LIMITS);
  if ('faults' in parsed) throw new CorruptBytes(what, parsed.faults.join('; '));
  const call = parsed.ok;
  if (call.type === 'getStatus' || call.type === 'getStateHash') throw new CorruptBytes(what, 'is never forwarded');
  if (call.type !== 'acquire') return call;
  const { requestId } = call;
  if (requestId === undefined) throw new CorruptBytes(what, 'request_id is missing');
  if (call.ttlMs === 0) throw new CorruptBytes(what, 'ttl_ms is missing');
  return { ...call, requestId };
}

function resultFields(result: CallResult): Fields {
  switch (result.type) {
    case 'answer': {
      const { answer } = result;
      const response = METHOD_OF[answer.type].responseSerialize({ header: undefined, answer, version: '' });
      const at = uint64(result.revision, 'revision');
      return { answer: { method: numberOf(answer.type), revision: at, response } };
    }
    case 'failure':
      return { failure: failureFields(result.failure) };
    case 'notLeader':
      return { notLeader: { outcome: enumNumber(FAILURE_OUTCOMES, result.outcome) } };
  }
}

/** Only what may be forwarded is answered: anything else is a failed assertion. */
function numberOf(type: string): number {
  return enumNumber<string>(FORWARDED_METHODS, type);
}

function readAnswer(fields: Fields, what: string): CallResult {
  const type = enumName(FORWARDED_METHODS, fields, 'method', what);
  const response = asBuffer(bytesOf(fields, 'response', what));
  try {
    const { answer } = METHOD_OF[type].responseDeserialize(response);
    return { type: 'answer', answer, revision: revision(fields, 'revision', what) };
  } catch (error) {
    if (error instanceof CorruptBytes) throw error;
    throw new CorruptBytes(what, error instanceof Error ? error.message : 'cannot be read', { cause: error });
  }
}

function failureFields(failure: Failure): Fields {
  return {
    reason: failure.reason,
    message: failure.message,
    outcome: enumNumber(FAILURE_OUTCOMES, failure.outcome),
    revision: failure.revision === undefined ? undefined : uint64(failure.revision, 'revision'),
  };
}

function readFailure(fields: Fields, what: string): Failure {
  const reason = name(fields, 'reason', what);
  if (!isReason(reason)) throw new CorruptBytes(what, `reason '${reason}' is not known to this version`);
  return {
    reason,
    // For people: shown as it is.
    message: anyText(fields, 'message', what),
    outcome: enumName(FAILURE_OUTCOMES, fields, 'outcome', what),
    ...(has(fields, 'revision') ? { revision: integer(fields, 'revision', what) } : {}),
  };
}

function isReason(value: string): value is Reason {
  return Object.hasOwn(ERRORS, value);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
