/**
 * The vocabulary of the replicated state machine. `apply` uses nothing but state and entry: no clock, no randomness.
 * Every order in the state is a field of a record, never the insertion order of a Map (S4).
 */
import type { EndedView, Metadata } from '../base/api.js';
import type { Domain, RequestId } from '../base/ids.js';
import type { Revision } from '../base/revision.js';

/** The grant of one domain to one holder. Identified by (domain, token). */
export interface Lease {
  readonly domain: Domain;
  /** The revision of the entry that granted it: the fencing token. */
  readonly token: Revision;
  /** The id of the acquire that it answers; kept for as long as the lease lives. */
  readonly requestId: RequestId;
  readonly holder: string;
  readonly metadata: Metadata;
  readonly ttlMs: number;
  /** The leader's wall clock at the proposal; for people, decides nothing. */
  readonly grantedAtUnixMs: number;
  /** Who may use the request id: the certificate's subject, or '' when it binds nobody. */
  readonly owner: string;
  /** Checkpoints and Voids of this lease applied so far (Expire compares it). */
  readonly version: number;
  /** Set while a Checkpoint is applied and not voided: what is left of the lease for a leader that starts now. */
  readonly checkpointLeftMs: number | undefined;
}

/** How a request ended: a released, expired or withdrawn lease, or a withdrawal that came before any grant. */
export interface FinishedRequest {
  readonly requestId: RequestId;
  readonly domain: Domain;
  /** The revision of the entry that ended it; the order of eviction. */
  readonly finishedAt: Revision;
  /** The token that it had been granted; undefined when it was withdrawn before a grant. */
  readonly token: Revision | undefined;
  readonly reason: 'expired' | 'released' | 'withdrawn' | 'force_released' | 'earlier_history';
  /** For `force_released`. */
  readonly by: string;
  readonly note: string;
  readonly owner: string;
  /** What the acquire asked for (domain apart): the same id must come with the same; undefined for a withdrawal of an unknown id. */
  readonly asked: { readonly ttlMs: number; readonly holder: string } | undefined;
}

/** The limits that `apply` uses: state, set by Genesis. */
export interface StateLimits {
  /** Finished requests that are kept at least. */
  readonly finishedRequests: number;
}

/** What a log entry of kind `command` says. One client operation per entry. */
export type Command =
  | {
      readonly type: 'acquire';
      readonly domain: Domain;
      readonly requestId: RequestId;
      readonly holder: string;
      readonly ttlMs: number;
      readonly metadata: Metadata;
      readonly seenRevision: Revision;
      readonly atUnixMs: number;
      readonly owner: string;
    }
  | { readonly type: 'withdraw'; readonly domain: Domain; readonly requestId: RequestId; readonly owner: string }
  | { readonly type: 'release'; readonly domain: Domain; readonly token: Revision; readonly owner: string }
  | {
      readonly type: 'forceRelease';
      readonly domain: Domain;
      readonly token: Revision;
      readonly note: string;
      readonly by: string;
    }
  /** Ends each lease whose version is unchanged, if the entry's term is `term`. */
  | { readonly type: 'expire'; readonly term: number; readonly leases: readonly LeaseVersion[] }
  | { readonly type: 'checkpoint'; readonly leases: readonly LeaseLeft[] }
  | { readonly type: 'void'; readonly leases: readonly LeaseKey[] }
  /** Grants are allowed from here, if the entry's term is `term`. */
  | { readonly type: 'endHold'; readonly term: number };

/** (domain, token). */
export interface LeaseKey {
  readonly domain: Domain;
  readonly token: Revision;
}
/** A lease as the proposer saw it. */
export interface LeaseVersion extends LeaseKey {
  readonly version: number;
}
/** A lease and what is left of it in milliseconds, rounded up. */
export interface LeaseLeft extends LeaseKey {
  readonly leftMs: number;
}

/** What one entry did, for the caller that proposed it. */
export type Result =
  /** A new grant, or a known id whose lease lives. */
  | { readonly type: 'granted'; readonly lease: Lease }
  | { readonly type: 'notGranted'; readonly reason: 'held' | 'recovering'; readonly current: Lease | undefined }
  /** A known id, over. */
  | { readonly type: 'ended'; readonly ended: EndedView }
  | { readonly type: 'tooOld'; readonly forgotten: Revision }
  /** The id was used with other contents or by another owner; `difference` names the field. */
  | { readonly type: 'reused'; readonly difference: string }
  | { readonly type: 'released'; readonly released: boolean; readonly ended: EndedView | undefined }
  | { readonly type: 'withdrawn' }
  | { readonly type: 'forceReleased'; readonly released: boolean; readonly currentToken: Revision }
  /** Outcome of an internal command or a no-op: nobody waits for more than the fact that it is applied. */
  | { readonly type: 'done' };

/** Everything that one entry changed. */
export interface Applied {
  readonly result: Result;
  /** Leases that this entry granted (0 or 1 without a queue). */
  readonly granted: readonly Lease[];
  /** Leases that this entry ended, with why. */
  readonly ended: readonly { readonly lease: Lease; readonly reason: FinishedRequest['reason'] }[];
}

/** What the state table stores: the state is the sum of its records. */
export type StateRecord =
  /** A domain that is held; absent when nobody holds it. */
  | { readonly type: 'domain'; readonly domain: Domain; readonly lease: Lease }
  /** The requests that finished between two cuts, in order; the key is the last one's revision. */
  | { readonly type: 'finished'; readonly lastRevision: Revision; readonly requests: readonly FinishedRequest[] };

/** Names a record. */
export type RecordKey =
  { readonly type: 'domain'; readonly domain: Domain } | { readonly type: 'finished'; readonly lastRevision: Revision };

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
