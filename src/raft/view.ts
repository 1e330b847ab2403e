/** Read-only views of the core. */
import { configurationFor } from './configuration.js';
import { lastIndexOf, termAt } from './log.js';
import * as persist from './persist.js';
import type { Raft } from './state.js';
import type { Configuration, Member } from './types.js';

/** Index of the last entry, durable or not. */
export function lastIndex(raft: Raft): number {
  return lastIndexOf(raft.log);
}

/** Index up to which the log is durable here. A cut of the state must not lie above it. */
export function stableIndex(raft: Raft): number {
  return raft.persistence.stable;
}

/**
 * Index up to which the log as it is now was handed to the disk: durable, or in the write under way. Falls when a
 * conflict cuts the log, though a write under way still holds what was cut. A cut of the state must not be handed over
 * above it (S2.4).
 */
export function handedIndex(raft: Raft): number {
  return raft.persistence.handedTo;
}

/** Index up to which entries are known to be committed. */
export function commitIndex(raft: Raft): number {
  return raft.commit;
}

/** Bytes of payload that this leader has appended and that are not committed; 0 for who does not lead. */
export function uncommittedBytes(raft: Raft): number {
  return raft.role.type === 'leader' ? raft.role.uncommittedBytes : 0;
}

/** Term of the entry at `index`; undefined when it is compacted or not there yet. */
export function termOf(raft: Raft, index: number): number | undefined {
  return termAt(raft.log, index);
}

/** What this member is; a pre-candidate is a candidate. */
export function roleName(raft: Raft): 'follower' | 'candidate' | 'leader' {
  return raft.role.type;
}

/** The leader of the present term, if this member knows it. */
export function leaderOf(raft: Raft): Member | undefined {
  return raft.leader;
}

/** True while this member leads; whether it still does in the eyes of the others only a confirmation round tells. */
export function isLeader(raft: Raft): boolean {
  return raft.role.type === 'leader';
}

/** True from the acceptance of a snapshot until its switch is durable. Until then nothing else may be staged. */
export function isInstalling(raft: Raft): boolean {
  return persist.isInstalling(raft);
}

/** The configuration that the entry at `index` was under, and the index of the entry that set it. Not before the newest cut. */
export function configurationAt(raft: Raft, index: number): { configuration: Configuration; index: number } {
  const found = configurationFor(raft.configurations, index);
  return { configuration: found.configuration, index: found.index };
}

/** What a leader knows of another member. */
export interface FollowerView {
  readonly member: Member;
  /** The last index proved to be durable there. */
  readonly match: number;
  /** Heard within the least election time-out. */
  readonly active: boolean;
  readonly diskLow: boolean;
  readonly voter: boolean;
}

/** The other members in order of their keys; empty when this member does not lead. */
export function followers(raft: Raft): readonly FollowerView[] {
  if (raft.role.type !== 'leader') return [];
  return [...raft.role.peers.values()].map(({ member, match, heardAt, diskLow, voter }) => ({
    member,
    match,
    active: raft.ticks - heardAt < raft.options.electionMinTicks,
    diskLow,
    voter,
  }));
}
