import { assert } from '../base/assert.js';
import { inForce } from './configuration.js';
import type { Peer } from './progress.js';
import { quorumValue } from './quorum.js';
import { emit, send } from './state.js';
import type { Leading, Raft } from './state.js';
import type { HeartbeatReply } from './types.js';

/**
 * Joins the next confirmation round. Never the one under way: it was sent before this request came, so an answer to it
 * proves nothing about the time after (RD2, RD3). Without a committed entry of the own term the leader does not know
 * what is committed (RD1).
 */
export function requestRound(raft: Raft): void {
  const { role } = raft;
  if (role.type !== 'leader') {
    emit(raft, { type: 'rejected', reason: 'notLeader' });
  } else if (raft.commit < role.termStart) {
    emit(raft, { type: 'rejected', reason: 'ownTermNotCommitted' });
  } else {
    role.rounds.wanted = true;
    emit(raft, { type: 'pendingRound', round: role.rounds.issued + 1 });
  }
}

/** Starts the next round if somebody waits for it and none is under way. */
export function settleRounds(raft: Raft, leading: Leading): void {
  const { rounds } = leading;
  if (!rounds.wanted || rounds.confirmed < rounds.issued) return;
  rounds.wanted = false;
  rounds.issued++;
  sendHeartbeats(raft, leading);
  confirmRounds(raft, leading);
}

/** Counts the answer of one member. Only answers of this term get here; the caller has checked. */
export function countRound(raft: Raft, leading: Leading, peer: Peer, message: HeartbeatReply): void {
  assert(message.term === raft.hard.term, `a reply of term ${message.term} would confirm a round of ${raft.hard.term}`);
  if (message.round > leading.rounds.issued) return;
  peer.round = Math.max(peer.round, message.round);
  confirmRounds(raft, leading);
}

/** The leader counts itself where it is a voter, at once: it knows that it has not voted in a higher term. */
function confirmRounds(raft: Raft, leading: Leading): void {
  const { rounds } = leading;
  const answered = quorumValue(inForce(raft.configurations).halves, (voter) =>
    voter === raft.key ? rounds.issued : (leading.peers.get(voter)?.round ?? 0),
  );
  assert(answered <= rounds.issued, `round ${answered} was answered, the newest is ${rounds.issued}`);
  if (answered <= rounds.confirmed) return;
  rounds.confirmed = answered;
  emit(raft, { type: 'confirmed', round: answered });
}

/** Sends a heartbeat with the newest round to everybody; repeats a round whose messages were lost (RD5). */
export function sendHeartbeats(raft: Raft, leading: Leading): void {
  leading.heartbeatElapsed = 0;
  const { self: from } = raft.options;
  for (const { member: to, match } of leading.peers.values()) {
    const commit = Math.min(match, raft.commit);
    send(raft, { type: 'heartbeat', from, to, term: raft.hard.term, commit, round: leading.rounds.issued });
  }
}
