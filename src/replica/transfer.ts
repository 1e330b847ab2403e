/** Leadership hand-over that an operator asked for, or that a stopping leader begins. */
import { assert } from '../base/assert.js';
import type { NodeId } from '../base/ids.js';
import { failure } from '../base/errors.js';
import { revisionAt } from '../base/revision.js';
import { step } from '../raft/raft.js';
import { leaderOf } from '../raft/view.js';
import type { Member } from '../raft/types.js';
import { failed, log, originKey } from './state.js';
import type { Context, Served, TransferWaiter } from './state.js';

/** Begins a hand-over; answered when the new leader has applied its first entry (`newLeaderApplied`). */
export function transferTo(context: Context, served: Served, to: NodeId | undefined): void {
  const { options, raft } = context;
  const target: Member | undefined = context.genesis.members.find((member) => member.node === to);
  if (to !== undefined && target === undefined) {
    finishTransfer(context, served, failed(failure('UNKNOWN_MEMBER', `no member is named ${to}`)));
    return;
  }
  if (to === options.self.node) {
    finishTransfer(context, served, led(context, options.self.node));
    return;
  }
  const [effect] = step(raft, { type: 'transfer', to: target });
  if (effect?.type === 'rejected') {
    const message = `leadership was not handed over: ${effect.reason === 'notVoter' ? 'the target is no voter, or there is no other' : effect.reason}`;
    finishTransfer(
      context,
      served,
      failed(
        failure(effect.reason === 'notVoter' ? 'NOT_A_VOTER' : 'TRANSFER_FAILED', message, { outcome: 'not-done' }),
      ),
    );
    return;
  }
  context.transfers.push({ served, term: raft.hard.term, until: context.time.nowMs + 2 * options.electionMaxMs });
}

/** An entry of `term` was applied: hand-overs begun in earlier terms are answered with the new leader. */
export function newLeaderApplied(context: Context, term: number): void {
  if (context.transfers.length === 0) return;
  const leader = leaderOf(context.raft);
  if (leader === undefined) return;
  endTransfers(
    context,
    (waiter) => term > waiter.term,
    () => led(context, leader.node),
  );
}

/** The core gave a hand-over up. */
export function transferAborted(context: Context): void {
  log(context, 'warn', 'leadership was not handed over within an election time-out');
  endTransfers(context, (waiter) => waiter.term === context.raft.hard.term, timedOut);
}

/** Ends what waited too long. Called at each tick. */
export function scanTransfers(context: Context): void {
  endTransfers(context, (waiter) => waiter.until <= context.time.nowMs, timedOut);
}

/** A stopping leader hands over to the voter furthest ahead, unless it does so already. False when there is nobody. */
export function transferBeforeStop(context: Context): boolean {
  const [effect] = step(context.raft, { type: 'transfer', to: undefined });
  if (effect?.type !== 'rejected' || effect.reason === 'transferring') return true;
  log(context, 'warn', 'stopping without handing leadership over', { reason: effect.reason });
  return false;
}

function endTransfers(
  context: Context,
  ends: (waiter: TransferWaiter) => boolean,
  result: () => Parameters<typeof finishTransfer>[2],
): void {
  const over = context.transfers.filter(ends);
  if (over.length === 0) return;
  context.transfers = context.transfers.filter((waiter) => !over.includes(waiter));
  for (const { served } of over) finishTransfer(context, served, result());
}

function timedOut(): ReturnType<typeof failed> {
  return failed(failure('TRANSFER_FAILED', 'no new leader has applied an entry within the time of a hand-over'));
}

function led(context: Context, leader: NodeId): Context['completed'][number]['result'] {
  const revision = revisionAt(context.genesis.history, context.applied);
  return { type: 'answer', answer: { type: 'transferLeadership', leader }, revision };
}

function finishTransfer(context: Context, served: Served, result: Context['completed'][number]['result']): void {
  assert(served.call.type === 'transferLeadership', `a ${served.call.type} ends as a hand-over`);
  if (served.done) return;
  served.done = true;
  context.leadership?.served.delete(originKey(served.origin));
  context.completed.push({ served, result });
}
