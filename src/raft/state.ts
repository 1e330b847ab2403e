import type { Random } from '../base/random.js';
import type { Configurations } from './configuration.js';
import type { Log } from './log.js';
import type { Peer } from './progress.js';
import type { Effect, HardState, Member, MemberKey, Message, RaftOptions, SnapshotMeta } from './types.js';

/** Follows, or waits to hear of a leader. */
export interface Following {
  readonly type: 'follower';
}

/** Asks for votes. `pre` changes nothing durable; `real` has voted for itself in `term`. */
export interface Campaigning {
  readonly type: 'candidate';
  readonly stage: 'pre' | 'real';
  /** The term that it would lead. */
  readonly term: number;
  readonly attempt: number;
  /** First answers only; counted for listed voters only. */
  readonly votes: Map<MemberKey, boolean>;
}

/** Confirmation rounds of one term (RD2). A round is under way while `confirmed < issued`. */
export interface Rounds {
  issued: number;
  confirmed: number;
  /** Somebody waits for `issued + 1`. */
  wanted: boolean;
}

/** A hand-over that has begun. */
export interface Handover {
  readonly to: Member;
  readonly key: MemberKey;
  /** Tick at which it counts as failed. */
  readonly deadline: number;
  /** `timeoutNow` has left. */
  sent: boolean;
}

/** Leads the present term. */
export interface Leading {
  readonly type: 'leader';
  /** Everybody else who is listed, in order of key. */
  readonly peers: ReadonlyMap<MemberKey, Peer>;
  /** Index of the no-op that opened the term. */
  readonly termStart: number;
  /** Payload of everything above the commit index. */
  uncommittedBytes: number;
  heartbeatElapsed: number;
  readonly rounds: Rounds;
  handover: Handover | undefined;
}

/** What a member is at present. */
export type Role = Following | Campaigning | Leading;

/** A message that waits until a write is durable. */
export interface Held {
  /** Number of that write. */
  readonly needs: number;
  /** The term in which it was made; in another one it is dropped (P9, P11). */
  readonly term: number;
  readonly message: Message;
}

/** The order of writes: one under way, what comes meanwhile gathers for the next. */
export interface Persistence {
  /** Number of the newest write. */
  seq: number;
  underWay: { readonly seq: number; readonly term: number; readonly install: boolean; end: number } | undefined;
  /** Up to here entries are durable or in the write under way; what lies above waits for the next one. */
  handedTo: number;
  /** Up to here entries are durable. */
  stable: number;
  /** The term of the newest completed write. */
  durableTerm: number;
  /** Waiting for the next write: */
  hardChanged: boolean;
  cutFrom: number | undefined;
  install: SnapshotMeta | undefined;
  readonly held: Held[];
}

/** When to stand for election, in ticks. */
export interface Timer {
  elapsed: number;
  timeout: number;
  /** Tick of the last message of the present term's leader; undefined: never, or its process is known to be gone. */
  heardAt: number | undefined;
}

/** Early campaigns after `peerDown` (S1). */
export interface Early {
  /** Tick at which one is due. */
  dueAt: number | undefined;
  /** The leader's term of the newest one: one for each (leader, term). */
  term: number | undefined;
  /** Tick of the newest one. */
  lastAt: number | undefined;
}

/** The whole state of one member's consensus core. Changed only by `step` and `settle`; everything in it is plain data. */
export interface Raft {
  readonly options: RaftOptions;
  readonly key: MemberKey;
  readonly random: Random;
  /** Made by the step under way; empty between steps. */
  effects: Effect[];
  ticks: number;
  hard: HardState;
  role: Role;
  /** Of the present term, when known. */
  leader: Member | undefined;
  readonly log: Log;
  configurations: Configurations;
  commit: number;
  applied: number;
  /** The newest durable cut, or the one that is being installed. */
  snapshot: SnapshotMeta;
  readonly persistence: Persistence;
  readonly timer: Timer;
  readonly early: Early;
  /** Number of the newest campaign. */
  attempt: number;
  /** A leader has said that this member is not listed; it does not campaign until a leader speaks to it again. */
  expelled: boolean;
  stalled: boolean;
  diskLow: boolean;
}

/** Adds an effect to those of the step under way. */
export function emit(raft: Raft, effect: Effect): void {
  raft.effects.push(effect);
}

/** Sends at once: for messages that say nothing that could be lost. */
export function send(raft: Raft, message: Message): void {
  raft.effects.push({ type: 'send', message });
}
