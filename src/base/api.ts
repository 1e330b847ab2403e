/**
 * The public API as plain data: what `proto/fencepost/v1` says, with checked names, without bytes. The server, the
 * replica and the client speak of calls in these types; `wire/public.ts` maps them to bytes. Comments in the proto
 * files are the reference; here stands only what differs.
 *
 * Tokens and revisions are safe integers here; the public TypeScript client shows them as `bigint`.
 */
import type { Domain, DirectoryId, Incarnation, NodeId, RequestId } from './ids.js';
import type { Revision } from './revision.js';
import type { LimitsChange, SharedLimits } from './shared-limits.js';

/** Names one lease; the pair is unique for ever. */
export interface LeaseRef {
  readonly domain: Domain;
  readonly token: Revision;
}

/** Sorted by key, keys unique: one order on every replica. */
export type Metadata = readonly (readonly [key: string, value: string])[];

/** A lease as clients see it. */
export interface LeaseView {
  readonly domain: Domain;
  readonly token: Revision;
  readonly holder: string;
  readonly metadata: Metadata;
  readonly ttlMs: number;
  readonly grantedAtUnixMs: number;
}

/** Why a lease, or a request, is over. */
export type EndReason =
  | 'unspecified'
  | 'expired'
  | 'released'
  | 'withdrawn'
  | 'force_released'
  | 'earlier_history'
  | 'never_granted'
  | 'left_queue';

/** How a lease ended. */
export interface EndedView {
  /** Undefined if the request was withdrawn before a grant. */
  readonly lease: LeaseRef | undefined;
  readonly reason: EndReason;
  /** For `force_released`: who did it. */
  readonly by: string;
  /** For `force_released`: the text that was given. */
  readonly note: string;
  /** The live lease's token in this domain, 0 if none. */
  readonly currentToken: Revision;
}

/** `linearizable` includes everything acknowledged before the call; `local` is what the answering node has applied. */
export type Freshness = 'linearizable' | 'local';

/** Asks for a lease. Checked: every field within its limits, defaults filled in. */
export interface AcquireCall {
  readonly type: 'acquire';
  readonly domain: Domain;
  readonly requestId: RequestId;
  readonly holder: string;
  readonly ttlMs: number;
  /** How long it may be queued in all; 0: not at all. */
  readonly waitMs: number;
  readonly metadata: Metadata;
  /** How long the domain stays closed if this lease expires. */
  readonly coolDownMs: number;
  /** 1: exclusive; n > 1: one of n slots. */
  readonly slots: number;
  /** The greatest revision the client knew when it made the id; 0 when it did not say (the entry node fills it in). */
  readonly seenRevision: Revision;
}
/** Keeps 1–1 000 leases. */
export interface RenewCall {
  readonly type: 'renew';
  readonly leases: readonly LeaseRef[];
}
/** Ends a lease. */
export interface ReleaseCall {
  readonly type: 'release';
  readonly lease: LeaseRef;
}
/** Undoes an Acquire of unknown outcome. */
export interface WithdrawCall {
  readonly type: 'withdraw';
  readonly domain: Domain;
  readonly requestId: RequestId;
}
/** Asks about a token; no guard. */
export interface VerifyCall {
  readonly type: 'verify';
  readonly lease: LeaseRef;
  readonly freshness: Freshness;
}
/** Asks for one domain. */
export interface GetCall {
  readonly type: 'get';
  readonly domain: Domain;
  readonly freshness: Freshness;
}
/** Asks for a page of domains. */
export interface ListCall {
  readonly type: 'list';
  /** Byte prefix; '' for all. */
  readonly prefix: string;
  /** 1–1 000. */
  readonly pageSize: number;
  /** The last name of the page before; '' for the first page. */
  readonly after: string;
  readonly freshness: Freshness;
}
/** Ends a lease whoever holds it. */
export interface ForceReleaseCall {
  readonly type: 'forceRelease';
  readonly domain: Domain;
  readonly token: Revision;
  /** 1–500 bytes. */
  readonly note: string;
}
/** Sets the replicated limits that `change` names, at least one, each in its range. */
export interface ChangeLimitsCall {
  readonly type: 'changeLimits';
  readonly change: LimitsChange;
}
/** Hands leadership over; `to` undefined means the voter that is furthest ahead. */
export interface TransferLeadershipCall {
  readonly type: 'transferLeadership';
  readonly to: NodeId | undefined;
}
/** What this node knows; never forwarded, needs no leader. */
export interface GetStatusCall {
  readonly type: 'getStatus';
}
/** A digest of this node's state; never forwarded, needs no leader. */
export interface GetStateHashCall {
  readonly type: 'getStateHash';
}

/** The closed list of what may be forwarded to the leader (S6). */
export type ForwardableCall =
  | AcquireCall
  | RenewCall
  | ReleaseCall
  | WithdrawCall
  | VerifyCall
  | GetCall
  | ListCall
  | ForceReleaseCall
  | TransferLeadershipCall
  | ChangeLimitsCall;
/** Every call that a node takes. */
export type Call = ForwardableCall | GetStatusCall | GetStateHashCall;

/** What became of an Acquire. */
export interface AcquireAnswer {
  readonly type: 'acquire';
  readonly requestId: RequestId;
  readonly outcome:
    | { readonly type: 'granted'; readonly lease: LeaseView }
    /** `position` 1 is next; `current` is unset during a cool-down. */
    | { readonly type: 'queued'; readonly position: number; readonly current: LeaseView | undefined }
    | NotGranted
    | { readonly type: 'ended'; readonly ended: EndedView };
}
/** Why a lease was not granted. */
export type NotGrantedReason = 'held' | 'wait_over' | 'queue_full' | 'cool_down' | 'slots_differ' | 'recovering';
/** Not granted, and not queued. */
export interface NotGranted {
  readonly type: 'notGranted';
  readonly reason: NotGrantedReason;
  /** A lease in the way. */
  readonly current: LeaseView | undefined;
  readonly queueLength: number;
  /** As the leader measures it; 0 when there is none. */
  readonly coolDownLeftMs: number;
}
/** One lease of a Renew or a Verify. */
export type LeaseState =
  { readonly type: 'live'; readonly ttlMs: number } | { readonly type: 'ended'; readonly ended: EndedView };
/** As many results as were asked for, in order. */
export interface RenewAnswer {
  readonly type: 'renew';
  readonly results: readonly LeaseState[];
}
/** `ended` says how it had ended, when `released` is false. */
export interface ReleaseAnswer {
  readonly type: 'release';
  readonly released: boolean;
  readonly ended: EndedView | undefined;
}
/** Afterwards the request holds nothing and waits for nothing. */
export interface WithdrawAnswer {
  readonly type: 'withdraw';
}
/** Current or not. */
export interface VerifyAnswer {
  readonly type: 'verify';
  readonly outcome: LeaseState;
}
/** The state of one domain, slot or counting name. */
export interface DomainView {
  readonly domain: Domain;
  readonly lease: LeaseView | undefined;
  /** Time to expiry if no renewal comes, as the leader measures it; 0 from other nodes. */
  readonly leftMs: number;
  readonly queueLength: number;
  /** As the leader measures it; 0 from other nodes. Of a counting name without a free slot: until the first one opens. */
  readonly coolDownLeftMs: number;
}
/** One domain, with who waits for it. */
export interface GetAnswer extends DomainView {
  readonly type: 'get';
  /** The first {@link SHOWN_WAITERS} of them. */
  readonly waiters: readonly WaiterView[];
}
/** Domains in byte order of their names. */
export interface ListAnswer {
  readonly type: 'list';
  readonly domains: readonly DomainView[];
  /** What `after` of the next page is; '' on the last one. */
  readonly next: string;
}
/** Waiters that a Get shows. */
export const SHOWN_WAITERS = 100;
/** A queued request, without its id, which is a bearer secret (S6). */
export interface WaiterView {
  readonly holder: string;
  readonly metadata: Metadata;
  readonly queuedAtUnixMs: number;
}
/** Ended, or not live. */
export interface ForceReleaseAnswer {
  readonly type: 'forceRelease';
  readonly released: boolean;
  readonly currentToken: Revision;
}
/** The limits before the change, and from it on. */
export interface ChangeLimitsAnswer {
  readonly type: 'changeLimits';
  readonly before: SharedLimits;
  readonly after: SharedLimits;
}
/** Handed over. */
export interface TransferLeadershipAnswer {
  readonly type: 'transferLeadership';
  readonly leader: NodeId;
}
/** A node's part in the cluster. */
export type RoleView = 'follower' | 'candidate' | 'leader' | 'stopped';
/** A member as the answering node sees it. */
export interface MemberView {
  readonly node: NodeId;
  readonly directory: DirectoryId | undefined;
  readonly peerAddress: string;
  readonly voter: boolean;
  /** From the leader only. */
  readonly reachable: boolean;
  /** Entries it lacks; from the leader only. */
  readonly lag: number;
}
/** One node's view. */
export interface GetStatusAnswer {
  readonly type: 'getStatus';
  readonly node: NodeId;
  readonly leader: NodeId | undefined;
  readonly role: RoleView;
  readonly term: number;
  readonly base: Revision;
  readonly lastRevision: Revision;
  readonly durableRevision: Revision;
  readonly committedRevision: Revision;
  readonly appliedRevision: Revision;
  readonly members: readonly MemberView[];
  /** What is wrong, one line each, with the next step. */
  readonly alarms: readonly string[];
  /** In force at `appliedRevision`; undefined before the node has formed or joined, and from a server older than this field. */
  readonly limits: SharedLimits | undefined;
}
/** A digest. */
export interface GetStateHashAnswer {
  readonly type: 'getStateHash';
  readonly node: NodeId;
  readonly revision: Revision;
  /** 16 hex digits. */
  readonly hash: string;
}
/** Every answer; its `type` is that of its call. */
export type Answer =
  | AcquireAnswer
  | RenewAnswer
  | ReleaseAnswer
  | WithdrawAnswer
  | VerifyAnswer
  | GetAnswer
  | ListAnswer
  | ForceReleaseAnswer
  | ChangeLimitsAnswer
  | TransferLeadershipAnswer
  | GetStatusAnswer
  | GetStateHashAnswer;

/** Comes with every answer. */
export interface Header {
  readonly cluster: string;
  /** Empty before the node has formed or joined. */
  readonly incarnation: Incarnation | '';
  /** The revision up to which the answering state had been applied. */
  readonly revision: Revision;
  /** The node that took the call. */
  readonly node: NodeId;
  /** Who leads, as far as the answering node knows. */
  readonly leader: NodeId | undefined;
}
