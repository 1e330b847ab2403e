/**
 * What one member holds in memory, shared by the files of this room. `replica.ts` alone creates it; each other file
 * owns the part that it names and reads the rest.
 */
import type { BigMap } from '../base/big-map.js';
import type { Failure } from '../base/errors.js';
import type { ForwardableCall } from '../base/api.js';
import type { BootId, Domain, NodeId, RequestId } from '../base/ids.js';
import type { Command } from '../lease/commands.js';
import type { Queue } from '../lease/queue.js';
import type { CoolDown, StateRecord, StateSummary, Waiter } from '../lease/types.js';
import type { State } from '../lease/state.js';
import type { Raft } from '../raft/raft.js';
import type { Member, SnapshotMeta } from '../raft/types.js';
import type { ExpiryClock, Timed } from './clock.js';
import type { Due, DueList } from './due.js';
import type { CommandCodec } from './ports.js';
import type { CallId, CallResult, Effect, Genesis, LogFields, Principal, ReplicaOptions, Time } from './types.js';
import type { Watching } from './watchers.js';

/** A client's call that this node took, until it is answered (design 8, "any node takes any call"). */
export interface EntryCall extends Due {
  readonly id: CallId;
  readonly principal: Principal;
  readonly call: ForwardableCall;
  /** Monotonic; while no leader has it, it is given up then, so that the answer still arrives … */
  readonly answerBy: number;
  /** … and a little later while one has it that may hold it until then. */
  readonly giveUpAt: number;
  readonly deadline: number;
  /** An acquire that is queued then is answered so; counted here over all forwards (design 8). */
  readonly holdUntil: number;
  /** True once an attempt that is over may have reached a log: from then on a failure says `unknown`. */
  attempted: boolean;
  at:
    | {
        readonly type: 'held';
        readonly since: number;
        /** Not to be forwarded again before. */ readonly notBefore: number;
      }
    | { readonly type: 'forwarded'; readonly to: NodeId }
    | { readonly type: 'served'; readonly served: Served };
}

/** A call that this node serves as leader, until it is answered or the node stops leading. */
export interface Served {
  readonly origin:
    | { readonly type: 'own'; readonly id: CallId }
    | { readonly type: 'peer'; readonly node: NodeId; readonly id: CallId };
  readonly principal: Principal;
  readonly call: ForwardableCall;
  /** When it reached this leader: what a lease's clock counts from. */
  readonly arrivedAt: number;
  /** The last index of the log then: an entry behind it was appended after the call came. */
  readonly arrivedBehind: number;
  /** An acquire that is queued then is answered so. */
  readonly holdUntil: number;
  /** True once an entry was appended for it. */
  proposed: boolean;
  /** True once answered, cancelled or handed back; whoever still waits for it drops it. */
  done: boolean;
}

/** What waits for a confirmation round. */
export interface RoundWaiter {
  readonly round: number;
  readonly resume: () => void;
}

/** What a proposal of this leader's term waits for. */
export interface PendingEntry {
  readonly term: number;
  readonly command: Command;
  /** The call that it answers. */
  readonly served: Served | undefined;
  /** Run after it is applied; for internal commands. */
  readonly resume: (() => void) | undefined;
  /** The names of which it frees a place, once for each place; see `passing.ts`. */
  readonly frees: readonly Domain[];
}

/** Exists while this node is leader of `term`; thrown away as a whole when it steps down (S9.1). */
export interface Leadership {
  readonly term: number;
  /** Set when the own no-op is applied; nothing is served before. */
  ready: { readonly since: number } | undefined;
  /** Open calls, by where they came from: see `originKey`. */
  readonly served: Map<string, Served>;
  /** By index. */
  readonly pending: Map<number, PendingEntry>;
  /** In the order of their rounds. */
  readonly rounds: RoundWaiter[];
  readonly clock: ExpiryClock;
  /** How many leases are in this leader's Expires and Checkpoints that are not applied yet. */
  timedOnTheWay: number;
  /** Leases with renewals that wait for a Void which is not appended yet. */
  readonly voidsWanted: Timed[];
  /** Calls that arrived before `ready`, or while leadership is being handed over. */
  readonly waiting: Served[];
  readonly waits: Waits;
  /** By domain or slot. */
  readonly cooling: Map<Domain, Cooling>;
  readonly coolingDue: DueList<Cooling>;
  /** The cool-downs that this leader found, as far as it does not time them yet; undefined when it times all. */
  coolingFound: FoundCoolDowns | undefined;
  /** Set while an EndHold is under way. */
  endHoldProposed: boolean;
}

/** One waiter as this leader sees it. `dueAt` is when its next hold, its wait or its grace ends. */
export interface Attachment extends Due {
  readonly waiter: Waiter;
  /** The calls that are held for it. */
  readonly calls: Set<Served>;
  /** Since when there is none; counts only while there is none. */
  silentSince: number;
  /** False for a waiter whom a new leader found, until it sees a call for it. */
  seen: boolean;
  /** When its wait is over. */
  readonly waitUntil: number;
  /** The held call that was proposed because the domain is free. */
  offered: Served | undefined;
  /** Set while an EndWait is open: nothing is answered for the id until its outcome (F7). Holds what waits for that. */
  ending: { readonly over: boolean; readonly waiting: (() => void)[] } | undefined;
}

/** The queues that a leader found. */
export interface FoundWaiters {
  /** Those that begin meanwhile may come too. */
  readonly queues: Iterator<readonly [Domain, Readonly<Queue>]>;
  /** When the leader began: their grace and their waits count from there, whenever it gets to them. */
  readonly from: number;
}

/** The cool-downs that a leader found. */
export interface FoundCoolDowns {
  /** Those that begin meanwhile may come too, timed already. */
  readonly coolDowns: Iterator<CoolDown>;
  /** When the leader began: each counts in full from there. */
  readonly from: number;
}

/** All waiters, at one leader. */
export interface Waits {
  readonly attachments: BigMap<RequestId, Attachment>;
  /** Those who waited when this leader began, as far as it does not know them yet; undefined when it knows all. */
  found: FoundWaiters | undefined;
  readonly due: DueList<Attachment>;
  /** How many places of a name come free, at most, by entries that are not applied yet. */
  readonly freeing: Map<Domain, number>;
  /** Names whose free place could not be offered to their waiters yet. */
  readonly unoffered: Set<Domain>;
  offeredAgainAt: number;
}

/** One closed domain as this leader times it; due at its end, and no more once its EndCoolDown is proposed. */
export interface Cooling extends Due {
  readonly coolDown: CoolDown;
  readonly until: number;
}

/** A hand-over that somebody asked for. Outlives the leadership. */
export interface TransferWaiter {
  readonly served: Served;
  readonly term: number;
  readonly until: number;
}

/** A snapshot on its way in. */
export interface Incoming {
  readonly from: Member;
  readonly term: number;
  readonly request: number;
  readonly meta: SnapshotMeta;
  readonly summary: StateSummary;
  readonly records: StateRecord[];
  /** The next chunk's number. */
  next: number;
  /** The last chunk's number, once it came. */
  last: number | undefined;
}

/** A snapshot on its way out. */
export interface Outgoing {
  readonly to: Member;
  /** The snapshot is at this index or a later one. */
  readonly index: number;
  /** Set once it has arrived: until then the log behind it is still kept, or the member would need another one (S4.4). */
  readonly keepUntil: number | undefined;
}

/** What was last seen of another member's process (S1, S7). */
export interface PeerView {
  boot: BootId | undefined;
  /** Set while the stream on which its messages arrive is known to have ended and nothing arrived since. */
  silentSince: number | undefined;
  probesLeft: number;
  nextProbeAt: number;
}

/** One member. */
export interface Context {
  readonly options: ReplicaOptions;
  readonly codec: CommandCodec;
  readonly genesis: Genesis;
  readonly raft: Raft;
  /** Replaced as a whole when a snapshot is installed. */
  lease: State;
  /** Raft index up to which `lease` is applied; equals the commit index after every step. */
  applied: number;
  appliedTerm: number;
  time: Time;
  /** Effects of the step under way. */
  out: Effect[];
  readonly calls: Map<CallId, EntryCall>;
  readonly callsDue: DueList<EntryCall>;
  /** How many of `calls` are held. */
  held: number;
  leadership: Leadership | undefined;
  /** Results of served calls, on their way back to where the calls came from. */
  readonly completed: { readonly served: Served; readonly result: CallResult }[];
  transfers: TransferWaiter[];
  readonly peers: Map<NodeId, PeerView>;
  incoming: Incoming | undefined;
  /** Snapshots on their way out, and those that have just arrived: the log behind them is kept. */
  readonly outgoing: Map<string, Outgoing>;
  readonly cuts: CutState;
  readonly watchdog: WatchdogState;
  readonly watching: Watching;
  /** Free bytes; undefined until first reported. */
  diskFree: number | undefined;
  /** Alarms by name, one line each. */
  readonly alarms: Map<string, string>;
  serving: { readonly serving: boolean; readonly leader: NodeId | undefined } | undefined;
  stopping:
    | { readonly since: number; /** Leadership is to be handed over first. */ handingOver: boolean; done: boolean }
    | undefined;
  lastTickAt: number | undefined;
}

/** When to cut, and what the log still holds. */
export interface CutState {
  /** The index of the newest durable cut. */
  durable: number;
  /** The cut under way. */
  underWay: { readonly meta: SnapshotMeta; readonly keepFrom: number } | undefined;
  /** When the first entry after the last cut was applied. */
  dirtySince: number | undefined;
  /** The first index to keep, and the payload bytes from there to `applied`. */
  keepFrom: number;
  keptBytes: number;
}

/** Writes under way, by kind, and whether the core was told of a stall. */
export interface WatchdogState {
  readonly writes: Map<string, number>;
  lastStepAt: number | undefined;
  stalled: boolean;
}

/** Names an open call at the leader. */
export function originKey(origin: Served['origin']): string {
  return origin.type === 'own' ? `own/${origin.id}` : `${origin.node}/${origin.id}`;
}

/** The effect that ends a call with a failure. */
export function failed(failure: Failure): { readonly type: 'failure'; readonly failure: Failure } {
  return { type: 'failure', failure };
}

/** Puts a line into the log. */
export function log(context: Context, level: 'info' | 'warn' | 'error', message: string, fields: LogFields = {}): void {
  context.out.push({ type: 'log', level, message, fields, detail: false });
}
