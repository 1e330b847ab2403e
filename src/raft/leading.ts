import { assert } from '../base/assert.js';
import { adopt, inForce } from './configuration.js';
import { appendEntry, entriesIn, lastIndexOf, payloadBytes } from './log.js';
import { sameMember } from './member.js';
import { createPeer } from './progress.js';
import { quorumValue } from './quorum.js';
import { becomeFollower } from './role.js';
import { sendHeartbeats } from './rounds.js';
import { tickHandover } from './transfer.js';
import { emit } from './state.js';
import type { Leading, Raft } from './state.js';
import type { EntryKind, Input } from './types.js';

const EMPTY = new Uint8Array(0);

/** Takes over the term that it won, and opens it with a no-op: only entries of the own term commit by counting. */
export function becomeLeader(raft: Raft): void {
  const { role, log, options } = raft;
  assert(role.type === 'candidate' && role.stage === 'real', `a ${role.type} becomes leader`);
  assert(sameMember(raft.hard.vote, options.self), `the leader of term ${raft.hard.term} has not voted for itself`);
  const next = lastIndexOf(log) + 1;
  const others = inForce(raft.configurations).members.filter((listed) => listed.key !== raft.key);
  const leading: Leading = {
    type: 'leader',
    peers: new Map(others.map((listed) => [listed.key, createPeer(listed, next, raft.ticks)])),
    termStart: next,
    uncommittedBytes: payloadBytes(entriesIn(log, raft.commit, next - 1)),
    heartbeatElapsed: 0,
    rounds: { issued: 0, confirmed: 0, wanted: false },
    handover: undefined,
  };
  raft.role = leading;
  raft.leader = options.self;
  appendOwn(raft, leading, 'noop', EMPTY);
}

/** One tick of a leader: steps down when it has not heard a quorum within a least election time-out (E8), else keeps its followers. */
export function tickLeader(raft: Raft, leading: Leading): void {
  const { electionMinTicks, heartbeatTicks } = raft.options;
  const heard = quorumValue(inForce(raft.configurations).halves, (voter) =>
    voter === raft.key ? raft.ticks : (leading.peers.get(voter)?.heardAt ?? 0),
  );
  assert(heard <= raft.ticks, `a quorum was heard at tick ${heard}, now is ${raft.ticks}`);
  if (raft.ticks - heard >= electionMinTicks) {
    becomeFollower(raft, raft.hard.term, undefined);
    return;
  }
  tickHandover(raft, leading);
  leading.heartbeatElapsed++;
  if (leading.heartbeatElapsed >= heartbeatTicks) sendHeartbeats(raft, leading);
}

/** Appends a command, if this member leads and has room for it. Answers with `proposed` or `rejected`. */
export function propose(raft: Raft, input: Extract<Input, { type: 'propose' }>): void {
  const { role, options } = raft;
  const bytes = input.payload.length;
  if (role.type !== 'leader') {
    emit(raft, { type: 'rejected', reason: 'notLeader' });
  } else if (input.onlyInTerm !== undefined && input.onlyInTerm !== raft.hard.term) {
    emit(raft, { type: 'rejected', reason: 'termChanged' });
  } else if (role.handover !== undefined) {
    emit(raft, { type: 'rejected', reason: 'transferring' });
  } else if (
    input.exempt !== true &&
    role.uncommittedBytes > 0 &&
    role.uncommittedBytes + bytes > options.maxUncommittedBytes
  ) {
    emit(raft, { type: 'rejected', reason: 'uncommittedLimit' });
  } else if (input.exempt !== true && raft.commit - raft.applied > options.maxUnappliedEntries) {
    emit(raft, { type: 'rejected', reason: 'unappliedLimit' });
  } else {
    const index = appendOwn(raft, role, 'command', input.payload);
    emit(raft, { type: 'proposed', index, term: raft.hard.term });
  }
}

function appendOwn(raft: Raft, leading: Leading, kind: EntryKind, payload: Uint8Array): number {
  const entry = { index: lastIndexOf(raft.log) + 1, term: raft.hard.term, kind, payload };
  appendEntry(raft.log, entry);
  adopt(raft.configurations, entry);
  leading.uncommittedBytes += payload.length;
  return entry.index;
}
