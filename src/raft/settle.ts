import { assert } from '../base/assert.js';
import { settleWrite } from './persist.js';
import { settleAppends } from './replication.js';
import { settleRounds } from './rounds.js';
import type { Raft } from './state.js';
import { settleHandover } from './transfer.js';
import type { Effect } from './types.js';

/**
 * What a batch of inputs adds up to: at most one write, the next confirmation round, and what each follower may have.
 * Called once after each batch. The write comes first, so that the disk works while messages are encoded; the leader
 * does not wait for it (research 1.3).
 */
export function settle(raft: Raft): Effect[] {
  assert(raft.effects.length === 0, 'effects of an earlier step were not taken');
  settleWrite(raft);
  if (raft.role.type === 'leader') {
    settleRounds(raft, raft.role);
    settleAppends(raft, raft.role);
    settleHandover(raft, raft.role);
  }
  const { effects } = raft;
  raft.effects = [];
  return effects;
}
