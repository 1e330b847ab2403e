/**
 * Calls at the leader. Nothing is served before the own no-op is applied; nothing is answered as leader after this
 * node has stopped leading: its calls then go back to where they came from (S5). A pending answer needs the entry's
 * index *and* term.
 */
import { assert } from '../base/assert.js';
import type { AcquireCall, EndedView, NotGrantedReason } from '../base/api.js';
import { nameOf } from '../base/domain.js';
import type { Domain } from '../base/ids.js';
import { failure } from '../base/errors.js';
import type { Reason } from '../base/errors.js';
import { revisionAt } from '../base/revision.js';
import type { AcquireCommand } from '../lease/acquire.js';
import { differenceOf } from '../lease/acquire.js';
import type { Command, Passing, Stamped } from '../lease/commands.js';
import { findRequest, leaseOf, queueOf } from '../lease/lookup.js';
import type { Applied, Lease, Result } from '../lease/types.js';
import { step } from '../raft/raft.js';
import type { Effect as RaftEffect } from '../raft/types.js';
import { coolDownLeftMs } from './cooling.js';
import { diskIsLow } from './disk.js';
import { domainAnswer, listAnswer } from './local.js';
import { countFreeing, freedBy, passedOver } from './passing.js';
import { afterRound, renewNow, whenAnswerable } from './renewal.js';
import { failed, originKey } from './state.js';
import type { Context, Leadership, PendingEntry, Served } from './state.js';
import { transferTo } from './transfer.js';
import type { CallResult } from './types.js';
import { leaseState, leaseView } from './views.js';
import { holdCall, letGo } from './waiting.js';

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
  abandon(context, served);
  context.completed.push({ served, result });
}

/** Its caller has gone, or it is being answered: whoever still waits for the call drops it. */
export function abandon(context: Context, served: Served): void {
  served.done = true;
  const { leadership } = context;
  if (leadership === undefined) return;
  leadership.served.delete(originKey(served.origin));
  letGo(context, leadership, served);
}

function start(context: Context, leadership: Leadership, served: Served): void {
  const { call } = served;
  const owner = ownerOf(served);
  switch (call.type) {
    case 'acquire':
      startAcquire(context, leadership, served);
      return;
    case 'renew':
      renewNow(context, leadership, call.leases, served.arrivedAt, () => {
        const results = call.leases.map((ref) => leaseState(context.lease, ref));
        answer(context, served, { type: 'renew', results });
      });
      return;
    case 'release':
      propose(
        context,
        leadership,
        { type: 'release', ...call.lease, owner, ...freeing(context, leadership, call.lease.domain) },
        served,
      );
      return;
    case 'withdraw': {
      const { domain, requestId } = call;
      const command = { type: 'withdraw', domain, requestId, owner, ...freeing(context, leadership, domain) } as const;
      propose(context, leadership, command, served);
      return;
    }
    case 'forceRelease': {
      const { domain, token, note } = call;
      const by = served.principal.name;
      const command = {
        type: 'forceRelease',
        domain,
        token,
        note,
        by,
        ...freeing(context, leadership, domain),
      } as const;
      propose(context, leadership, command, served);
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
    case 'list':
      afterRound(context, leadership, () => {
        answer(context, served, listAnswer(context, call));
      });
      return;
    case 'transferLeadership':
      transferTo(context, served, call.to);
      return;
  }
}

/** Starts an acquire, or starts it again once what it waited for is decided. */
export function startAcquire(context: Context, leadership: Leadership, served: Served): void {
  const { call } = served;
  assert(call.type === 'acquire', `a ${call.type} is started as an acquire`);
  if (waitsForItsEnd(context, leadership, served)) return;
  const known = findRequest(context.lease, call.requestId);
  switch (known?.type) {
    case undefined:
      if (diskIsLow(context)) {
        const floor = context.options.diskFloorBytes;
        const message = `less than ${floor} bytes are free on the leader or on a majority of the members`;
        refuse(context, served, 'DISK_FULL', message);
        return;
      }
      break;
    case 'live': {
      // A repeated Acquire is a renewal in every rule: it moves the clock from its arrival, and waits while the lease's
      // fate is open. The entry appended for it is what confirms the answer.
      const timed = leadership.clock.timed.get(known.lease.domain);
      assert(timed?.token === known.lease.token, `live lease of ${known.lease.domain} is not timed`);
      if (timed.expiring !== undefined) {
        timed.expiring.push(() => {
          startAgain(context, leadership, served);
        });
        return;
      }
      break;
    }
    case 'waiting': {
      // Needs no entry: it claims nothing. If its domain is free, its entry is proposed from the queue.
      const difference = differenceOf(context.lease, acquireCommand(context, served, call), known);
      if (difference === undefined) holdCall(context, leadership, served, known.waiter);
      else refuseReuse(context, served, difference);
      return;
    }
    case 'finished':
      break;
  }
  propose(context, leadership, acquireCommand(context, served, call), served);
}

/** While an EndWait of its id is open a call is answered nothing: it is started again with the outcome (F7). */
function waitsForItsEnd(context: Context, leadership: Leadership, served: Served): boolean {
  if (served.call.type !== 'acquire') return false;
  const ending = leadership.waits.attachments.get(served.call.requestId)?.ending;
  ending?.waiting.push(() => {
    startAgain(context, leadership, served);
  });
  return ending !== undefined;
}

function startAgain(context: Context, leadership: Leadership, served: Served): void {
  if (!served.done) startAcquire(context, leadership, served);
}

/** Proposes the acquire of a call that is held for a waiter; false when it was not taken. */
export function proposeAcquire(context: Context, leadership: Leadership, served: Served): boolean {
  assert(served.call.type === 'acquire', `a ${served.call.type} is proposed as an acquire`);
  const command = acquireCommand(context, served, served.call);
  return tryPropose(context, leadership, command, served).type === 'proposed';
}

function acquireCommand(context: Context, served: Served, call: AcquireCall): AcquireCommand {
  const { domain, requestId, holder, ttlMs, waitMs, metadata, coolDownMs, slots, seenRevision } = call;
  const { principal } = served;
  return {
    type: 'acquire',
    domain,
    requestId,
    holder,
    ttlMs,
    waitMs,
    metadata,
    coolDownMs,
    slots,
    seenRevision,
    atUnixMs: context.time.unixMs,
    owner: ownerOf(served),
    principal: principal.name,
  };
}

/** Whom a request id is bound to; '' for nobody. */
function ownerOf({ principal }: Served): string {
  return principal.authenticated ? principal.name : '';
}

/** What every command that may free `domain` carries. */
function freeing(context: Context, leadership: Leadership, domain: Domain): Passing & Stamped {
  return { detached: passedOver(context, leadership, nameOf(domain)), atUnixMs: context.time.unixMs };
}

function propose(context: Context, leadership: Leadership, command: Command, served: Served): void {
  const effect = tryPropose(context, leadership, command, served);
  if (effect.type !== 'proposed') rejected(context, leadership, served, effect);
}

function tryPropose(context: Context, leadership: Leadership, command: Command, served: Served): RaftEffect {
  const effects = step(context.raft, {
    type: 'propose',
    payload: context.codec.encode(command),
    onlyInTerm: leadership.term,
  });
  const [effect] = effects;
  assert(effects.length === 1 && effect !== undefined, 'a proposal has one immediate effect');
  if (effect.type === 'proposed') {
    served.proposed = true;
    const frees = freedBy(command);
    leadership.pending.set(effect.index, { term: effect.term, command, served, resume: undefined, frees });
    countFreeing(leadership, frees, 1);
  }
  return effect;
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
  // A second entry of an id may have been on its way when its EndWait was proposed: that takes the grant back.
  if (result.type === 'granted' && waitsForItsEnd(context, leadership, served)) return;
  if (result.type === 'granted') answerGranted(context, leadership, served, result.lease);
  else if (result.type === 'queued') holdCall(context, leadership, served, result.waiter);
  else answerResult(context, served, result);
}

/** A grant leaves only when the lease's fate is not open: after its Void, after the outcome of its Expire (F5, L2). */
export function answerGranted(context: Context, leadership: Leadership, served: Served, lease: Lease): void {
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

/** Answers an acquire. */
export function answerAcquire(context: Context, served: Served, outcome: AcquireOutcome): void {
  assert(served.call.type === 'acquire', `a ${served.call.type} is answered as an acquire`);
  answer(context, served, { type: 'acquire', requestId: served.call.requestId, outcome });
}

function answerResult(context: Context, served: Served, result: Exclude<Result, { type: 'granted' | 'queued' }>): void {
  switch (result.type) {
    case 'notGranted':
      answerNotGranted(context, served, result.reason, result.current);
      return;
    case 'overQuota': {
      const { of, what, limit } = result;
      refuse(context, served, 'QUOTA_EXCEEDED', `${of} has as many ${what} as it may: ${limit}`);
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
      refuseReuse(context, served, result.difference);
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

/** Not granted, with what is in the way as the state has it now. */
export function answerNotGranted(
  context: Context,
  served: Served,
  reason: NotGrantedReason,
  current: Lease | undefined,
): void {
  assert(served.call.type === 'acquire', `a ${served.call.type} is answered as an acquire`);
  const { domain } = served.call;
  answerAcquire(context, served, {
    type: 'notGranted',
    reason,
    current: current === undefined ? undefined : leaseView(current),
    queueLength: queueOf(context.lease, domain).length,
    coolDownLeftMs: coolDownLeftMs(context, domain),
  });
}

function refuseReuse(context: Context, served: Served, difference: string): void {
  refuse(context, served, 'REQUEST_ID_REUSED', `the request id was used before with another ${difference}`);
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
