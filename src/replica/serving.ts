/**
 * Calls at the leader. Nothing is served before the own no-op is applied; nothing is answered as leader after this
 * node has stopped leading: its calls then go back to where they came from (S5). A pending answer needs the entry's
 * index *and* term.
 */
import { assert } from '../base/assert.js';
import type { AcquireCall, EndedView } from '../base/api.js';
import { failure } from '../base/errors.js';
import type { Reason } from '../base/errors.js';
import { revisionAt } from '../base/revision.js';
import { findRequest, leaseOf } from '../lease/lookup.js';
import type { Applied, Command, Lease, Result } from '../lease/types.js';
import { step } from '../raft/raft.js';
import type { Effect as RaftEffect } from '../raft/types.js';
import { diskIsLow } from './disk.js';
import { domainAnswer } from './local.js';
import { afterRound, renewNow, whenAnswerable } from './renewal.js';
import { failed, originKey } from './state.js';
import type { Context, Leadership, PendingEntry, Served } from './state.js';
import { transferTo } from './transfer.js';
import type { CallResult } from './types.js';
import { leaseState, leaseView } from './views.js';

/** Takes a call to serve. It is answered exactly once through `context.completed`, unless it is cancelled. */
export function serve(context: Context, leadership: Leadership, served: Served): void {
  leadership.served.set(originKey(served.origin), served);
  if (leadership.ready === undefined) leadership.waiting.push(served);
  else start(context, leadership, served);
}

/** The own no-op is applied, or a hand-over was given up: the calls that waited begin. */
export function serveWaiting(context: Context, leadership: Leadership): void {
  for (const served of leadership.waiting.splice(0)) if (!served.done) start(context, leadership, served);
}

/** Gives every open call back: this node stops leading. */
export function handBack(context: Context, leadership: Leadership): void {
  for (const served of leadership.served.values()) {
    // A hand-over that somebody asked for is answered by its own outcome.
    if (served.call.type === 'transferLeadership') continue;
    served.done = true;
    context.completed.push({
      served,
      result: { type: 'notLeader', outcome: served.proposed ? 'unknown' : 'not-done' },
    });
  }
  leadership.served.clear();
}

/** Ends a call. */
export function complete(context: Context, served: Served, result: CallResult): void {
  if (served.done) return;
  served.done = true;
  context.leadership?.served.delete(originKey(served.origin));
  context.completed.push({ served, result });
}

function start(context: Context, leadership: Leadership, served: Served): void {
  const { call } = served;
  const owner = served.principal.authenticated ? served.principal.name : '';
  switch (call.type) {
    case 'acquire':
      startAcquire(context, leadership, served, call, owner);
      return;
    case 'renew':
      renewNow(context, leadership, call.leases, served.arrivedAt, () => {
        const results = call.leases.map((ref) => leaseState(context.lease, ref));
        answer(context, served, { type: 'renew', results });
      });
      return;
    case 'release':
      propose(context, leadership, { type: 'release', ...call.lease, owner }, served);
      return;
    case 'withdraw':
      propose(context, leadership, { type: 'withdraw', domain: call.domain, requestId: call.requestId, owner }, served);
      return;
    case 'forceRelease': {
      const { domain, token, note } = call;
      propose(context, leadership, { type: 'forceRelease', domain, token, note, by: served.principal.name }, served);
      return;
    }
    case 'verify':
      afterRound(context, leadership, () => {
        answer(context, served, { type: 'verify', outcome: leaseState(context.lease, call.lease) });
      });
      return;
    case 'get':
      afterRound(context, leadership, () => {
        answer(context, served, domainAnswer(context, call.domain));
      });
      return;
    case 'transferLeadership':
      transferTo(context, served, call.to);
      return;
  }
}

function startAcquire(
  context: Context,
  leadership: Leadership,
  served: Served,
  call: AcquireCall,
  owner: string,
): void {
  const known = findRequest(context.lease, call.requestId);
  if (known === undefined && diskIsLow(context)) {
    const { diskFloorBytes } = context.options;
    refuse(
      context,
      served,
      'DISK_FULL',
      `less than ${diskFloorBytes} bytes are free on the leader or on a majority of the members`,
    );
    return;
  }
  if (known?.type === 'live') {
    // A repeated Acquire is a renewal in every rule: it moves the clock from its arrival, and waits while the lease's
    // fate is open. The entry appended for it is what confirms the answer.
    const timed = leadership.clock.timed.get(known.lease.domain);
    assert(timed?.token === known.lease.token, `live lease of ${known.lease.domain} is not timed`);
    if (timed.expiring !== undefined) {
      timed.expiring.push(() => {
        if (!served.done) startAcquire(context, leadership, served, call, owner);
      });
      return;
    }
  }
  const { domain, requestId, holder, ttlMs, metadata, seenRevision } = call;
  const atUnixMs = context.time.unixMs;
  propose(
    context,
    leadership,
    { type: 'acquire', domain, requestId, holder, ttlMs, metadata, seenRevision, atUnixMs, owner },
    served,
  );
}

function propose(context: Context, leadership: Leadership, command: Command, served: Served): void {
  const effects = step(context.raft, {
    type: 'propose',
    payload: context.codec.encode(command),
    onlyInTerm: leadership.term,
  });
  const [effect] = effects;
  assert(effects.length === 1 && effect !== undefined, 'a proposal has one immediate effect');
  if (effect.type === 'proposed') {
    served.proposed = true;
    leadership.pending.set(effect.index, { term: effect.term, command, served, resume: undefined });
    return;
  }
  rejected(context, leadership, served, effect);
}

function rejected(context: Context, leadership: Leadership, served: Served, effect: RaftEffect): void {
  assert(effect.type === 'rejected', `a proposal was answered by ${effect.type}`);
  switch (effect.reason) {
    case 'uncommittedLimit':
      refuse(
        context,
        served,
        'OVERLOADED',
        `more than ${context.options.maxUncommittedBytes} bytes wait to be committed`,
      );
      return;
    case 'unappliedLimit':
      refuse(
        context,
        served,
        'OVERLOADED',
        `more than ${context.options.maxUnappliedEntries} entries wait to be applied`,
      );
      return;
    case 'transferring':
      // Decided within an election time-out: served here then, or handed back for the next leader.
      leadership.waiting.push(served);
      return;
    case 'notLeader':
    case 'termChanged':
    case 'ownTermNotCommitted':
    case 'notVoter':
      assert(false, `a ready leader's proposal was rejected: ${effect.reason}`);
  }
}

/** An entry of this leader's term was applied: its caller is answered, as soon as that may be. */
export function answerEntry(context: Context, leadership: Leadership, entry: PendingEntry, applied: Applied): void {
  const { served } = entry;
  if (served === undefined || served.done) return;
  const { result } = applied;
  if (result.type === 'granted') answerGranted(context, leadership, served, result.lease);
  else answerResult(context, served, result);
}

/** A grant leaves only when the lease's fate is not open: after its Void, after the outcome of its Expire (F5, L2). */
function answerGranted(context: Context, leadership: Leadership, served: Served, lease: Lease): void {
  whenAnswerable(context, leadership, lease, served.arrivedAt, () => {
    const now = leaseOf(context.lease, lease.domain);
    if (now?.token === lease.token) {
      answerAcquire(context, served, { type: 'granted', lease: leaseView(now) });
      return;
    }
    const state = leaseState(context.lease, lease);
    assert(state.type === 'ended', `lease ${lease.domain} is live under another object`);
    answerAcquire(context, served, state);
  });
}

type AcquireOutcome = Extract<Extract<CallResult, { type: 'answer' }>['answer'], { type: 'acquire' }>['outcome'];

function answerAcquire(context: Context, served: Served, outcome: AcquireOutcome): void {
  assert(served.call.type === 'acquire', `a ${served.call.type} is answered as an acquire`);
  answer(context, served, { type: 'acquire', requestId: served.call.requestId, outcome });
}

function answerResult(context: Context, served: Served, result: Exclude<Result, { type: 'granted' }>): void {
  switch (result.type) {
    case 'notGranted': {
      const current = result.current === undefined ? undefined : leaseView(result.current);
      answerAcquire(context, served, { type: 'notGranted', reason: result.reason, current });
      return;
    }
    case 'ended':
      answerAcquire(context, served, { type: 'ended', ended: result.ended });
      return;
    case 'tooOld': {
      const revision = context.lease.revision;
      const message = `the request was made at a revision below ${result.forgotten}, up to which finished requests are forgotten`;
      complete(context, served, failed(failure('REQUEST_TOO_OLD', message, { revision })));
      return;
    }
    case 'reused':
      refuse(context, served, 'REQUEST_ID_REUSED', `the request id was used before with another ${result.difference}`);
      return;
    case 'released':
      answer(context, served, {
        type: 'release',
        released: result.released,
        ended: endedUnless(result.released, result.ended),
      });
      return;
    case 'withdrawn':
      answer(context, served, { type: 'withdraw' });
      return;
    case 'forceReleased':
      answer(context, served, { type: 'forceRelease', released: result.released, currentToken: result.currentToken });
      return;
    case 'done':
      assert(false, 'an internal command has no caller');
  }
}

function endedUnless(released: boolean, ended: EndedView | undefined): EndedView | undefined {
  assert(released || ended !== undefined, 'a lease that was not released has ended somehow');
  return released ? undefined : ended;
}

function answer(context: Context, served: Served, value: Extract<CallResult, { type: 'answer' }>['answer']): void {
  const revision = revisionAt(context.genesis.history, context.applied);
  complete(context, served, { type: 'answer', answer: value, revision });
}

function refuse(context: Context, served: Served, reason: Reason, message: string): void {
  complete(context, served, failed(failure(reason, message, { outcome: served.proposed ? 'unknown' : 'not-done' })));
}
