/** What the author of a guard writes to have it tested: a store behind the guard, in whatever layout. */
import type { FencedLease, Outcome } from '../types.js';

/** The cases, in their order. */
export const CASE_NAMES = [
  'first write',
  'equal token',
  'higher token',
  'stale token',
  'tenure',
  'stale after delete and re-creation',
  'two items of one domain',
  'two domains',
  'several domains in one mutation',
  'stale behind a raise',
  'raise during a stale write',
  'raise during the first write',
  'failed work',
  'crash between check and commit',
  'lost response',
  'restart',
  'passage of time',
  'tokens of different lengths',
  '2^53 boundary',
  'poison token, capped',
  'poison token, reset',
  'equal token of another incarnation',
  'greater token of another incarnation',
  'another issuer',
  'another issuer, allowed',
  'write without a lease',
  'two holders racing',
] as const;

/** The name of a case. */
export type CaseName = (typeof CASE_NAMES)[number];

/**
 * Awaited once within a guarded write, after the fence was checked and before anything is committed, if the guard runs
 * the caller's work there. When it rejects the write has to be given up, and to reject too.
 */
export type Between = () => Promise<void>;

/** A tenure, as the guard's `open` gives it. */
export interface SubjectTenure {
  /** As {@link GuardedStore.write}, under the lease that was opened, through whatever `open` gave. */
  write(item: string, value: string, between: Between): Promise<Outcome<unknown>>;
}

/**
 * A store behind the guard: small texts, each an item of a domain. Items need not exist before they are written. The
 * optional methods are for what not every store can show; a case that needs one that is absent has to be skipped with a
 * reason ({@link GuardSubject.skips}). Outcomes are handed on as the guard gave them; failures are thrown.
 */
export interface GuardedStore {
  /** Begins a tenure: the guard's `open`. */
  open(lease: FencedLease): Promise<Outcome<SubjectTenure>>;
  /** One guarded operation that stores `value`, whether there is a value already or not. */
  write(lease: FencedLease, item: string, value: string, between: Between): Promise<Outcome<unknown>>;
  /** What is committed, read past the guard. Undefined when there is nothing. */
  read(domain: string, item: string): Promise<string | undefined>;
  /** Ends what {@link GuardSubject.create} began. */
  close(): Promise<void>;

  /** One guarded operation that removes the item. */
  remove?(lease: FencedLease, item: string): Promise<Outcome<unknown>>;
  /** One guarded operation that stores `value` in this item of every lease's domain. */
  writeAll?(leases: readonly FencedLease[], item: string, value: string): Promise<Outcome<unknown>>;
  /**
   * As {@link write}, by a process or a connection that is killed after the fence was checked and before the end of the
   * operation. Resolves when it is gone and the store serves again.
   */
  writeAndCrash?(lease: FencedLease, item: string, value: string): Promise<void>;
  /**
   * As {@link write}, and the answer of the store to what carries it out is lost once, after it was carried out. What the
   * guard makes of that; it may throw.
   */
  writeLosingResponse?(lease: FencedLease, item: string, value: string): Promise<Outcome<unknown>>;
  /** Goes on with the same data as a new process would: nothing of the guard that was in memory is there any more. */
  restart?(): Promise<void>;
  /** Lets happen what the store does in time: its clock runs on by a year, or it expires, evicts, compacts what it may. */
  age?(): Promise<void>;
  /**
   * The greatest step from the fence to a token that the guard takes, as this store is set up: 1 000 or more. The first
   * token of a domain is no step.
   */
  readonly maxJump?: bigint;
  /** The operator's command that sets the fence to what this lease says. */
  reset?(lease: FencedLease): Promise<void>;
  /** The operator's command that gives the domain to the tokens of another cluster. */
  allowIssuer?(domain: string, cluster: string): Promise<void>;
  /** A write by a client that presents no lease, over the same connections as the guarded ones. Throws when it is refused. */
  writeWithoutLease?(domain: string, item: string, value: string): Promise<void>;
}

/** A guard under test. */
export interface GuardSubject {
  /** For messages. */
  readonly name: string;
  /** A store with nothing in it, for one case. */
  create(): Promise<GuardedStore>;
  /** Cases that make no sense for this guard, and for each why. The report has them. */
  readonly skips?: Partial<Record<CaseName, string>>;
}
