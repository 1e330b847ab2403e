import { assert } from '../base/assert.js';
import { onNotMember, onPreVote, onPreVoteReply, onTimeoutNow, onVote, onVoteReply } from './election.js';
import { answerPast, onAppend, onHeartbeat, onInstallSnapshot } from './follower.js';
import { sameMember } from './member.js';
import { onAppendReply, onHeartbeatReply } from './replication.js';
import { becomeFollower } from './role.js';
import type { Raft } from './state.js';
import type { AppendReply, HeartbeatReply, Message, VoteReply } from './types.js';

/** A message of another member: applies the rules about terms (paper 5.1), then hands it on. */
export function receive(raft: Raft, message: Message): void {
  // Meant for a directory that this node no longer has: to answer would count for a pair that is gone (F10).
  if (!sameMember(message.to, raft.options.self)) return;
  assert(!sameMember(message.from, raft.options.self), `a ${message.type} came from this member itself`);
  switch (message.type) {
    // These may carry a term that nobody is in, or must not move this member by it.
    case 'preVote':
      onPreVote(raft, message);
      return;
    case 'preVoteReply':
      onPreVoteReply(raft, message);
      return;
    case 'vote':
      onVote(raft, message);
      return;
    case 'timeoutNow':
      onTimeoutNow(raft, message);
      return;
    case 'notMember':
      onNotMember(raft, message);
      return;
    case 'append':
    case 'heartbeat':
    case 'installSnapshot':
      if (message.term < raft.hard.term) {
        answerPast(raft, message);
        return;
      }
      if (message.term > raft.hard.term) becomeFollower(raft, message.term, message.from);
      if (message.type === 'append') onAppend(raft, message);
      else if (message.type === 'heartbeat') onHeartbeat(raft, message);
      else onInstallSnapshot(raft, message);
      return;
    case 'voteReply':
    case 'appendReply':
    case 'heartbeatReply':
      receiveReply(raft, message);
  }
}

function receiveReply(raft: Raft, message: VoteReply | AppendReply | HeartbeatReply): void {
  if (message.term > raft.hard.term) becomeFollower(raft, message.term, undefined);
  const { role } = raft;
  // A reply of an older term answers a role that is over (R8).
  if (message.term < raft.hard.term) return;
  if (message.type === 'voteReply') onVoteReply(raft, message);
  else if (role.type !== 'leader') return;
  else if (message.type === 'appendReply') onAppendReply(raft, role, message);
  else onHeartbeatReply(raft, role, message);
}
