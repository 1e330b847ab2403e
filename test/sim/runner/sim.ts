/** `npm run sim`: runs seeds on all cores, says what happened in them, shows the first failure so that it can be replayed. */
import { LISTED } from '../listed.js';
import type { RunResult } from '../result.js';
import { bundle, removeBundles } from './bundle.js';
import { failureText, reduceFaults } from './failure.js';
import { simOptions } from './options.js';
import type { SimOptions } from './options.js';
import { inParallel, numbers, Worker } from './pool.js';
import { coverageLines, shortcomings, Totals } from './totals.js';
import type { WireOptions } from './worker.js';

/** What a worker runs. */
export const ENTRY = 'test/sim/main.ts';
/** Milliseconds between two lines of progress. */
const SAY_EVERY_MS = 10_000;

/** Does what the arguments say and returns the exit code: 0 when everything held. `say` gets the lines. */
export async function main(args: readonly string[], say: (line: string) => void, entry = ENTRY): Promise<number> {
  const options = simOptions(args);
  try {
    const module = await bundle(entry);
    return options.single ? await runOne(module, options, say) : await runMany(module, options, say);
  } finally {
    removeBundles();
  }
}

/** One seed, twice: two runs of one seed must be one and the same. */
async function runOne(module: string, options: SimOptions, say: (line: string) => void): Promise<number> {
  const { from: seed, without, judges, trace } = options;
  const workers = [new Worker(module), new Worker(module)] as const;
  try {
    const wanted: WireOptions = { without, judges, trace: true };
    const [first, second] = await Promise.all([workers[0].run(seed, wanted), workers[1].run(seed, wanted)]);
    if (first.digest !== second.digest) {
      say(`seed ${seed} is not deterministic: two runs have the digests ${first.digest} and ${second.digest}`);
      say(firstDifference(first.trace, second.trace));
      return 1;
    }
    if (trace) for (const line of first.trace) say(line);
    for (const line of coverageLines(new Map(Object.entries(first.counts)), [])) say(line);
    say(`seed ${seed}: ${first.events} events, ${first.grants} grants, digest ${first.digest}, twice`);
    if (first.failure === undefined) {
      for (const fault of first.faults) say(`  fault ${fault}`);
      say(`seed ${seed} is clean`);
      return 0;
    }
    await show(first, options, workers[0], say);
    return 1;
  } finally {
    for (const worker of workers) worker.close();
  }
}

async function runMany(module: string, options: SimOptions, say: (line: string) => void): Promise<number> {
  const { from, seeds, jobs, judges, without, all } = options;
  const workers = Array.from({ length: jobs }, () => new Worker(module));
  const totals = new Totals();
  const startedAt = performance.now();
  let saidAt = startedAt;
  try {
    await inParallel(numbers(from, seeds), jobs, async (seed, job) => {
      const result = await run(workers, job, seed, { judges, without });
      totals.add(result);
      const now = performance.now();
      if (now - saidAt >= SAY_EVERY_MS) {
        saidAt = now;
        say(`${totals.seeds} of ${seeds} seeds, ${totals.failures.length} failed`);
      }
      return all || result.failure === undefined;
    });
    const minutes = (performance.now() - startedAt) / 60_000;
    say('How often each fault and each rare path occurred:');
    for (const line of coverageLines(totals.counts, LISTED)) say(line);
    const rate = Math.round(totals.seeds / minutes);
    say(
      `${totals.seeds} seeds from ${from} in ${(minutes * 60).toFixed(1)} s: ${rate} schedules a minute, ${Math.round(rate / jobs)} a core; ` +
        `${Math.round(totals.events / totals.seeds)} events and ${(totals.grants / totals.seeds).toFixed(1)} grants a seed`,
    );
    const short = shortcomings(totals, LISTED);
    for (const line of short) say(`Not enough: ${line}`);
    const failures = totals.failures.sort((left, right) => left.seed - right.seed);
    for (const { seed, failure } of failures.slice(1)) say(`seed ${seed} failed too: ${failure?.code ?? ''}`);
    const [first] = failures;
    if (first !== undefined) {
      const [worker] = workers;
      if (worker !== undefined) await show(first, options, worker, say);
    }
    say(failures.length === 0 && short.length === 0 ? 'sim: clean' : 'sim: FAILED');
    return failures.length === 0 && short.length === 0 ? 0 : 1;
  } finally {
    for (const worker of workers) worker.close();
  }
}

function run(workers: readonly Worker[], job: number, seed: number, options: WireOptions): Promise<RunResult> {
  const worker = workers[job];
  if (worker === undefined) throw new RangeError(`there is no worker ${job}`);
  return worker.run(seed, options);
}

async function show(
  failed: RunResult,
  options: SimOptions,
  worker: Worker,
  say: (line: string) => void,
): Promise<void> {
  const { judges } = options;
  say(`seed ${failed.seed}: leaving out faults …`);
  const reduced = await reduceFaults(failed, options.without, (without) =>
    worker.run(failed.seed, { without, judges }),
  );
  say(failureText(reduced, judges));
}

function firstDifference(left: readonly string[], right: readonly string[]): string {
  const at = left.findIndex((line, index) => line !== right[index]);
  return at < 0
    ? `their traces agree in ${left.length} lines; one goes on longer`
    : `they part at event ${at + 1}:\n  ${left[at] ?? ''}\n  ${right[at] ?? ''}`;
}
