/** `npm run sim:gate`: takes each protective rule out in turn and demands that the simulator notices. */
import { ENTRY } from '../runner/sim.js';
import { bundle, removeBundles } from '../runner/bundle.js';
import { gateOptions, UsageError } from '../runner/options.js';
import type { GateOptions } from '../runner/options.js';
import { inParallel, numbers, Worker } from '../runner/pool.js';
import { catchOf, patchedFunctions } from './catch.js';
import { patchesOf } from './switch.js';
import type { Switch } from './switch.js';
import { SWITCHES } from './switches.js';

/** The relation alone has to reject runs of so many switches. */
const RELATION_CATCHES = 15;
/** A switch that was caught within so many seeds is run from two more seeds on, for the median of three. */
const REPEAT_WITHIN = 40;
/** A known blind spot gets so many seeds at most. */
const BLIND_SEEDS = 20;
/** The first seeds of the three series, far apart. */
const SERIES = [1, 1_000_001, 2_000_001] as const;

/** What became of one switch. */
export interface Verdict {
  readonly switch: Switch;
  /** Undefined when nothing caught it. */
  readonly by: string | undefined;
  /** How many seeds it took in each series that was run. */
  readonly seeds: readonly number[];
  /** Failures that were no catch, or why there is no run. */
  readonly beside: readonly string[];
}

/** Does what the arguments say and returns the exit code: 0 when all switches were caught but the known blind spots. */
export async function main(args: readonly string[], say: (line: string) => void): Promise<number> {
  const options = gateOptions(args);
  const chosen = SWITCHES.filter(
    ({ name, quick }) => (options.only === undefined || name === options.only) && (!options.quick || quick === true),
  );
  if (chosen.length === 0) {
    throw new UsageError(
      `no switch is named ${options.only ?? ''}; there are ${SWITCHES.map(({ name }) => name).join(', ')}`,
    );
  }
  try {
    const dirty = await findDirty(options);
    if (dirty !== undefined) {
      say(`dirty: ${dirty}. Nothing can be said about switches while a clean run fails: npm run sim`);
      return 1;
    }
    const verdicts: Verdict[] = [];
    await inParallel(chosen, options.jobs, async (each) => {
      const verdict = await judge(each, options);
      verdicts.push(verdict);
      say(`${verdicts.length}/${chosen.length} ${line(verdict)}`);
      return true;
    });
    return report(verdicts, options, say);
  } finally {
    removeBundles();
  }
}

/** The first failure of the code as it is; undefined when there is none. */
async function findDirty({ cleanSeeds, jobs, judges }: GateOptions): Promise<string | undefined> {
  const module = await bundle(ENTRY);
  const workers = Array.from({ length: jobs }, () => new Worker(module));
  let found: string | undefined;
  try {
    await inParallel(numbers(1, cleanSeeds), jobs, async (seed, job) => {
      const failure = (await workers[job]?.run(seed, { judges }))?.failure;
      if (failure !== undefined) found ??= `seed ${seed} fails without any switch (${failure.code}: ${failure.text})`;
      return found === undefined;
    });
    return found;
  } finally {
    for (const worker of workers) worker.close();
  }
}

/** Runs seeds with the rule taken out until one notices. */
export async function judge(
  each: Switch,
  options: Pick<GateOptions, 'judges' | 'maxSeeds' | 'quick'>,
): Promise<Verdict> {
  const { judges, maxSeeds, quick } = options;
  const worker = new Worker(await bundle(ENTRY, patchesOf(each)));
  const patched = patchedFunctions(each);
  const beside = new Map<string, number>();
  const seeds: number[] = [];
  let by: string | undefined;
  try {
    for (const first of SERIES) {
      const most = each.blind === undefined ? maxSeeds : Math.min(maxSeeds, BLIND_SEEDS);
      const budget = first === SERIES[0] ? most : REPEAT_WITHIN;
      for (let tried = 1; tried <= budget; tried++) {
        const result = await worker.run(first + tried - 1, { judges });
        const caught = catchOf(result, patched, judges);
        if (caught !== undefined) {
          by ??= caught;
          seeds.push(tried);
          break;
        }
        const { failure } = result;
        if (failure !== undefined) beside.set(failure.code, (beside.get(failure.code) ?? 0) + 1);
      }
      if (quick || (seeds[0] ?? Infinity) > REPEAT_WITHIN) break;
    }
  } finally {
    worker.close();
  }
  return { switch: each, by, seeds, beside: [...beside].map(([code, count]) => `${count} × ${code}`) };
}

function line({ switch: { name, area, rule, blind }, by, seeds, beside }: Verdict): string {
  const besides = beside.length === 0 ? '' : ` (beside: ${beside.join(', ')})`;
  const missed = blind === undefined ? `NOT CAUGHT: ${rule}` : `blind spot: ${blind}`;
  const outcome = by === undefined ? missed : `${by} after ${median(seeds)}`;
  return `${area.padEnd(7)} ${name.padEnd(38)} ${outcome}${besides}`;
}

function report(verdicts: readonly Verdict[], { judges }: GateOptions, say: (line: string) => void): number {
  say('');
  say('area    switch                                 caught by, after the median of how many seeds');
  const order = SWITCHES.map(({ name }) => name);
  const sorted = [...verdicts].sort((a, b) => order.indexOf(a.switch.name) - order.indexOf(b.switch.name));
  for (const verdict of sorted) say(line(verdict));
  const caught = verdicts.filter(({ by }) => by !== undefined);
  const blind = verdicts.filter(({ by, switch: each }) => by === undefined && each.blind !== undefined);
  say(`${caught.length} of ${verdicts.length} switches caught, ${blind.length} known blind spots`);
  if (judges === 'relation') return caught.length >= RELATION_CATCHES ? 0 : 1;
  const opened = caught.filter(({ switch: each }) => each.blind !== undefined).map(({ switch: { name } }) => name);
  if (opened.length > 0) say(`caught, and still called blind: ${opened.join(', ')}`);
  return caught.length + blind.length === verdicts.length ? 0 : 1;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
