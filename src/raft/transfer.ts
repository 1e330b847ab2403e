import { assert } from '../base/assert.js';
import { inForce } from './configuration.js';
import { lastIndexOf } from './log.js';
import { keyOf } from './member.js';
import type { Peer } from './progress.js';
import { emit, send } from './state.js';
import type { Leading, Raft } from './state.js';
import type { Member } from './types.js';

/** Begins to hand leadership to `to`, or to the voter furthest ahead. From here to its end proposals are refused (E9). */
export function startHandover(raft: Raft, to: Member | undefined): void {
  const { role } = raft;
  if (role.type !== 'leader') {
    emit(raft, { type: 'rejected', reason: 'notLeader' });
    return;
  }
  if (role.handover !== undefined) {
    emit(raft, { type: 'rejected', reason: 'transferring' });
    return;
  }
  if (to !== undefined && keyOf(to) === raft.key) {
    // Leadership is already where it shall be.
    emit(raft, { type: 'transferAborted' });
    return;
  }
  const target = to === undefined ? furthestVoter(raft, role) : role.peers.get(keyOf(to));
  if (target === undefined || !mayLead(raft, target)) {
    emit(raft, { type: 'rejected', reason: 'notVoter' });
    return;
  }
  const deadline = raft.ticks + raft.options.electionMinTicks;
  role.handover = { to: target.member, key: target.key, deadline, sent: false };
}

/** Sends `timeoutNow` once the target holds everything. */
export function settleHandover(raft: Raft, leading: Leading): void {
  const { handover } = leading;
  if (handover === undefined || handover.sent) return;
  const target = leading.peers.get(handover.key);
  assert(target !== undefined, `the target ${handover.key} of a hand-over is not listed`);
  if (target.match < lastIndexOf(raft.log)) return;
  handover.sent = true;
  send(raft, { type: 'timeoutNow', from: raft.options.self, to: handover.to, term: raft.hard.term });
}

/** Gives up a hand-over that took a least election time-out: the leader serves again. */
export function tickHandover(raft: Raft, leading: Leading): void {
  if (leading.handover === undefined || raft.ticks < leading.handover.deadline) return;
  leading.handover = undefined;
  emit(raft, { type: 'transferAborted' });
}

function mayLead(raft: Raft, peer: Peer): boolean {
  return inForce(raft.configurations).configuration.voters.some((voter) => keyOf(voter) === peer.key);
}

/** Greatest match; of equals the one heard last, then the first by key. */
function furthestVoter(raft: Raft, leading: Leading): Peer | undefined {
  let best: Peer | undefined;
  for (const peer of leading.peers.values()) {
    if (!mayLead(raft, peer)) continue;
    if (best === undefined || peer.match > best.match || (peer.match === best.match && peer.heardAt > best.heardAt)) {
      best = peer;
    }
  }
  return best;
}
