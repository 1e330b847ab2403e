/** One unary call: checked, handed to the replica, answered. Nothing here decides anything about leases. */
import { randomUUID } from 'node:crypto';
import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js';
import type { Call, GetStatusAnswer, Header } from '../base/api.js';
import { assert } from '../base/assert.js';
import { failure } from '../base/errors.js';
import type { Failure } from '../base/errors.js';
import type { NodeId, RequestId } from '../base/ids.js';
import { DEFAULT_CALL_MS, MAX_CALL_MS } from '../base/limits.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { CallResult } from '../replica/types.js';
import type { PublicResponse } from '../wire/public-answer.js';
import { parseRequest } from '../wire/public-parse.js';
import type { ParsedCall, TtlLimits } from '../wire/public-parse.js';
import type { WireRequest } from '../wire/public-types.js';
import type { CallTable } from './call-table.js';
import { principalOf } from './principal.js';
import { endOf } from './status.js';
import type { WatchTable } from './watch-table.js';

/** What every call needs to know of the node. */
export interface HandlerContext {
  readonly node: NodeId;
  readonly cluster: string;
  readonly version: string;
  readonly limits: TtlLimits;
  readonly calls: CallTable;
  readonly watches: WatchTable;
  /** True when the node has applied that the request is in a queue. */
  readonly isWaiting: (request: RequestId) => boolean;
  /** What a node that has not formed or joined yet waits for; one line each. */
  readonly waitingFor: () => readonly string[];
}

type Respond = sendUnaryData<PublicResponse>;

/** The handler of every method. It never throws: an unexpected error is answered INTERNAL, and told to `report`. */
export function createHandler(
  context: HandlerContext,
  report: (error: unknown) => void,
): (call: ServerUnaryCall<WireRequest, PublicResponse>, respond: Respond) => void {
  return (call, respond) => {
    const guarded = (work: () => void): void => {
      try {
        work();
      } catch (error) {
        report(error);
        fail(respond, failure('INTERNAL', 'an unexpected error; the log of this node has it'));
      }
    };
    guarded(() => {
      handle(context, call, respond, guarded);
    });
  };
}

function handle(
  context: HandlerContext,
  incoming: ServerUnaryCall<WireRequest, PublicResponse>,
  respond: Respond,
  guarded: (work: () => void) => void,
): void {
  const parsed = parseRequest(incoming.request, context.limits);
  if ('faults' in parsed) {
    fail(respond, failure('INVALID_REQUEST', parsed.faults.join('; ')));
    return;
  }
  const call = withRequestId(parsed.ok);
  if (!context.calls.attached) {
    answerUnformed(context, call, respond);
    return;
  }
  const principal = principalOf(incoming.getPeer());
  const timeoutMs = timeLeftMs(incoming.getDeadline());
  const id = context.calls.open(principal, timeoutMs, call, (header, result) => {
    // Runs inside the replica's turn. A wrong answer is a defect and ends the node; one that cannot be sent does not.
    if (result.type === 'answer') {
      assert(result.answer.type === call.type, `a call of ${call.type} was answered by ${result.answer.type}`);
    }
    guarded(() => {
      respondWith(context, header, result, respond);
    });
  });
  incoming.on('cancelled', () => {
    context.calls.cancel(id);
  });
}

function respondWith(context: HandlerContext, header: Header, result: CallResult, respond: Respond): void {
  switch (result.type) {
    case 'answer':
      respond(null, { header, answer: result.answer, version: context.version });
      return;
    case 'failure':
      fail(respond, result.failure);
      return;
    case 'notLeader':
      // Routing keeps this between nodes.
      fail(respond, failure('INTERNAL', 'a call was answered by a node that does not lead'));
  }
}

/** The node makes the id when the client sent none; its answer brings it. */
function withRequestId(call: ParsedCall): Call {
  if (call.type !== 'acquire') return call;
  return { ...call, requestId: call.requestId ?? (randomUUID() as RequestId) };
}

/**
 * What is left of a deadline; a call without one gets the default, a far one is cut. A deadline that is over is ended
 * by grpc-js itself.
 */
function timeLeftMs(deadline: Date | number): number {
  const at = typeof deadline === 'number' ? deadline : deadline.getTime();
  if (!Number.isFinite(at)) return DEFAULT_CALL_MS;
  return Math.min(MAX_CALL_MS, Math.max(1, at - Date.now()));
}

/** What everything but the status is answered before there is a history. */
export function notFormed({ node, waitingFor }: HandlerContext): Failure {
  const waits = waitingFor().join('; ');
  return failure('NOT_FORMED', `node ${node} belongs to no history yet: ${waits || 'it is starting'}`);
}

/** Status always answers; everything else needs a history. */
function answerUnformed(context: HandlerContext, call: Call, respond: Respond): void {
  if (call.type !== 'getStatus') {
    fail(respond, notFormed(context));
    return;
  }
  const header = unformedHeader(context);
  const answer: GetStatusAnswer = {
    type: 'getStatus',
    node: context.node,
    leader: undefined,
    role: 'stopped',
    term: 0,
    base: ZERO_REVISION,
    lastRevision: ZERO_REVISION,
    durableRevision: ZERO_REVISION,
    committedRevision: ZERO_REVISION,
    appliedRevision: ZERO_REVISION,
    members: [],
    alarms: context.waitingFor(),
    limits: undefined,
  };
  respond(null, { header, answer, version: context.version });
}

/** What a node says of itself without a history, or without asking it. */
export function unformedHeader({ cluster, node }: HandlerContext): Header {
  return { cluster, incarnation: '', revision: ZERO_REVISION, node, leader: undefined };
}

function fail(respond: Respond, fault: Failure): void {
  respond(endOf(fault));
}
