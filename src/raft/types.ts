/**
 * The vocabulary of the consensus core: what goes in, what comes out, what lies in the log. The core knows no domain,
 * lease, socket, clock or disk. Terms and indexes are safe integers ≥ 0; index 0 and term 0 mean "none".
 */
import type { Brand, DirectoryId, NodeId } from '../base/ids.js';

/** A voter or learner: the pair is the identity that is counted (design 5, F10). Never a node id alone. */
export interface Member {
  readonly node: NodeId;
  readonly directory: DirectoryId;
}

/** {@link Member} as one string, for maps and tallies: `node/directory`. */
export type MemberKey = Brand<string, 'MemberKey'>;

/** Who counts. Joint while `outgoing` is not empty: then every quorum is one of `voters` and one of `outgoing`. */
export interface Configuration {
  readonly voters: readonly Member[];
  readonly outgoing: readonly Member[];
  readonly learners: readonly Member[];
}

/** `noop` opens a term; `command` is the state machine's; `configuration` is a {@link Configuration}, in force when appended. */
export type EntryKind = 'noop' | 'command' | 'configuration';

/** One entry of the log. The payload is opaque bytes, encoded once; the core looks into `configuration` only. */
export interface Entry {
  readonly index: number;
  readonly term: number;
  readonly kind: EntryKind;
  readonly payload: Uint8Array;
  /** Set exactly when `kind` is `configuration`. */
  readonly configuration?: Configuration;
}

/** What must be durable before a vote or an append is answered. */
export interface HardState {
  readonly term: number;
  readonly vote: Member | undefined;
}

/** A position in the log. */
export interface Position {
  readonly index: number;
  readonly term: number;
}

/** What a snapshot of the state machine stands for. */
export interface SnapshotMeta extends Position {
  /** In force *at* `index`, both halves and learners (M8, M13). */
  readonly configuration: Configuration;
  /** Index of the entry that set it; the history's start for the initial one. */
  readonly configurationIndex: number;
}

interface Envelope {
  readonly from: Member;
  readonly to: Member;
  /** The sender's term; for a pre-vote the term it would campaign in. */
  readonly term: number;
}

/** Asks whether `to` would vote. Changes nothing durable on either side. */
export interface PreVote extends Envelope {
  readonly type: 'preVote';
  readonly last: Position;
  /** Rises with every campaign of the sender; comes back in the reply (R7). */
  readonly attempt: number;
}
/** `term` is the asked term when granted, else the answering node's own. */
export interface PreVoteReply extends Envelope {
  readonly type: 'preVoteReply';
  readonly granted: boolean;
  readonly attempt: number;
}
/** Asks for a vote. */
export interface Vote extends Envelope {
  readonly type: 'vote';
  readonly last: Position;
  readonly attempt: number;
  /** True after a hand-over: stickiness does not apply. */
  readonly transfer: boolean;
}
/** Leaves after the vote is durable. */
export interface VoteReply extends Envelope {
  readonly type: 'voteReply';
  readonly granted: boolean;
  readonly attempt: number;
}
/** Entries for a follower; empty as a probe. `entries[0].index === prev.index + 1`, consecutive. */
export interface Append extends Envelope {
  readonly type: 'append';
  readonly prev: Position;
  readonly entries: readonly Entry[];
  readonly commit: number;
  /** Rises with every append to this follower in this term; comes back in the reply. */
  readonly request: number;
}
/** Leaves after what it says is durable. */
export interface AppendReply extends Envelope {
  readonly type: 'appendReply';
  readonly request: number;
  readonly result:
    | {
        readonly type: 'proved';
        /** The last index that the message proved; never simply the log's end. */ readonly index: number;
      }
    | {
        readonly type: 'conflict';
        /** Try with a previous entry at or below this; never a match. */ readonly hint: Position;
      };
  /** The follower's log ends here (durable part); lets the leader notice a log that got shorter (S7). */
  readonly durable: number;
  /** The follower's disk has less than the floor free (design 6). */
  readonly diskLow: boolean;
}
/** Keeps followers, carries the commit index and a confirmation round. `commit` ≤ the follower's match. */
export interface Heartbeat extends Envelope {
  readonly type: 'heartbeat';
  readonly commit: number;
  /** The leader's newest round, a counter within its term (RD2). */
  readonly round: number;
}
/** Needs no disk (research 5.4). */
export interface HeartbeatReply extends Envelope {
  readonly type: 'heartbeatReply';
  readonly round: number;
  readonly diskLow: boolean;
}
/** A whole snapshot has been staged at `to`, sent by `from` in `term`: may it be installed? Answered by an AppendReply. */
export interface InstallSnapshot extends Envelope {
  readonly type: 'installSnapshot';
  readonly meta: SnapshotMeta;
  readonly request: number;
}
/** The hand-over: campaign now, without pre-vote. */
export interface TimeoutNow extends Envelope {
  readonly type: 'timeoutNow';
}
/** Sent by a leader only, to a node whose (node, directory) its configuration does not list (S3). That node stops campaigning. */
export interface NotMember extends Envelope {
  readonly type: 'notMember';
}

/** What members say to each other. Frozen in tests. */
export type Message =
  | PreVote
  | PreVoteReply
  | Vote
  | VoteReply
  | Append
  | AppendReply
  | Heartbeat
  | HeartbeatReply
  | InstallSnapshot
  | TimeoutNow
  | NotMember;

/** Fixed at creation. Ticks are the core's only time. */
export interface RaftOptions {
  readonly self: Member;
  /** A leader sends a heartbeat every so many ticks. */
  readonly heartbeatTicks: number;
  /** Least election time-out; also the check-quorum window and the stickiness window. Too small: elections under load. */
  readonly electionMinTicks: number;
  /** Greatest election time-out. Too close to the least: split votes. */
  readonly electionMaxTicks: number;
  /** Bytes of payload in one append; one entry always fits. */
  readonly maxAppendBytes: number;
  /** Appends under way to one follower. 1 makes the core wait for each reply. */
  readonly maxInflightAppends: number;
  /** Bytes of payload under way to one follower. */
  readonly maxInflightBytes: number;
  /** Bytes appended and not committed before commands are refused; exempt proposals never are (S9). */
  readonly maxUncommittedBytes: number;
  /** Entries committed and not applied before commands are refused. */
  readonly maxUnappliedEntries: number;
  /** Seeds the core's own random numbers. */
  readonly seed: number;
}

/** What the core starts from: the disk of a crashed node, or Genesis. */
export interface Restored {
  readonly hard: HardState;
  /** The newest durable cut: what has been applied, and the configuration there. `snapshot.index ≥ anchor.index`. */
  readonly snapshot: SnapshotMeta;
  /** The position before the first kept entry. */
  readonly anchor: Position;
  /** Contiguous from `anchor.index + 1`; all durable. */
  readonly entries: readonly Entry[];
}

/** Why a proposal, round or transfer was not taken. */
export type Rejection =
  | 'notLeader'
  | 'termChanged'
  | 'transferring'
  | 'uncommittedLimit'
  | 'unappliedLimit'
  | 'ownTermNotCommitted'
  | 'notVoter';

/** Everything that can happen to the core. */
export type Input =
  | { readonly type: 'tick' }
  | { readonly type: 'message'; readonly message: Message }
  | {
      readonly type: 'propose';
      readonly payload: Uint8Array;
      /** Refuse unless leader of exactly this term (internal commands). */
      readonly onlyInTerm?: number;
      /** Not subject to the limits: no-op, Expire, Void … (S9). */
      readonly exempt?: boolean;
    }
  /** Starts or joins a confirmation round. */
  | { readonly type: 'confirm' }
  /** Hands leadership to `to`, or to the voter furthest ahead. */
  | { readonly type: 'transfer'; readonly to: Member | undefined }
  /** The write with this number, and all before it, is durable. */
  | { readonly type: 'written'; readonly seq: number }
  /** The state machine has applied up to `index`. */
  | { readonly type: 'applied'; readonly index: number }
  /** A cut at `meta` is durable and may be sent to followers. */
  | { readonly type: 'snapshotTaken'; readonly meta: SnapshotMeta }
  /** Entries up to and including `index` are no longer kept. */
  | { readonly type: 'compact'; readonly index: number }
  /** The transfer to a follower ended; `ok` only after it answered that all is staged. */
  | { readonly type: 'snapshotSent'; readonly to: Member; readonly index: number; readonly ok: boolean }
  /** A stream to `to` ended: what was under way may be lost. */
  | { readonly type: 'unreachable'; readonly to: Member }
  /** Own observation that the leader's process is gone (S1; the caller has checked conditions 1–3). */
  | { readonly type: 'peerDown'; readonly leader: Member; readonly term: number }
  /** The disk or the loop stalled beyond the election time-out: step down, no campaign until it is over (P15). */
  | { readonly type: 'stalled'; readonly stalled: boolean }
  /** Less than the floor is free on this node's disk. */
  | { readonly type: 'diskLow'; readonly low: boolean };

/**
 * What the caller does, in the order given.
 *
 * Durability contract: (1) `persist` writes are carried out one at a time, in order, each synced before its `written`.
 * (2) The core itself holds back every message that speaks of durable state until its write is durable, so `send` may
 * leave at once. (3) A failed write ends the process. (4) `committed` entries may be applied before they are durable here.
 */
export type Effect =
  | { readonly type: 'send'; readonly message: Message }
  | {
      readonly type: 'persist';
      readonly write: LogWrite;
    }
  /** Entries up to `index` are committed; read them with `entriesBetween`. */
  | { readonly type: 'committed'; readonly index: number }
  /** Answer to `propose`, returned by the same step. */
  | { readonly type: 'proposed'; readonly index: number; readonly term: number }
  /** Answer to `confirm`, returned by the same step: wait for `confirmed` with a round at or above this. */
  | { readonly type: 'pendingRound'; readonly round: number }
  /** Answer to `propose`, `confirm` or `transfer`, returned by the same step. */
  | { readonly type: 'rejected'; readonly reason: Rejection }
  /** A quorum of every half answered a round sent after all requests that wait for ≤ `round`. Own term only. */
  | { readonly type: 'confirmed'; readonly round: number }
  /** Role, term or leader changed. Rounds and proposals of a leader that steps down are void from here. */
  | { readonly type: 'roleChanged' }
  /** Send the newest cut to this follower over the snapshot connection. */
  | { readonly type: 'sendSnapshot'; readonly to: Member; readonly meta: SnapshotMeta; readonly request: number }
  /** The staged snapshot was accepted: the state machine is now at `meta`. Its switch is part of the next `persist`. */
  | { readonly type: 'restored'; readonly meta: SnapshotMeta }
  /** The staged snapshot is not wanted. */
  | { readonly type: 'snapshotRefused'; readonly meta: SnapshotMeta }
  /** A transfer ended without a hand-over: the leader serves again. */
  | { readonly type: 'transferAborted' }
  /** The leader says that this (node, directory) is not a member. */
  | { readonly type: 'notMember'; readonly leader: Member }
  /** This member's log is shorter than what it acknowledged in this term (S7): it must stop and be replaced. */
  | { readonly type: 'logShrank'; readonly member: Member; readonly acknowledged: number; readonly durable: number };

/** One write to the log; at most one is under way, the core gathers what comes meanwhile into the next. */
export interface LogWrite {
  /** 1, 2, 3 … */
  readonly seq: number;
  /** Written with every write. */
  readonly hard: HardState;
  /** Entries at or above this index are cut first; undefined when the write only appends. */
  readonly cutFrom: number | undefined;
  /** Consecutive; begin at `cutFrom` or at the end of the log. */
  readonly entries: readonly Entry[];
  /** The staged snapshot to switch to, before `entries`; drops the whole log before it. */
  readonly install: SnapshotMeta | undefined;
}
