import type { Call, Header } from '../base/api.js';
import type { Observation } from '../client/observe.js';
import type { AnswerTo } from '../client/transport.js';

/** An answer and the header that came with it. */
export interface Answered<C extends Call> {
  readonly answer: AnswerTo<C>;
  readonly header: Header | undefined;
}

/** The calls of the command line. All reject with a `FencepostError`. */
export interface Cluster {
  readonly endpoints: readonly string[];
  /** Asks any node, and others when it does not answer, until the time-out. */
  call<C extends Call>(call: C): Promise<Answered<C>>;
  /** Asks the node at this endpoint and no other, once. */
  ask<C extends Call>(endpoint: string, call: C): Promise<Answered<C>>;
  /** What happens below a prefix, from a revision on, or from now. */
  observe(prefix: string, from: bigint | undefined): AsyncIterable<Observation>;
  close(): void;
}
