import { assert } from '../base/assert.js';
import { nextInt } from '../base/random.js';
import type { Random } from '../base/random.js';
import { sameMember } from './member.js';
import { setHard } from './persist.js';
import type { Raft } from './state.js';
import type { Member, RaftOptions } from './types.js';

/** Draws an election time-out in ticks. Drawn anew for each attempt: equal or locked ones split votes (E6). */
export function drawTimeout(random: Random, options: RaftOptions): number {
  return nextInt(random, options.electionMinTicks, options.electionMaxTicks);
}

/** Starts the wait for the next campaign anew. */
export function restartTimer(raft: Raft): void {
  raft.timer.elapsed = 0;
  raft.timer.timeout = drawTimeout(raft.random, raft.options);
}

/**
 * Follows in `term`. A vote given in the present term stays (P1). A follower's election time-out goes on, so that a
 * candidate that cannot win does not hold up one that can.
 */
export function becomeFollower(raft: Raft, term: number, leader: Member | undefined): void {
  assert(term >= raft.hard.term, `a follower of term ${term} was of term ${raft.hard.term}`);
  if (term > raft.hard.term) {
    setHard(raft, { term, vote: undefined });
    raft.timer.heardAt = undefined;
    raft.early.dueAt = undefined;
  }
  if (raft.role.type === 'leader') {
    raft.timer.heardAt = undefined;
    restartTimer(raft);
  }
  raft.role = { type: 'follower' };
  raft.leader = leader;
}

/** Takes note of a message that only the leader of the present term sends. */
export function hearLeader(raft: Raft, leader: Member): void {
  const { term } = raft.hard;
  assert(raft.role.type !== 'leader', `${leader.node} leads term ${term}, which this member leads`);
  assert(
    raft.leader === undefined || sameMember(raft.leader, leader),
    `${leader.node} leads term ${term}, which ${raft.leader?.node ?? 'nobody'} leads`,
  );
  becomeFollower(raft, term, leader);
  raft.timer.elapsed = 0;
  raft.timer.heardAt = raft.ticks;
  raft.early.dueAt = undefined;
  raft.expelled = false;
}

/** Leader stickiness: a leader was heard within the least election time-out, or is this member itself. */
export function isSticky(raft: Raft): boolean {
  if (raft.role.type === 'leader') return true;
  const { heardAt } = raft.timer;
  return heardAt !== undefined && raft.ticks - heardAt < raft.options.electionMinTicks;
}
