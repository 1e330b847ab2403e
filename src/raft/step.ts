import { assert } from '../base/assert.js';
import { advanceCommit } from './commit.js';
import { trimConfigurations } from './configuration.js';
import { onPeerDown, onStalled, onVoteReply, tickElection } from './election.js';
import { propose, tickLeader } from './leading.js';
import { compactLog } from './log.js';
import { sameMember } from './member.js';
import { completeWrite } from './persist.js';
import { receive } from './receive.js';
import { onSnapshotSent, onUnreachable } from './replication.js';
import { requestRound } from './rounds.js';
import { send } from './state.js';
import type { Raft } from './state.js';
import { startHandover } from './transfer.js';
import type { Effect, Input, SnapshotMeta } from './types.js';

/** Takes one input and returns what follows from it at once; the rest comes with `settle`, after the batch. Synchronous and total. */
export function step(raft: Raft, input: Input): Effect[] {
  assert(raft.effects.length === 0, 'effects of an earlier step were not taken');
  const { role, hard, leader } = raft;
  dispatch(raft, input);
  const { effects } = raft;
  raft.effects = [];
  const changed = role.type !== raft.role.type || hard.term !== raft.hard.term || !sameMember(leader, raft.leader);
  // First, so that whoever waits for the old role hears of its end before anything of the new one.
  return changed ? [{ type: 'roleChanged' }, ...effects] : effects;
}

function dispatch(raft: Raft, input: Input): void {
  switch (input.type) {
    case 'tick':
      raft.ticks++;
      if (raft.role.type === 'leader') tickLeader(raft, raft.role);
      else tickElection(raft);
      return;
    case 'message':
      receive(raft, input.message);
      return;
    case 'propose':
      propose(raft, input);
      return;
    case 'confirm':
      requestRound(raft);
      return;
    case 'transfer':
      startHandover(raft, input.to);
      return;
    case 'written':
      onWritten(raft, input.seq);
      return;
    case 'applied':
      assert(input.index <= raft.commit, `entry ${input.index} was applied, committed is ${raft.commit}`);
      // A late report may come after a snapshot has set a greater one.
      raft.applied = Math.max(raft.applied, input.index);
      return;
    case 'snapshotTaken':
      onSnapshotTaken(raft, input.meta);
      return;
    case 'compact':
      assert(
        input.index <= raft.snapshot.index,
        `the log would be compacted to ${input.index}, past the newest cut ${raft.snapshot.index}`,
      );
      compactLog(raft.log, input.index);
      return;
    case 'snapshotSent':
      onSnapshotSent(raft, input.to, input.index, input.ok);
      return;
    case 'unreachable':
      onUnreachable(raft, input.to);
      return;
    case 'peerDown':
      onPeerDown(raft, input.leader, input.term);
      return;
    case 'stalled':
      onStalled(raft, input.stalled);
      return;
    case 'diskLow':
      raft.diskLow = input.low;
  }
}

/** Lets go what waited for the write. The own vote is one of the messages: it counts like any other, but only now. */
function onWritten(raft: Raft, seq: number): void {
  for (const message of completeWrite(raft, seq)) {
    if (!sameMember(message.to, raft.options.self)) {
      send(raft, message);
    } else {
      assert(message.type === 'voteReply', `a ${message.type} was addressed to this member itself`);
      onVoteReply(raft, message);
    }
  }
  if (raft.role.type === 'leader') advanceCommit(raft, raft.role);
}

function onSnapshotTaken(raft: Raft, meta: SnapshotMeta): void {
  if (meta.index <= raft.snapshot.index) return;
  assert(meta.index <= raft.applied, `a cut at ${meta.index} lies above the applied index ${raft.applied}`);
  const { stable } = raft.persistence;
  // Otherwise a crash would leave a table that is ahead of its log, and the member would refuse to start.
  assert(
    meta.index <= stable,
    `a cut at ${meta.index} became durable before the log, which is durable up to ${stable}`,
  );
  raft.snapshot = meta;
  trimConfigurations(raft.configurations, meta.index);
}
