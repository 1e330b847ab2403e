import { assert } from '../base/assert.js';
import { inForce } from './configuration.js';
import { entriesIn, lastIndexOf, payloadBytes, termAt } from './log.js';
import { quorumValue } from './quorum.js';
import { emit } from './state.js';
import type { Leading, Raft } from './state.js';

/** Raises the commit index, never lowers it, and releases the bytes that the leader charged. */
export function raiseCommit(raft: Raft, index: number): void {
  if (index <= raft.commit) return;
  const last = lastIndexOf(raft.log);
  assert(index <= last, `entry ${index} would be committed, the log ends at ${last}`);
  if (raft.role.type === 'leader') {
    raft.role.uncommittedBytes -= payloadBytes(entriesIn(raft.log, raft.commit, index));
    assert(
      index < last ? raft.role.uncommittedBytes >= 0 : raft.role.uncommittedBytes === 0,
      `${raft.role.uncommittedBytes} uncommitted bytes are left after the commit of ${index}`,
    );
  }
  raft.commit = index;
  emit(raft, { type: 'committed', index });
}

/**
 * Commits what a majority of every half has durable: this member counts with what its own disk has completed (P7).
 * Only an entry of the own term commits by counting; those before it follow (paper 5.4.2, R4).
 */
export function advanceCommit(raft: Raft, leading: Leading): void {
  const index = quorumValue(inForce(raft.configurations).halves, (voter) =>
    voter === raft.key ? raft.persistence.stable : (leading.peers.get(voter)?.match ?? 0),
  );
  if (index > raft.commit && termAt(raft.log, index) === raft.hard.term) raiseCommit(raft, index);
}
