/**
 * What the clients of a chaos run write down: one JSON line for each event, written before what follows from it is
 * done, so that a process that is killed or stopped leaves nothing unsaid. All times are of `clock.ts`.
 */
import type { Answer, Call } from '../../../src/base/api.js';
import type { Revision } from '../../../src/base/revision.js';

/** A call by a stock gRPC client was begun. */
export interface Began {
  readonly type: 'began';
  readonly at: number;
  /** Unique in the run. */
  readonly op: string;
  /** Who makes it; does one thing after another, but for the copies of a call that it sends at the same time. */
  readonly actor: string;
  /** The place of the node that is called, from 0. */
  readonly node: number;
  readonly call: ClientCall;
}

/** It ended. */
export interface Ended {
  readonly type: 'ended';
  readonly at: number;
  readonly op: string;
  /** Undefined when it failed. */
  readonly answer: Answer | undefined;
  /** The revision in the answer's header. */
  readonly revision: Revision;
  /** How it failed: `not-done` had no effect, `unknown` may have one, even later. */
  readonly failed: 'not-done' | 'unknown' | undefined;
  /** The reason that the node gave, or the status. */
  readonly reason: string;
}

/** The client library handed out a lease. */
export interface Granted extends Tenure {
  readonly type: 'granted';
  /** Before `acquire` was called. */
  readonly from: number;
  readonly ttlMs: number;
  readonly coolDownMs: number;
}

/** `isHeld()` was true at a moment between `from` and `at`. */
export interface Claimed extends Tenure {
  readonly type: 'claimed';
  readonly from: number;
}

/** A handle was found lost. */
export interface Lost extends Tenure {
  readonly type: 'lost';
  /** `deadline`, or how the cluster said that it ended. */
  readonly why: string;
}

/** `release()` is about to be called. */
export interface Releasing extends Tenure {
  readonly type: 'releasing';
}

/** `verify(…)` of the client library, linearizable. */
export interface Verified extends Tenure {
  readonly type: 'verified';
  readonly from: number;
  readonly current: boolean;
}

/** A write to the fenced resource ended. */
export interface Wrote extends Tenure {
  readonly type: 'wrote';
  readonly from: number;
  readonly status: 'applied' | 'stale' | 'rejected' | 'failed';
}

/** `acquire` of the client library gave no lease. */
export interface Missed {
  readonly type: 'missed';
  readonly at: number;
  readonly domain: string;
  readonly code: string;
}

/** An observer asks for everything from a revision on; 0: from now on. */
export interface Observing {
  readonly type: 'observing';
  readonly at: number;
  /** Unique in the run. */
  readonly observer: string;
  readonly from: number;
}

/** It was told of everything up to a revision. */
export interface Observed {
  readonly type: 'observed';
  readonly at: number;
  readonly observer: string;
  readonly to: number;
  readonly leases: readonly SeenLease[];
}

/** A lease that began or ended at a revision. */
export interface SeenLease {
  readonly revision: number;
  readonly domain: string;
  readonly token: number;
  readonly live: boolean;
}

/** Who speaks of which lease, and when. */
interface Tenure {
  readonly at: number;
  readonly domain: string;
  readonly token: number;
  /** The handle that it is about; unique in the run. */
  readonly handle: string;
}

/** The calls that clients make. */
export type ClientCall = Extract<
  Call,
  { readonly type: 'acquire' | 'renew' | 'release' | 'withdraw' | 'verify' | 'get' }
>;

/** One line. */
export type ClientEvent =
  Began | Ended | Granted | Claimed | Lost | Releasing | Verified | Wrote | Missed | Observing | Observed;

/** One line of the resource, in the order in which the writes were committed. */
export interface Applied {
  readonly type: 'applied';
  readonly at: number;
  readonly domain: string;
  readonly token: number;
}
