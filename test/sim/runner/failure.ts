/** Shows a failed run so that somebody can act on it: the command that replays it, its faults made few, its last events. */
import type { RunResult } from '../result.js';
import type { Judges } from './worker.js';
import { reduce } from './reduce.js';

/** Re-runs, and milliseconds, that the reduction of a fault list may cost. */
const REDUCE_RUNS = 200;
const REDUCE_MS = 60_000;
/** Events that are shown. */
const LAST_EVENTS = 200;

/** The command that runs this seed again, with these faults left out. */
export function replayCommand(seed: number, without: readonly number[], judges: Judges = 'all'): string {
  const parts = [`npm run sim -- --seed ${seed}`];
  if (without.length > 0) parts.push(`--without ${without.join(',')}`);
  if (judges !== 'all') parts.push(`--judges ${judges}`);
  return parts.join(' ');
}

/** The failure with as few faults as it needs. */
export interface Reduced {
  /** The run with all of `without` left out; it fails with the same code. */
  readonly result: RunResult;
  readonly without: readonly number[];
}

/** Leaves out faults for as long as the run fails with the same code. `without`: what is left out already. */
export async function reduceFaults(
  failed: RunResult,
  without: readonly number[],
  rerun: (without: readonly number[]) => Promise<RunResult>,
): Promise<Reduced> {
  const code = failed.failure?.code;
  const all = failed.faults.map(faultNumber).filter((number) => !without.includes(number));
  let best: Reduced = { result: failed, without };
  const until = performance.now() + REDUCE_MS;
  let runs = 0;
  await reduce(
    all,
    async (kept) => {
      const left = [...without, ...all.filter((number) => !kept.includes(number))].sort((a, b) => a - b);
      runs++;
      const result = await rerun(left);
      if (result.failure?.code !== code) return false;
      best = { result, without: left };
      return true;
    },
    () => runs < REDUCE_RUNS && performance.now() < until,
  );
  return best;
}

/** What a person needs to know of a failure. */
export function failureText({ result, without }: Reduced, judges: Judges = 'all'): string {
  const { seed, failure, faults, trace } = result;
  if (failure === undefined) throw new Error(`seed ${seed} has not failed`);
  const kept = faults.filter((line) => !without.includes(faultNumber(line)));
  return [
    `The last ${Math.min(LAST_EVENTS, trace.length)} events of seed ${seed}:`,
    ...trace.slice(-LAST_EVENTS).map((line) => `  ${line}`),
    '',
    kept.length === 0 ? 'It needs none of the injected faults.' : `Faults that it needs (${kept.length}):`,
    ...kept.map((line) => `  ${line}`),
    '',
    `seed ${seed} failed after ${Math.round(failure.at)} ms of virtual time: ${failure.code} (${failure.by})`,
    failure.text,
    '',
    `Replay with:  ${replayCommand(seed, without, judges)}`,
  ].join('\n');
}

/** The number that stands at the beginning of a fault's line. */
export function faultNumber(line: string): number {
  const number = Number.parseInt(line, 10);
  if (Number.isNaN(number)) throw new Error(`a fault without a number: ${line}`);
  return number;
}
