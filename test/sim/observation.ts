/** What a run shows to those who judge it: every start, step and end of a member's process, in true order. */
import type { Member } from '../../src/raft/types.js';
import type { Context } from '../../src/replica/state.js';
import type { Effect, Event, Genesis, Loaded, Time } from '../../src/replica/types.js';

/** Names one life of one member's process. */
export interface Process {
  readonly member: Member;
  /** Rises with every start of any process of the run. */
  readonly run: number;
  readonly genesis: Genesis;
}

/** One turn of a member's executor: the batch of events that the replica was handed, and all that came of it. */
export interface Step {
  readonly process: Process;
  /** True time, milliseconds since the start of the run. */
  readonly at: number;
  /** What the replica was told of the time. */
  readonly time: Time;
  readonly events: readonly Event[];
  /** Not carried out yet. */
  readonly effects: readonly Effect[];
  /** As it is after the step. Live: read what is needed now, keep nothing of it. */
  readonly context: Readonly<Context>;
}

/** Somebody who watches a run. Throws nothing: what is wrong goes to `fault`. */
export interface Observer {
  /** A process begins with what its disk held; its first step comes later. */
  started(process: Process, loaded: Loaded, context: Readonly<Context>): void;
  stepped(step: Step): void;
  /** The process is gone, by a crash, a stop or a failed write. */
  ended(process: Process): void;
  /** The run is over. */
  finished?(): void;
}

/** A rule that does not hold: `code` is one of scenario/README.md, or names a check of this folder. */
export interface Fault {
  readonly code: string;
  readonly text: string;
}

/** Takes what is wrong; the run ends with the first one. */
export type Report = (fault: Fault) => void;
