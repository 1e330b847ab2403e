/** What many runs add up to, and whether that is enough. */
import type { RunResult } from '../result.js';

/** Zeros of listed counters count as failures from so many seeds on: before, rare paths may be missed by bad luck. */
export const COVERAGE_SEEDS = 2_000;
/** Means are judged from so many seeds on. */
const MEAN_SEEDS = 200;
/** Below these a run exercises too little to prove anything (issue: honest coverage). */
const MIN_EVENTS = 1_000;
const MIN_GRANTS = 20;

/** Sums over runs. */
export class Totals {
  seeds = 0;
  events = 0;
  grants = 0;
  readonly counts = new Map<string, number>();
  readonly failures: RunResult[] = [];

  add(result: RunResult): void {
    this.seeds++;
    this.events += result.events;
    this.grants += result.grants;
    for (const [name, count] of Object.entries(result.counts)) {
      this.counts.set(name, (this.counts.get(name) ?? 0) + count);
    }
    if (result.failure !== undefined) this.failures.push(result);
  }
}

/** What is wrong with the runs as a whole, one line each. `listed`: the counters that must not stay at zero. */
export function shortcomings(totals: Totals, listed: readonly string[]): readonly string[] {
  const { seeds, events, grants, counts } = totals;
  const found: string[] = [];
  if (seeds >= COVERAGE_SEEDS) {
    const never = listed.filter((name) => (counts.get(name) ?? 0) === 0);
    if (never.length > 0) found.push(`never happened in ${seeds} seeds: ${never.join(', ')}`);
  }
  if (seeds >= MEAN_SEEDS && events / seeds < MIN_EVENTS) {
    found.push(`${Math.round(events / seeds)} events a seed, at least ${MIN_EVENTS} are needed`);
  }
  if (seeds >= MEAN_SEEDS && grants / seeds < MIN_GRANTS) {
    found.push(`${(grants / seeds).toFixed(1)} grants a seed, at least ${MIN_GRANTS} are needed`);
  }
  return found;
}

/** The counters, listed ones first in the order of the list, as lines of a table; a listed zero is marked. */
export function coverageLines(counts: ReadonlyMap<string, number>, listed: readonly string[]): readonly string[] {
  const others = [...counts.keys()].filter((name) => !listed.includes(name)).sort();
  const names = [...listed, ...others];
  const width = Math.max(0, ...names.map((name) => name.length));
  return names.map((name) => {
    const count = counts.get(name) ?? 0;
    return `  ${name.padEnd(width)}  ${String(count).padStart(9)}${count === 0 ? '  ← never' : ''}`;
  });
}
