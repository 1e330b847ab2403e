/**
 * The vocabulary of the replicated state machine. `apply` uses nothing but state and entry: no clock, no randomness.
 * Every order in the state is a field of a record, never the insertion order of a Map (S4).
 */
import type { EndedView, Metadata } from '../base/api.js';
import type { Domain, RequestId } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import type { PrefixQuota } from '../base/shared-limits.js';

/** The grant of one domain, or of one slot of a counting name, to one holder. Identified by (domain, token). */
export interface Lease {
  /** What is owned; for a slot its own name, `name#k`. */
  readonly domain: Domain;
  /** The revision of the entry that granted it: the fencing token. */
  readonly token: Revision;
  /** The id of the acquire that it answers; kept for as long as the lease lives. */
  readonly requestId: RequestId;
  readonly holder: string;
  readonly metadata: Metadata;
  readonly ttlMs: number;
  /** How long the domain stays closed if this lease expires; 0 for not at all. */
  readonly coolDownMs: number;
  /** The leader's wall clock when it proposed the granting entry; for people, decides nothing. */
  readonly grantedAtUnixMs: number;
  /** Who may use the request id: the certificate's subject, or '' when it binds nobody. */
  readonly owner: string;
  /** Whose quota it counts against. */
  readonly principal: string;
  /** Checkpoints and Voids of this lease applied so far (Expire compares it). */
  readonly version: number;
  /** Set while a Checkpoint is applied and not voided: what is left of the lease for a leader that starts now. */
  readonly checkpointLeftMs: number | undefined;
}

/** A queued acquire. Its place in the queue is the order of `queuedAt`. */
export interface Waiter {
  /** What it waits for: a domain or a counting name. */
  readonly domain: Domain;
  /** The revision of the entry that queued it; one entry queues at most one. */
  readonly queuedAt: Revision;
  readonly requestId: RequestId;
  readonly holder: string;
  readonly metadata: Metadata;
  readonly ttlMs: number;
  readonly coolDownMs: number;
  /** 1 for an exclusive domain, else the number of slots of the name. */
  readonly slots: number;
  /** How long it may wait in all. Only leaders measure it: from the queueing entry, a new leader from its no-op. */
  readonly waitMs: number;
  /** The leader's wall clock at the proposal; for people, decides nothing. */
  readonly queuedAtUnixMs: number;
  readonly owner: string;
  readonly principal: string;
}

/** A domain, or a slot, that is closed after an expiry until an EndCoolDown. */
export interface CoolDown {
  readonly domain: Domain;
  /** The revision of the expiry: what EndCoolDown compares. */
  readonly since: Revision;
  readonly ms: number;
}

/** A name whose slots are counted. It exists from its first grant on, for good (F12). */
export interface CountingName {
  readonly name: Domain;
  /** 2–1 000. */
  readonly slots: number;
  /** Who began it: it counts against that principal's share of the names. */
  readonly principal: string;
}

/** What an acquire asked for, domain apart: the same id must come with the same. */
export interface Asked {
  readonly ttlMs: number;
  readonly holder: string;
  readonly coolDownMs: number;
  readonly slots: number;
}

/** How a request ended: a released, expired or withdrawn lease, or a request that was over before any grant. */
export interface FinishedRequest {
  readonly requestId: RequestId;
  /** What it was granted; a domain or a name when it was over before. */
  readonly domain: Domain;
  /** The revision of the entry that ended it; the order of eviction. */
  readonly finishedAt: Revision;
  /** The token that it had been granted; undefined when it was over before a grant. */
  readonly token: Revision | undefined;
  readonly reason: 'expired' | 'released' | 'withdrawn' | 'force_released' | 'earlier_history' | 'left_queue';
  /** For `force_released`. */
  readonly by: string;
  readonly note: string;
  readonly owner: string;
  /** Undefined for a withdrawal of an unknown id. */
  readonly asked: Asked | undefined;
}

/** The limits that `apply` uses: state, set by Genesis. An operator may change those of {@link ChangeableLimits}. */
export interface StateLimits {
  /** Finished requests that are kept at least. */
  readonly finishedRequests: number;
  /** Waiters of one domain or name. */
  readonly queue: number;
  /**
   * Leases that one principal may hold, with its waiting requests, each of which may become one: else waiting would evade
   * it. A waiter's grant is not refused for it.
   */
  readonly leasesPerPrincipal: number;
  /** Requests of one principal that may wait. */
  readonly waitersPerPrincipal: number;
  /**
   * Counting names, which are never forgotten. One principal may begin no more than are left for all others then: half of
   * them, if it is the first.
   */
  readonly countingNames: number;
  /** What all principals together may have below a prefix. */
  readonly prefixes: readonly PrefixQuota[];
}

/** Those that the entry `limits` changes; the rest is fixed by Genesis. */
export type ChangeableLimits = Pick<StateLimits, 'queue' | 'leasesPerPrincipal' | 'waitersPerPrincipal' | 'prefixes'>;

/** What one entry did, for the caller that proposed it. */
export type Result =
  /** A new grant, or a known id whose lease lives. */
  | { readonly type: 'granted'; readonly lease: Lease }
  /** In the queue; see `position` in `lookup.ts` for where. `current` is one of the leases in the way. */
  | { readonly type: 'queued'; readonly waiter: Waiter; readonly current: Lease | undefined }
  | { readonly type: 'notGranted'; readonly reason: RefusalReason; readonly current: Lease | undefined }
  /** A quota is used up: whose, of what, and how much it is. */
  | { readonly type: 'overQuota'; readonly of: string; readonly what: QuotaKind; readonly limit: number }
  /** A known id, over. */
  | { readonly type: 'ended'; readonly ended: EndedView }
  | { readonly type: 'tooOld'; readonly forgotten: Revision }
  /** The id was used with other contents or by another owner; `difference` names the field. */
  | { readonly type: 'reused'; readonly difference: string }
  | { readonly type: 'released'; readonly released: boolean; readonly ended: EndedView | undefined }
  | { readonly type: 'withdrawn' }
  | { readonly type: 'forceReleased'; readonly released: boolean; readonly currentToken: Revision }
  /** What was in force before, and is from here. */
  | { readonly type: 'limitsChanged'; readonly before: StateLimits; readonly after: StateLimits }
  /** Outcome of an internal command or a no-op: nobody waits for more than the fact that it is applied. */
  | { readonly type: 'done' };

/** Why an acquire is answered "not granted" by an entry. */
export type RefusalReason = 'held' | 'recovering' | 'queue_full' | 'cool_down' | 'slots_differ';
/** What quotas count. */
export type QuotaKind = 'leases' | 'leases and waiters' | 'waiters' | 'counting names';

/** Everything that one entry changed. */
export interface Applied {
  readonly result: Result;
  /** Leases that this entry granted, each of another domain, all with its revision as token. */
  readonly granted: readonly Lease[];
  /** Leases that this entry ended, with why. */
  readonly ended: readonly { readonly lease: Lease; readonly reason: FinishedRequest['reason'] }[];
  /** The request that this entry put into a queue. */
  readonly queued: Waiter | undefined;
  /** Waiters that left their queue, granted or not. */
  readonly left: readonly Waiter[];
  /** Domains and slots that this entry closed. */
  readonly closed: readonly CoolDown[];
  /** Domains and slots that it opened again. */
  readonly opened: readonly CoolDown[];
}

/** {@link Applied} but for the result, while it is gathered. */
export interface Doing {
  readonly granted: Lease[];
  readonly ended: { readonly lease: Lease; readonly reason: FinishedRequest['reason'] }[];
  queued: Waiter | undefined;
  readonly left: Waiter[];
  readonly closed: CoolDown[];
  readonly opened: CoolDown[];
}

/** What the state table stores: the state is the sum of its records. */
export type StateRecord =
  /** A domain or slot that is held; absent when nobody holds it. */
  | { readonly type: 'domain'; readonly domain: Domain; readonly lease: Lease }
  | { readonly type: 'waiter'; readonly queuedAt: Revision; readonly waiter: Waiter }
  | { readonly type: 'coolDown'; readonly domain: Domain; readonly coolDown: CoolDown }
  | { readonly type: 'counting'; readonly domain: Domain; readonly counting: CountingName }
  /** The requests that finished between two cuts, in order; the key is the last one's revision. */
  | { readonly type: 'finished'; readonly lastRevision: Revision; readonly requests: readonly FinishedRequest[] };

/** Names a record. */
export type RecordKey =
  | { readonly type: 'domain'; readonly domain: Domain }
  | { readonly type: 'coolDown'; readonly domain: Domain }
  | { readonly type: 'counting'; readonly domain: Domain }
  | { readonly type: 'waiter'; readonly queuedAt: Revision }
  | { readonly type: 'finished'; readonly lastRevision: Revision };

/** The part of the state that is in a cut's meta record. */
export interface StateSummary {
  /** The greatest finish revision evicted; an unknown id that has seen less is refused. */
  readonly forgotten: Revision;
  /** Grants are held back (after forming with a hold) until EndHold. */
  readonly holding: boolean;
  readonly limits: StateLimits;
}

/** The changes since the last cut. */
export interface StateChanges {
  readonly summary: StateSummary;
  readonly put: readonly StateRecord[];
  readonly remove: readonly RecordKey[];
}
