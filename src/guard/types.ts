/** What all guards share: what they need of a lease, and how a guarded operation ends. */

/** What a guard needs of a lease. The client's `Lease` has it; so has any object with the same four facts. */
export interface FencedLease {
  /** The ownership domain. */
  readonly domain: string;
  /** The fencing token: 1 to 2^63 − 1, compared with all its bits. */
  readonly token: bigint;
  /** The name of the cluster that granted it. */
  readonly cluster: string;
  /** The history of that cluster; compared for equality only. */
  readonly incarnation: string;
}

/** The operation was carried out, and the fence stands at the lease's token. */
export interface Applied<T> {
  /** Tells the outcomes apart. */
  readonly status: 'applied';
  /** What the work returned. */
  readonly value: T;
  /**
   * Set when this operation was the first of another history of the cluster (a restore): the incarnation before. Worth
   * a line in the log; the greater token made it safe.
   */
  readonly earlierIncarnation: string | undefined;
}

/** A greater token was accepted before: nothing was changed. Never try again under this lease. */
export interface Stale {
  /** Tells the outcomes apart. */
  readonly status: 'stale';
  /** The greatest token accepted. */
  readonly fence: bigint;
}

/**
 * Refused for another cause than a greater token: nothing was changed. `issuer`: the fence belongs to another cluster
 * than the lease's, and their tokens do not compare. `incarnation`: the very token of the fence, but of another history:
 * two leases that nothing orders. `jump`: a token so far above the fence that no cluster grants it.
 */
export interface Rejected {
  /** Tells the outcomes apart. */
  readonly status: 'rejected';
  /** See above. */
  readonly reason: 'issuer' | 'incarnation' | 'jump';
  /** What happened, and what an operator does about it. */
  readonly message: string;
}

/**
 * The fence let the operation pass, and a row condition of the operation met no row: what it was to change is not there.
 * Nothing was changed. Only of resources with row conditions.
 */
export interface Missing {
  /** Tells the outcomes apart. */
  readonly status: 'missing';
}

/**
 * The resource gave the operation up because of others at the same time (a serialization failure, a deadlock), and did so
 * again each time that the guard ran it anew. Nothing was changed, and nothing is said about the lease: trying again is
 * allowed, after a pause. Only of resources with transactions of their own.
 */
export interface Retry {
  /** Tells the outcomes apart. */
  readonly status: 'retry';
  /** How often the guard ran the operation, the first time included. */
  readonly attempts: number;
  /** The resource's own error of the last time. */
  readonly cause: unknown;
}

/** How a guarded operation ends on any resource. Failures of the resource itself are thrown. */
export type Outcome<T> = Applied<T> | Stale | Rejected | Missing | Retry;
