/**
 * What a log entry of kind `command` says: one client operation, or one act of a leader. Leaders' commands carry the
 * proposer's term where an older leader's copy could do harm; they have no form outside the log and are never forwarded.
 */
import type { Metadata } from '../base/api.js';
import type { Domain, RequestId } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import type { ChangeableLimits } from './types.js';

/** (domain, token). */
export interface LeaseKey {
  readonly domain: Domain;
  readonly token: Revision;
}
/** A lease and what is left of it in milliseconds, rounded up. */
export interface LeaseLeft extends LeaseKey {
  readonly leftMs: number;
}
/**
 * Waiters whom a hand-over passes over: the detached ones in front of the last that it may come to, as the proposer saw
 * the queue. They keep their place (design 7, Hand-over). In a command that frees several places of one name, the list is
 * with the first of them.
 */
export interface Passing {
  readonly detached: readonly RequestId[];
}
/** The leader's wall clock at the proposal, milliseconds since 1970: since when a lease handed over is held, for people. */
export interface Stamped {
  readonly atUnixMs: number;
}
/** A lease as the proposer saw it, and its queue. */
export interface LeaseEnd extends LeaseKey, Passing {
  readonly version: number;
}
/** A cool-down as the proposer saw it, and the queue behind it. */
export interface CoolDownEnd extends Passing {
  readonly domain: Domain;
  readonly since: Revision;
}
/** A waiter whom nobody calls for, or whose wait is over; and the queue, should it have been granted meanwhile. */
export interface WaitEnd extends Passing {
  readonly requestId: RequestId;
}

/** Every command. */
export type Command =
  | ({
      readonly type: 'acquire';
      readonly domain: Domain;
      readonly requestId: RequestId;
      readonly holder: string;
      readonly ttlMs: number;
      /** 0: do not queue. */
      readonly waitMs: number;
      readonly metadata: Metadata;
      readonly coolDownMs: number;
      /** 1: exclusive. */
      readonly slots: number;
      readonly seenRevision: Revision;
      readonly owner: string;
      readonly principal: string;
    } & Stamped)
  | ({
      readonly type: 'withdraw';
      readonly domain: Domain;
      readonly requestId: RequestId;
      readonly owner: string;
    } & Passing &
      Stamped)
  | ({ readonly type: 'release'; readonly owner: string } & LeaseKey & Passing & Stamped)
  | ({ readonly type: 'forceRelease'; readonly note: string; readonly by: string } & LeaseKey & Passing & Stamped)
  /** Sets the limits that `change` names, and leaves the others: it is applied to what is in force then, not to what was seen. */
  | { readonly type: 'limits'; readonly change: Partial<ChangeableLimits>; readonly by: string }
  /** Ends each lease whose version is unchanged, if the entry's term is `term`. */
  | ({ readonly type: 'expire'; readonly term: number; readonly leases: readonly LeaseEnd[] } & Stamped)
  /** Ends waits, and what was granted to them in between, if the entry's term is `term` (F7). */
  | ({ readonly type: 'endWait'; readonly term: number; readonly waits: readonly WaitEnd[] } & Stamped)
  /** Opens each domain whose cool-down is still that one, if the entry's term is `term`. */
  | ({ readonly type: 'endCoolDown'; readonly term: number; readonly domains: readonly CoolDownEnd[] } & Stamped)
  | { readonly type: 'checkpoint'; readonly leases: readonly LeaseLeft[] }
  | { readonly type: 'void'; readonly leases: readonly LeaseKey[] }
  /** Grants are allowed from here, if the entry's term is `term`. */
  | { readonly type: 'endHold'; readonly term: number };

/** The command of one type. */
export type CommandOf<Type extends Command['type']> = Extract<Command, { readonly type: Type }>;
