import {
  CUT_BYTES,
  CUT_MS,
  DISK_FLOOR_BYTES,
  ELECTION_MAX_MS,
  ELECTION_MIN_MS,
  HEARTBEAT_MS,
  LOG_KEEP_BYTES,
  LOG_KEEP_TRANSFER_BYTES,
  MAX_APPEND_BYTES,
  MAX_HELD_CALLS,
  MAX_INFLIGHT_APPENDS,
  MAX_INFLIGHT_BYTES,
  MAX_UNAPPLIED_ENTRIES,
  MAX_UNCOMMITTED_BYTES,
  TICK_MS,
  TIMED_PER_TICK,
  WAITER_GRACE_MS,
  WATCH_LIMITS,
} from '../../src/base/limits.js';
import type { Member } from '../../src/raft/types.js';
import type { Genesis, ReplicaOptions } from '../../src/replica/types.js';

/** What a node of the product runs its replica with; the seed is the caller's. */
export function defaultOptions(self: Member, genesis: Genesis): Omit<ReplicaOptions, 'seed'> {
  return {
    self,
    addresses: genesis.members.map(({ node }) => ({ node, peerAddress: `${node}:7201` })),
    heartbeatMs: HEARTBEAT_MS,
    electionMinMs: ELECTION_MIN_MS,
    electionMaxMs: ELECTION_MAX_MS,
    tickMs: TICK_MS,
    diskFloorBytes: DISK_FLOOR_BYTES,
    maxAppendBytes: MAX_APPEND_BYTES,
    maxInflightAppends: MAX_INFLIGHT_APPENDS,
    maxInflightBytes: MAX_INFLIGHT_BYTES,
    maxUncommittedBytes: MAX_UNCOMMITTED_BYTES,
    maxUnappliedEntries: MAX_UNAPPLIED_ENTRIES,
    timedPerTick: TIMED_PER_TICK,
    cutBytes: CUT_BYTES,
    cutMs: CUT_MS,
    logKeepBytes: LOG_KEEP_BYTES,
    logKeepTransferBytes: LOG_KEEP_TRANSFER_BYTES,
    maxHeldCalls: MAX_HELD_CALLS,
    waiterGraceMs: WAITER_GRACE_MS,
    limits: genesis.limits,
    auditGrants: false,
    auditReleases: false,
    watch: WATCH_LIMITS,
  };
}
