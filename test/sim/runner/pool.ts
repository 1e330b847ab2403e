/** The parent's half: worker processes that run seeds of one bundle, each watched for seeds that never end. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { RunResult } from '../result.js';
import type { Ask, Reply, WireOptions } from './worker.js';

/** A seed that takes longer than this has hung, also on a machine that is busy with ten other things. */
export const HUNG_MS = 120_000;
/** Megabytes of heap for a worker: a run that grows without bound shall end soon. */
const HEAP_MB = 1_024;
/** Characters of a dead worker's last words that are shown. */
const LAST_WORDS = 4_000;

/** One process; it is started when first needed, and anew after it died. */
export class Worker {
  readonly #module: string;
  readonly #hungMs: number;
  #child: ChildProcess | undefined;

  /** `module` is a bundle whose entry calls `serve`. */
  constructor(module: string, hungMs = HUNG_MS) {
    this.#module = module;
    this.#hungMs = hungMs;
  }

  /** Runs one seed. Never rejects: a run that hangs, breaks or takes the process down is a failed run with that seed. */
  run(seed: number, options: WireOptions = {}): Promise<RunResult> {
    const child = (this.#child ??= fork(this.#module, {
      // Runs make much that lives shortly; there is a worker for each core, so none is left to help with collecting it. A
      // young space of 16 or 64 MB takes longer. A run's code is wide and flat: it gains by being compiled at first call.
      execArgv: [
        '--enable-source-maps',
        `--max-old-space-size=${HEAP_MB}`,
        '--max-semi-space-size=32',
        '--single-threaded-gc',
        '--always-sparkplug',
      ],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    }));
    return new Promise((resolve) => {
      let lastWords = '';
      const listen = (data: Buffer): void => {
        lastWords = (lastWords + data.toString()).slice(-LAST_WORDS);
      };
      const end = (result: RunResult): void => {
        clearTimeout(timer);
        child.off('message', answered);
        child.off('exit', died);
        child.stderr?.off('data', listen);
        resolve(result);
      };
      const answered = (message: unknown): void => {
        const reply = message as Reply;
        end(reply.type === 'result' ? reply.result : brokenRun(seed, 'BROKEN', reply.error));
      };
      const died = (code: number | null, signal: string | null): void => {
        this.#child = undefined;
        end(brokenRun(seed, 'DIED', `the process ended with ${code ?? signal ?? 'nothing'}\n${lastWords}`));
      };
      const timer = setTimeout(() => {
        this.close();
        end(brokenRun(seed, 'HUNG', `no result within ${this.#hungMs / 1_000} s`));
      }, this.#hungMs);
      child.on('message', answered);
      child.on('exit', died);
      child.stderr?.on('data', listen);
      child.send({ seed, options } satisfies Ask);
    });
  }

  /** Ends the process. */
  close(): void {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }
}

/** A run that gave no result of its own. */
function brokenRun(seed: number, code: string, text: string): RunResult {
  return {
    seed,
    failure: { code, text, by: 'check', at: 0 },
    digest: '',
    events: 0,
    grants: 0,
    counts: {},
    trace: [],
    faults: [],
  };
}

/**
 * Hands `items` out to `jobs` workers of `start` at once, each of which does one after another, until there are no more
 * or `work` returns false. Rejects with the first error of `work`.
 */
export async function inParallel<T>(
  items: Iterable<T>,
  jobs: number,
  work: (item: T, job: number) => Promise<boolean>,
): Promise<void> {
  const source = items[Symbol.iterator]();
  let goOn = true;
  const one = async (job: number): Promise<void> => {
    while (goOn) {
      const next = source.next();
      if (next.done === true) return;
      if (!(await work(next.value, job))) goOn = false;
    }
  };
  await Promise.all(Array.from({ length: jobs }, (_, job) => one(job)));
}

/** Whole numbers from `from` on, `count` of them. */
export function* numbers(from: number, count: number): Iterable<number> {
  for (let i = 0; i < count; i++) yield from + i;
}
