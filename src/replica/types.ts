/**
 * The vocabulary of one member: events in, effects out. The replica has no promise, no timer and no I/O; whoever runs
 * it (`node/executor.ts`, or a test over memory ports) hands it batches of events with the time, and carries out the
 * effects in the order given.
 */
import type { Answer, Call, ForwardableCall, Header } from '../base/api.js';
import type { Failure } from '../base/errors.js';
import type { BootId, DirectoryId, Incarnation, NodeId } from '../base/ids.js';
import type { History } from '../base/revision.js';
import type { WatchCall, WatchNews } from '../base/watch.js';
import type { StateChanges, StateLimits, StateRecord, StateSummary } from '../lease/types.js';
import type { Entry, HardState, LogWrite, Member, Message, Position, SnapshotMeta } from '../raft/types.js';

/** The clocks at the moment a batch of events is handled. */
export interface Time {
  /** Monotonic milliseconds, may have a fraction. Every decision uses this one. */
  readonly nowMs: number;
  /** Wall clock, whole milliseconds since 1970. Shown to people; decides nothing after forming. */
  readonly unixMs: number;
}

/** A member as the configuration file names it; the directory id is learnt by forming. */
export interface MemberAddress {
  readonly node: NodeId;
  /** `host:port` of its peer listener; resolved at every dial. */
  readonly peerAddress: string;
}

/** Begins a history (design 3): the snapshot at `history.start`. Every member accepts one in its life. */
export interface Genesis {
  readonly incarnation: Incarnation;
  readonly cluster: string;
  readonly history: History;
  /** Term at the start: 0 for a new cluster. */
  readonly startTerm: number;
  /** Grants are held back for this long by the first leaders; 0 for a new cluster unless the operator says otherwise. */
  readonly holdMs: number;
  readonly limits: StateLimits;
  /** The voters, sorted by node id. */
  readonly members: readonly Member[];
  /** Digest of the state that the history starts from; '' for none. */
  readonly stateDigest: string;
}

/** What members tell each other of themselves before there is a history; also the first frame of every peer stream. */
export interface Hello {
  readonly cluster: string;
  /** '' while forming. */
  readonly incarnation: Incarnation | '';
  readonly node: NodeId;
  readonly directory: DirectoryId;
  readonly boot: BootId;
  /** The newest wire format that it speaks. */
  readonly format: number;
}

/** A question, or an offer, while forming. */
export interface FormRequest {
  readonly hello: Hello;
  /** Digest of the configured initial members (16 hex digits): all must have been given the same list. */
  readonly initialMembersDigest: string;
  /** The asker's wall clock, microseconds since 1970. */
  readonly unixUs: number;
  /** Digest of the state that it starts from; '' for none. */
  readonly stateDigest: string;
  /** The record, when it is offered. */
  readonly genesis: Genesis | undefined;
}

/** What the asked one is and has. */
export interface FormResponse extends FormRequest {
  /** True when it was started with `--form` and has not accepted a record yet. */
  readonly forming: boolean;
}

/** Numbers a client's call at the node that took it. */
export type CallId = number;

/** Numbers a watch at the node that serves it. */
export type WatchId = number;

/** How a call ended. `revision` and `leader` are those of the answering state; the entry node completes the header. */
export type CallResult =
  | { readonly type: 'answer'; readonly answer: Answer; readonly revision: Header['revision'] }
  | { readonly type: 'failure'; readonly failure: Failure }
  /** Only over a forward stream: this node does not lead (any more); route the call again. */
  | { readonly type: 'notLeader'; readonly outcome: Failure['outcome'] };

/** A piece of a snapshot on its way to a follower. */
export interface SnapshotChunk {
  /** The sender's term and the request number of its `sendSnapshot`: names the transfer. */
  readonly term: number;
  readonly request: number;
  /** 0, 1, 2 …; an unexpected number ends the transfer. */
  readonly sequence: number;
  readonly meta: SnapshotMeta;
  readonly summary: StateSummary;
  readonly records: readonly StateRecord[];
  /** On the last chunk: number of records and sum over all, as the sender's table has them. */
  readonly total: { readonly count: number; readonly digest: string } | undefined;
}

/** Everything that can happen to a member. */
export type Event =
  | { readonly type: 'tick' }
  /** From a peer; the transport has checked cluster, incarnation and that `from.node` is whom it says. */
  | { readonly type: 'message'; readonly message: Message }
  /** A client's call at this node. `timeoutMs`: what is left of its deadline. Answered by one `answer` effect. */
  | {
      readonly type: 'call';
      readonly id: CallId;
      readonly principal: Principal;
      readonly timeoutMs: number;
      readonly call: Call;
    }
  /** The client has gone; nothing is answered any more. */
  | { readonly type: 'cancel'; readonly id: CallId }
  /** A client watches here. Its stream is empty: one message may be sent. */
  | { readonly type: 'watch'; readonly id: WatchId; readonly principal: Principal; readonly call: WatchCall }
  /** The message that was sent to this watch has left: the next may be. */
  | { readonly type: 'watchReady'; readonly id: WatchId }
  /** The stream of a watch is closed, by whomever: it holds nothing any more. Once for every `watch`. */
  | { readonly type: 'watchClosed'; readonly id: WatchId }
  /** A call that a peer took and passes on to the leader of `term`; answered by one `forwardResult` effect. */
  | {
      readonly type: 'forwarded';
      readonly from: NodeId;
      readonly id: CallId;
      readonly term: number;
      readonly principal: Principal;
      readonly timeoutMs: number;
      /** How long the call may still be held if it is queued. */
      readonly holdMs: number;
      readonly call: ForwardableCall;
    }
  | { readonly type: 'forwardCancelled'; readonly from: NodeId; readonly id: CallId }
  /** The answer to a `forward` effect. */
  | { readonly type: 'forwardResult'; readonly from: NodeId; readonly id: CallId; readonly result: CallResult }
  /** The forward stream to `node` ended: what was under way there has an unknown outcome. */
  | { readonly type: 'forwardLost'; readonly node: NodeId }
  /** The forward stream from `node` ended: its calls are gone. */
  | { readonly type: 'forwarderLost'; readonly node: NodeId }
  /** A stream on which `node`'s messages arrive ended. */
  | { readonly type: 'streamEnded'; readonly node: NodeId }
  /** A stream on which messages to `node` leave ended. */
  | { readonly type: 'unreachable'; readonly node: NodeId }
  /** Outcome of a `probe`: ECONNREFUSED, or anything else (a process that took its place says hello with another boot id). */
  | { readonly type: 'probed'; readonly node: NodeId; readonly outcome: 'refused' | 'other' }
  /** A hello arrived on a new stream from `node`. */
  | { readonly type: 'hello'; readonly node: NodeId; readonly directory: DirectoryId; readonly boot: BootId }
  /** The log write with this number is durable. */
  | { readonly type: 'written'; readonly seq: number }
  /** The cut at this applied index is durable. */
  | { readonly type: 'cutWritten'; readonly index: number }
  /** A chunk arrived over the snapshot connection. */
  | { readonly type: 'chunk'; readonly from: Member; readonly chunk: SnapshotChunk }
  /** The snapshot connection from `from` ended before its last chunk. */
  | { readonly type: 'chunksEnded'; readonly from: Member }
  /** The staged chunk is durable. */
  | { readonly type: 'staged'; readonly request: number; readonly sequence: number }
  /** A transfer to a follower ended; `ok`: everything is staged there. */
  | { readonly type: 'snapshotSent'; readonly to: Member; readonly index: number; readonly ok: boolean }
  /** Free bytes on the file system of the data directory. */
  | { readonly type: 'diskFree'; readonly bytes: number }
  /** The process was asked to stop: hand leadership over, refuse new calls, then `stopped`. */
  | { readonly type: 'stop' };

/** Who calls. */
export interface Principal {
  /** For quotas and audit: the certificate's subject, else `addr:` and the address without port. */
  readonly name: string;
  /** True when `name` is an authenticated subject; only then it binds request ids. */
  readonly authenticated: boolean;
}

/** What a line of the log carries besides its message. */
export type LogFields = Readonly<Record<string, string | number>>;

/** What the caller does, in order. */
export type Effect =
  | { readonly type: 'send'; readonly message: Message }
  | { readonly type: 'persist'; readonly write: LogWrite }
  | { readonly type: 'cut'; readonly cut: Cut }
  | { readonly type: 'answer'; readonly id: CallId; readonly header: Header; readonly result: CallResult }
  /** The next message of a watch; `compacted` is its last. No other one follows before `watchReady`. */
  | { readonly type: 'watchNews'; readonly id: WatchId; readonly header: Header; readonly news: WatchNews }
  /** A watch ends with an error. */
  | { readonly type: 'watchFailed'; readonly id: WatchId; readonly failure: Failure }
  | {
      readonly type: 'forward';
      readonly to: NodeId;
      readonly id: CallId;
      /** The term that `to` leads, as far as this node knows: no other leadership serves this copy of the call. */
      readonly term: number;
      readonly principal: Principal;
      readonly timeoutMs: number;
      readonly holdMs: number;
      readonly call: ForwardableCall;
    }
  | { readonly type: 'forwardCancel'; readonly to: NodeId; readonly id: CallId }
  | { readonly type: 'forwardResult'; readonly to: NodeId; readonly id: CallId; readonly result: CallResult }
  /** Connect to `node`'s peer address, beginning now, and report `probed`. */
  | { readonly type: 'probe'; readonly node: NodeId }
  /** Send the newest durable cut, which is at or after `meta`, to this follower; report `snapshotSent`. */
  | { readonly type: 'sendSnapshot'; readonly to: Member; readonly term: number; readonly request: number }
  | { readonly type: 'abortSnapshot'; readonly to: Member }
  /** Write this chunk under the staging prefix, synced; report `staged`. Sequence 0 empties the prefix first. */
  | { readonly type: 'stage'; readonly chunk: SnapshotChunk }
  /** A chunk is not wanted (wrong sequence, old term): end the stream on which it came. */
  | { readonly type: 'refuseChunks'; readonly from: Member; readonly reason: string }
  /** All chunks are staged and the core has decided: tell the sender over its snapshot connection. */
  | { readonly type: 'chunksDone'; readonly from: Member; readonly request: number }
  /** Whether this node can serve: it knows a leader and follows it. For health. */
  | { readonly type: 'serving'; readonly serving: boolean; readonly leader: NodeId | undefined }
  /** A line for the log. `audit` lines say who lost what; see `audit.ts`. */
  | {
      readonly type: 'log';
      readonly level: 'info' | 'warn' | 'error' | 'audit';
      readonly message: string;
      readonly fields: LogFields;
      /** Of an audit line: dropped before others are, when there are more than are read. */
      readonly detail: boolean;
    }
  /** Answer to `stop`: nothing is under way any more. */
  | { readonly type: 'stopped' };

/** A cut: the state at exactly `meta.index` (design 6). */
export interface Cut {
  readonly meta: SnapshotMeta;
  readonly changes: StateChanges;
  /** The first log index that is still wanted; whole blocks below may go, in the same batch. */
  readonly keepFrom: number;
}

/** What a member's disk holds after a start. */
export interface Loaded {
  readonly genesis: Genesis;
  readonly hard: HardState;
  readonly anchor: Position;
  readonly entries: readonly Entry[];
  readonly snapshot: SnapshotMeta;
  readonly summary: StateSummary;
  readonly records: readonly StateRecord[];
}

/** Fixed at creation. */
export interface ReplicaOptions {
  readonly self: Member;
  /** Where each member's peer listener is; from the configuration. */
  readonly addresses: readonly MemberAddress[];
  readonly heartbeatMs: number;
  readonly electionMinMs: number;
  readonly electionMaxMs: number;
  readonly tickMs: number;
  /** See `base/limits.ts` for each. */
  readonly diskFloorBytes: number;
  readonly maxAppendBytes: number;
  readonly maxInflightAppends: number;
  readonly maxInflightBytes: number;
  readonly maxUncommittedBytes: number;
  readonly maxUnappliedEntries: number;
  readonly timedPerTick: number;
  readonly cutBytes: number;
  readonly cutMs: number;
  readonly logKeepBytes: number;
  readonly logKeepTransferBytes: number;
  readonly maxHeldCalls: number;
  readonly waiterGraceMs: number;
  /** What this member is configured with; the state says what counts. */
  readonly limits: StateLimits;
  /** Audit lines for grants, and for releases and withdrawals; those for losses there are always. */
  readonly auditGrants: boolean;
  readonly auditReleases: boolean;
  readonly watch: WatchLimits;
  readonly seed: number;
}

/** What the watchers of a node may take; see `WATCH_LIMITS` in `base/limits.ts` for each. */
export interface WatchLimits {
  readonly ringBytes: number;
  readonly batchBytes: number;
  readonly messageBytes: number;
  readonly watchers: number;
  readonly watchersPerPrincipal: number;
}
