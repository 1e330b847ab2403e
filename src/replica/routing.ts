/**
 * Calls at the node that took them (design 8, "Any node takes any call"): passed to the leader, passed on again when
 * the leader changes, held while there is none, always answered once and before their deadline.
 */
import { assert } from '../base/assert.js';
import type { Call, ForwardableCall } from '../base/api.js';
import { failure } from '../base/errors.js';
import type { Failure, Reason } from '../base/errors.js';
import { ACQUIRE_SHARE, ANSWER_BEFORE_DEADLINE_MS, HOLD_WITHOUT_LEADER_MS, MAX_HOLD_MS } from '../base/limits.js';
import type { NodeId } from '../base/ids.js';
import { revisionAt } from '../base/revision.js';
import { commitIndex, lastIndex, leaderOf } from '../raft/view.js';
import { dropDue, setDue, takeDue } from './due.js';
import { abandon } from './answers.js';
import { serve } from './serving.js';
import { answerHere } from './local.js';
import { failed } from './state.js';
import { headerOf } from './header.js';
import type { Context, EntryCall, Served } from './state.js';
import type { CallId, CallResult, Event } from './types.js';

/** How long a call waits before it is passed again to a node that said it does not lead. */
const RETRY_FORWARD_MS = 20;

/**
 * A queued acquire is held until the moment at which other calls are given up. Its own call is given up only when this part
 * of the time left then has passed: the answer of a leader elsewhere has to come back first.
 */
const HOLD_MARGIN = 0.4;

/** Not repeated by a node: what an operator is not sure of is looked at first. */
const OPERATORS_CALLS: ReadonlySet<Call['type']> = new Set(['forceRelease', 'transferLeadership', 'changeLimits']);

/** A client's call arrived. */
export function takeCall(context: Context, event: Extract<Event, { type: 'call' }>): void {
  const { id, principal, timeoutMs, call } = event;
  assert(!context.calls.has(id), `call ${id} is open already`);
  const here = answerHere(context, call);
  if (here !== undefined) {
    deliver(context, id, here);
    return;
  }
  if (context.stopping !== undefined) {
    fail(context, id, 'SHUTTING_DOWN', `node ${context.options.self.node} is stopping; call another node`, 'not-done');
    return;
  }
  const { nowMs } = context.time;
  const marginMs = Math.min(ANSWER_BEFORE_DEADLINE_MS, timeoutMs / 4);
  const answerBy = nowMs + timeoutMs - marginMs;
  const entry: EntryCall = {
    id,
    principal,
    call: stamped(context, call as ForwardableCall),
    answerBy,
    giveUpAt: call.type === 'acquire' ? answerBy + marginMs * HOLD_MARGIN : answerBy,
    deadline: nowMs + timeoutMs,
    holdUntil: holdUntil(call, nowMs, answerBy),
    attempted: false,
    at: { type: 'held', since: nowMs, notBefore: nowMs },
    dueAt: Infinity,
  };
  context.calls.set(id, entry);
  context.held++;
  route(context, entry);
}

/** How long an acquire that is queued may be held. */
function holdUntil(call: Call, now: number, answerBy: number): number {
  return call.type === 'acquire' ? Math.min(now + call.ttlMs / 2, now + MAX_HOLD_MS, answerBy) : now;
}

/** Fills in the greatest revision this node knows, once, where the client said none (design 7, F6). */
function stamped(context: Context, call: ForwardableCall): ForwardableCall {
  if (call.type !== 'acquire' || call.seenRevision > 0) return call;
  return { ...call, seenRevision: revisionAt(context.genesis.history, commitIndex(context.raft)) };
}

/** Sends a held call where it can be served, or leaves it held within the limits. */
export function route(context: Context, entry: EntryCall): void {
  pass(context, entry);
  if (context.calls.get(entry.id) === entry) setDue(context.callsDue, entry, lookAt(entry, context.time.nowMs));
}

/** When this node has to look at a call again: to give it up, or to pass it again to a node that said it does not lead. */
function lookAt({ at, answerBy, giveUpAt }: EntryCall, now: number): number {
  if (at.type !== 'held') return giveUpAt;
  const until = Math.min(answerBy, at.since + HOLD_WITHOUT_LEADER_MS);
  return at.notBefore > now ? Math.min(at.notBefore, until) : until;
}

function pass(context: Context, entry: EntryCall): void {
  const { at } = entry;
  assert(at.type === 'held', `call ${entry.id} is routed while ${at.type}`);
  const { nowMs } = context.time;
  const { leadership } = context;
  if (leadership !== undefined) {
    const served: Served = {
      origin: { type: 'own', id: entry.id },
      principal: entry.principal,
      call: entry.call,
      arrivedAt: nowMs,
      arrivedBehind: lastIndex(context.raft),
      holdUntil: entry.holdUntil,
      proposed: false,
      done: false,
    };
    context.held--;
    entry.at = { type: 'served', served };
    serve(context, leadership, served);
    return;
  }
  const leader = leaderOf(context.raft);
  if (leader !== undefined && leader.node !== context.options.self.node && at.notBefore <= nowMs) {
    context.held--;
    entry.at = { type: 'forwarded', to: leader.node };
    const { id, principal, call } = entry;
    context.out.push({
      type: 'forward',
      to: leader.node,
      id,
      term: context.raft.hard.term,
      principal,
      timeoutMs: Math.max(1, entry.deadline - nowMs),
      holdMs: Math.max(0, entry.holdUntil - nowMs),
      call,
    });
    return;
  }
  const { maxHeldCalls } = context.options;
  const most = entry.call.type === 'acquire' ? Math.ceil(maxHeldCalls * ACQUIRE_SHARE) : maxHeldCalls;
  if (context.held > most) {
    finish(context, entry.id);
    fail(
      context,
      entry.id,
      'TOO_MANY_HELD_CALLS',
      `node ${context.options.self.node} knows no leader and holds ${most} calls already`,
      entry.attempted ? 'unknown' : 'not-done',
    );
  }
}

/** Routes all held calls: the leader has become known, or this node leads. Those passed to another node are taken back. */
export function routeAll(context: Context): void {
  const leader = leaderOf(context.raft)?.node;
  const leads = context.leadership !== undefined;
  for (const entry of context.calls.values()) {
    // A hand-over is answered by the leader that began it, once there is a new one.
    if (entry.call.type === 'transferLeadership' && entry.at.type !== 'held') continue;
    if (entry.at.type === 'forwarded' && (leads || (leader !== undefined && entry.at.to !== leader))) {
      context.out.push({ type: 'forwardCancel', to: entry.at.to, id: entry.id });
      takeBack(context, entry, 'unknown', context.time.nowMs);
    } else if (entry.at.type === 'held') route(context, entry);
  }
}

/** What a passed call came back with. */
export function takeForwardResult(context: Context, from: NodeId, id: CallId, result: CallResult): void {
  const entry = context.calls.get(id);
  if (entry?.at.type !== 'forwarded' || entry.at.to !== from) return;
  if (result.type === 'notLeader') takeBack(context, entry, result.outcome, context.time.nowMs + RETRY_FORWARD_MS);
  else conclude(context, entry, result);
}

/** The forward stream to `node` ended: what was under way there is passed on again, or ends as unknown. */
export function forwardLost(context: Context, node: NodeId): void {
  for (const entry of context.calls.values()) {
    if (entry.at.type === 'forwarded' && entry.at.to === node)
      takeBack(context, entry, 'unknown', context.time.nowMs + RETRY_FORWARD_MS);
  }
}

/**
 * A call that was elsewhere, with that outcome, is this node's to route again, with its id, stamp and time left (S5). An
 * operator's call is not repeated: it ends as unknown.
 */
function takeBack(context: Context, entry: EntryCall, outcome: Failure['outcome'], notBefore: number): void {
  assert(entry.at.type !== 'held', `call ${entry.id} is taken back while held`);
  if (outcome === 'unknown') entry.attempted = true;
  if (OPERATORS_CALLS.has(entry.call.type)) {
    finish(context, entry.id);
    fail(
      context,
      entry.id,
      'LEADER_CHANGED',
      'the leader changed while the call was under way; see what became of it, then repeat',
      'unknown',
    );
    return;
  }
  entry.at = { type: 'held', since: context.time.nowMs, notBefore };
  context.held++;
  route(context, entry);
}

/** The client has gone. */
export function cancelCall(context: Context, id: CallId): void {
  const entry = context.calls.get(id);
  if (entry === undefined) return;
  finish(context, id);
  if (entry.at.type === 'forwarded') context.out.push({ type: 'forwardCancel', to: entry.at.to, id });
  if (entry.at.type === 'served') abandon(context, entry.at.served);
}

/** Ends calls whose time is over, tries held ones again. Called at each tick. */
export function scanCalls(context: Context): void {
  const { nowMs } = context.time;
  for (const entry of takeDue(context.callsDue, nowMs, Infinity)) {
    const { at } = entry;
    const heldTooLong = at.type === 'held' && nowMs - at.since >= HOLD_WITHOUT_LEADER_MS;
    if (nowMs >= (at.type === 'held' ? entry.answerBy : entry.giveUpAt) || heldTooLong) {
      const mayBeInLog = at.type === 'forwarded' || (at.type === 'served' && at.served.proposed);
      const outcome = entry.attempted || mayBeInLog ? 'unknown' : 'not-done';
      cancelCall(context, entry.id);
      const waited = heldTooLong ? `for ${HOLD_WITHOUT_LEADER_MS} ms` : 'until shortly before its deadline';
      fail(
        context,
        entry.id,
        'NO_LEADER',
        `node ${context.options.self.node} held the call ${waited} and no leader answered it`,
        outcome,
      );
    } else if (at.type === 'held') route(context, entry);
  }
}

/** Hands the results of served calls back: to this node's clients, or to the nodes that passed them on. */
export function returnResults(context: Context): void {
  // What is answered may complete more; taken as a whole, because thousands of shifts of a long array are slow.
  while (context.completed.length > 0) {
    for (const { served, result } of context.completed.splice(0)) {
      const { origin } = served;
      if (origin.type === 'own') answerOwn(context, origin.id, result);
      else context.out.push({ type: 'forwardResult', to: origin.node, id: origin.id, result });
    }
  }
}

function answerOwn(context: Context, id: CallId, result: CallResult): void {
  const entry = context.calls.get(id);
  if (entry === undefined) return;
  if (result.type === 'notLeader') {
    takeBack(context, entry, result.outcome, context.time.nowMs);
    return;
  }
  conclude(context, entry, result);
}

/** Answers a call. A refusal says nothing of an earlier attempt, which may have reached a log. */
function conclude(context: Context, entry: EntryCall, result: CallResult): void {
  finish(context, entry.id);
  if (result.type === 'failure' && entry.attempted)
    deliver(context, entry.id, failed({ ...result.failure, outcome: 'unknown' }));
  else deliver(context, entry.id, result);
}

function finish(context: Context, id: CallId): void {
  const entry = context.calls.get(id);
  if (entry === undefined) return;
  if (entry.at.type === 'held') context.held--;
  context.calls.delete(id);
  dropDue(context.callsDue, entry);
}

function deliver(context: Context, id: CallId, result: CallResult): void {
  context.out.push({ type: 'answer', id, header: headerOf(context, result), result });
}

function fail(context: Context, id: CallId, reason: Reason, message: string, outcome: 'not-done' | 'unknown'): void {
  deliver(context, id, failed(failure(reason, message, { outcome })));
}
