/** The command lines of `npm run sim` and `npm run sim:gate`. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { Judges } from './worker.js';

/** What the judges of a run may be. */
const JUDGES = ['all', 'checks', 'relation'] as const;

/** `npm run sim -- …` */
export interface SimOptions {
  /** The first seed, and how many. */
  readonly from: number;
  readonly seeds: number;
  /** One seed was named: it is run twice and looked at closely. */
  readonly single: boolean;
  readonly jobs: number;
  readonly trace: boolean;
  readonly without: readonly number[];
  readonly judges: Judges;
  /** Do not stop at the first failure. */
  readonly all: boolean;
}

/** `npm run sim:gate -- …` */
export interface GateOptions {
  readonly quick: boolean;
  readonly only: string | undefined;
  readonly maxSeeds: number;
  readonly cleanSeeds: number;
  readonly judges: Judges;
  readonly jobs: number;
}

/** The command line cannot be followed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Throws {@link UsageError}. */
export function simOptions(args: readonly string[]): SimOptions {
  const { values } = parsed(() =>
    parseArgs({
      args: [...args],
      options: {
        seeds: { type: 'string', default: '200' },
        from: { type: 'string', default: '1' },
        seed: { type: 'string' },
        jobs: { type: 'string' },
        trace: { type: 'boolean', default: false },
        without: { type: 'string', default: '' },
        judges: { type: 'string', default: 'all' },
        all: { type: 'boolean', default: false },
      },
    }),
  );
  const single = values.seed !== undefined;
  return {
    from: whole('seed', values.seed ?? values.from),
    seeds: single ? 1 : whole('seeds', values.seeds),
    single,
    jobs: jobs(values.jobs),
    trace: values.trace,
    without: values.without === '' ? [] : values.without.split(',').map((number) => whole('without', number)),
    judges: judges(values.judges),
    all: values.all,
  };
}

/** Throws {@link UsageError}. */
export function gateOptions(args: readonly string[]): GateOptions {
  const { values } = parsed(() =>
    parseArgs({
      args: [...args],
      options: {
        quick: { type: 'boolean', default: false },
        only: { type: 'string' },
        'max-seeds': { type: 'string', default: '5000' },
        'clean-seeds': { type: 'string', default: '300' },
        judges: { type: 'string', default: 'all' },
        jobs: { type: 'string' },
      },
    }),
  );
  return {
    quick: values.quick,
    only: values.only,
    maxSeeds: whole('max-seeds', values['max-seeds']),
    cleanSeeds: whole('clean-seeds', values['clean-seeds']),
    judges: judges(values.judges),
    jobs: jobs(values.jobs),
  };
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function whole(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} takes a whole number, not "${text}"`);
  return Number(text);
}

function jobs(text: string | undefined): number {
  return text === undefined ? availableParallelism() : Math.max(1, whole('jobs', text));
}

function judges(text: string): Judges {
  const found = JUDGES.find((each) => each === text);
  if (found === undefined) throw new UsageError(`--judges takes ${JUDGES.join(', ')}, not "${text}"`);
  return found;
}
