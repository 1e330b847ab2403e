/** What one run came to. */
import type { Fault } from './observation.js';

/** See the head of the file. */
export interface RunResult {
  readonly seed: number;
  /** Undefined when everything held. `by` is `check`, `assertion` (of the product) or `relation`. */
  readonly failure: (Fault & { readonly by: 'check' | 'assertion' | 'relation'; readonly at: number }) | undefined;
  /** Over everything that happened: equal for two runs of one seed on one source. */
  readonly digest: string;
  /** Tasks run: deliveries, ticks, disk completions, client calls … */
  readonly events: number;
  /** Acquires that were granted. */
  readonly grants: number;
  readonly counts: Readonly<Record<string, number>>;
  /** The last events in the language of test/scenario; empty unless the run failed or a trace was asked for. */
  readonly trace: readonly string[];
  /** The faults that were injected, one line each, numbered as in `RunOptions.without`. */
  readonly faults: readonly string[];
}

/** How to run a seed. */
export interface RunOptions {
  /** Numbers of injected faults to leave out: to reduce a failure. */
  readonly without?: ReadonlySet<number>;
  /** Keep the trace though the run is clean. */
  readonly trace?: boolean;
  /** Which judges look at the run. Default: all. */
  readonly judges?: 'all' | 'checks' | 'relation';
}
