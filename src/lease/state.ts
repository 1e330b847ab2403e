/**
 * The replicated state: which leases live, who waits, which requests are over. It lives in memory; `records.ts` says what
 * of it goes to disk, `load.ts` makes it of that, `change.ts` holds the only functions that change it.
 */
import type { BigMap } from '../base/big-map.js';
import type { Domain } from '../base/ids.js';
import type { History, Revision } from '../base/revision.js';
import type { Fifo } from './fifo.js';
import type { Names } from './names.js';
import type { Queue } from './queue.js';
import type { RequestTable } from './requests.js';
import type { CoolDown, CountingName, Lease, StateLimits, StateSummary, Waiter } from './types.js';

/** The state at one revision. Others read `revision` and use the functions of this folder for the rest. */
export interface State {
  /** The revision of the last entry applied. */
  revision: Revision;
  readonly history: History;
  /** Replaced as a whole: a cut may still hold the one before. */
  limits: StateLimits;
  /** Grants are held back until EndHold (F14). */
  holding: boolean;
  /** By domain, or by slot. */
  readonly leases: BigMap<Domain, Lease>;
  /** By domain or counting name; none is empty. */
  readonly queues: Map<Domain, Queue>;
  /** By domain, or by slot. */
  readonly coolDowns: Map<Domain, CoolDown>;
  /** The counting names. */
  readonly slots: Map<Domain, Slots>;
  /** Of all of these that a List shows. */
  readonly names: Names;
  readonly requests: RequestTable;
  readonly counts: Counts;
  readonly changes: ChangeLog;
}

/** A counting name and which of its slots are taken: held, or closed by a cool-down. */
export interface Slots {
  readonly counting: CountingName;
  readonly taken: boolean[];
  /** How many are. */
  count: number;
}

/** What somebody, or a prefix, has. */
export interface Counted {
  leases: number;
  waiters: number;
}

/** By principal and by prefix. */
export interface Counts {
  /** Counting names by who began them. */
  readonly names: Map<string, number>;
  readonly principals: Map<string, Counted>;
  /** Replaced with the limits. */
  prefixes: ReadonlyMap<string, Counted>;
}

/** What has changed since the last cut was taken. */
export interface ChangeLog {
  /** The revision of the last cut: requests that finished above it are in no record yet. */
  takenAt: Revision;
  /** The records that changed, by kind and what they are of. */
  readonly dirty: {
    readonly domain: Map<Domain, Dirty>;
    readonly waiter: Map<Waiter, Dirty>;
    readonly coolDown: Map<Domain, Dirty>;
    readonly counting: Map<Domain, Dirty>;
  };
  /** The key of every `finished` record that the table holds, ascending. */
  readonly batches: Fifo<Revision>;
  /** Those of them that hold nothing but forgotten requests. */
  outdated: Revision[];
  /** Estimate of the next cut's size in bytes. */
  bytes: number;
}

/** A record that changed since the last cut. */
export interface Dirty {
  /** Whether the last cut has it, so that a cut without it must remove it. */
  readonly stored: boolean;
  /** What it adds to {@link ChangeLog.bytes}. */
  bytes: number;
}

/** The part of the state that goes into a cut's meta record. */
export function summaryOf(state: State): StateSummary {
  return { forgotten: state.requests.forgotten, holding: state.holding, limits: state.limits };
}
