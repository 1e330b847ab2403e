/**
 * Calls at the leader. Nothing is served before the own no-op is applied; nothing is answered as leader after this
 * node has stopped leading: its calls then go back to where they came from (S5). A pending answer needs the entry's
 * index *and* term.
 */
import { assert } from '../base/assert.js';
import { nameOf } from '../base/domain.js';
import type { Domain } from '../base/ids.js';
import { differenceOf } from '../lease/acquire.js';
import type { Command, Passing, Stamped } from '../lease/commands.js';
import { findRequest } from '../lease/lookup.js';
import type { Applied } from '../lease/types.js';
import type { Effect as RaftEffect } from '../raft/types.js';
import { leaseState } from './views.js';
import { answer, answerGranted, answerResult, refuse, refuseReuse } from './answers.js';
import { timedOf } from './clock.js';
import { diskIsLow } from './disk.js';
import { stateChange } from './limits.js';
import { domainAnswer, listAnswer } from './local.js';
import { passedOver } from './passing.js';
import { acquireBytes, acquireCommand, ownerOf, tryPropose } from './proposing.js';
import { afterRound, renewNow } from './renewal.js';
import { originKey } from './state.js';
import type { Context, Leadership, PendingEntry, Served } from './state.js';
import { transferTo } from './transfer.js';
import { holdCall } from './waiting.js';

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
    case 'changeLimits': {
      const command = { type: 'limits', change: stateChange(call.change), by: served.principal.name } as const;
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
      const timed = timedOf(leadership.clock, known.lease);
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

/** What every command that may free `domain` carries. */
function freeing(context: Context, leadership: Leadership, domain: Domain): Passing & Stamped {
  return { detached: passedOver(context, leadership, nameOf(domain)), atUnixMs: context.time.unixMs };
}

function propose(context: Context, leadership: Leadership, command: Command, served: Served): void {
  const effect = tryPropose(context, leadership, command, served);
  if (effect.type !== 'proposed') rejected(context, leadership, served, effect);
}

function rejected(context: Context, leadership: Leadership, served: Served, effect: RaftEffect): void {
  assert(effect.type === 'rejected', `a proposal was answered by ${effect.type}`);
  switch (effect.reason) {
    case 'uncommittedLimit': {
      const most = context.options.maxUncommittedBytes;
      const limit =
        served.call.type === 'acquire'
          ? `${acquireBytes(context)} bytes wait to be committed, of ${most} at most: acquires are refused first`
          : `${most} bytes wait to be committed`;
      refuse(context, served, 'OVERLOADED', `more than ${limit}`);
      return;
    }
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
