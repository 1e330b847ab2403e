/** Calls and answers as bytes: what the real server and the real channel do between the socket and their caller. */
import type { Call, Header } from '../../../src/base/api.js';
import { ERRORS, failure } from '../../../src/base/errors.js';
import type { Failure } from '../../../src/base/errors.js';
import { MAX_TTL_MS } from '../../../src/base/limits.js';
import type { Reply } from '../../../src/client/channel.js';
import type { CallResult } from '../../../src/replica/types.js';
import { failureFromTrailers, failureToStatus } from '../../../src/wire/public-error.js';
import { parseRequest } from '../../../src/wire/public-parse.js';
import { METHOD_OF, encodeCall } from '../../../src/wire/public.js';

/** TTLs are the run's to choose. */
const LIMITS = { minTtlMs: 1, maxTtlMs: MAX_TTL_MS, defaultTtlMs: 15_000 };

/** What a node makes of a call that was sent to it; a failure when it refuses the request before it looks at leases. */
export function received(call: Call, codecs: boolean): Call | Failure {
  if (!codecs) return call;
  const parsed = parseRequest(METHOD_OF[call.type].requestDeserialize(encodeCall(call)), LIMITS);
  if ('faults' in parsed) return failure('INVALID_REQUEST', parsed.faults.join('; '));
  const { ok } = parsed;
  if (ok.type !== 'acquire') return ok;
  if (ok.requestId === undefined) return failure('INVALID_REQUEST', 'the request id got lost in the request');
  return { ...ok, requestId: ok.requestId };
}

/** What the client reads of the answer to a call. */
export function replyOf(call: Call, header: Header, result: CallResult, codecs: boolean): Reply {
  switch (result.type) {
    case 'answer':
      if (codecs) return throughBytes(call, header, result.answer);
      return { type: 'answer', header: hasHeader(call) ? header : undefined, answer: result.answer, version: '' };
    case 'failure':
      return refusal(result.failure, codecs);
    case 'notLeader':
      return refusal(failure('INTERNAL', 'a call was answered by a node that does not lead'), codecs);
  }
}

/** How a failure arrives. */
export function refusal(fault: Failure, codecs: boolean): Reply {
  if (!codecs) return { type: 'failure', failure: fault, retryDelayMs: ERRORS[fault.reason].retryDelayMs };
  const { message, trailers } = failureToStatus(fault);
  const found = failureFromTrailers(message, {
    get: (key) => trailers.filter(([name]) => name === key).map(([, value]) => value),
  });
  return found === undefined ? { type: 'foreign', why: 'a failure without trailers' } : { type: 'failure', ...found };
}

function throughBytes(call: Call, header: Header, answer: Extract<CallResult, { type: 'answer' }>['answer']): Reply {
  try {
    const bytes = METHOD_OF[answer.type].responseSerialize({ header, answer, version: '' });
    return { type: 'answer', ...METHOD_OF[call.type].responseDeserialize(bytes) };
  } catch (error) {
    return { type: 'foreign', why: error instanceof Error ? error.message : String(error) };
  }
}

/** The answers to an operator's calls carry no header. */
function hasHeader(call: Call): boolean {
  return call.type !== 'forceRelease' && call.type !== 'transferLeadership' && call.type !== 'getStateHash';
}
