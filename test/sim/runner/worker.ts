/** The child's half of a worker process: takes seeds from its parent, runs them one after another, sends the results. */
import type { RunOptions, RunResult } from '../result.js';

/** Which judges look at a run. */
export type Judges = NonNullable<RunOptions['judges']>;

/** {@link RunOptions} as they travel between processes. */
export interface WireOptions {
  readonly without?: readonly number[];
  readonly trace?: boolean;
  readonly judges?: Judges;
}

/** What a parent asks for. */
export interface Ask {
  readonly seed: number;
  readonly options: WireOptions;
}

/** What comes back: the result, or that the run itself broke. */
export type Reply =
  { readonly type: 'result'; readonly result: RunResult } | { readonly type: 'broken'; readonly error: string };

/** Serves the parent until it disconnects. */
export function serve(runSeed: (seed: number, options: RunOptions) => Promise<RunResult>): void {
  const reply = (value: Reply): void => {
    process.send?.(value);
  };
  process.on('message', (message) => {
    const { seed, options } = message as Ask;
    const { without, ...rest } = options;
    runSeed(seed, without === undefined ? rest : { ...rest, without: new Set(without) }).then(
      (result) => {
        reply({ type: 'result', result });
      },
      (error: unknown) => {
        reply({ type: 'broken', error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
      },
    );
  });
}
