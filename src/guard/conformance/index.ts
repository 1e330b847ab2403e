/**
 * A conformance kit for guards, whatever their store and its layout: named cases of what makes a guard one. It needs no
 * test runner; give its cases to the one that you have.
 *
 * @packageDocumentation
 */
import * as identity from './identity.js';
import * as interrupted from './interrupted.js';
import * as order from './order.js';
import { race } from './race.js';
import { CASE_NAMES } from './subject.js';
import type { CaseName, GuardedStore, GuardSubject } from './subject.js';

export { CASE_NAMES } from './subject.js';
export type { Between, CaseName, GuardedStore, GuardSubject, SubjectTenure } from './subject.js';
export type { Applied, FencedLease, Missing, Outcome, Rejected, Retry, Stale } from '../types.js';

/** For {@link conformanceCases}. */
export interface ConformanceOptions {
  /** How many rounds two holders race; 1 or more. Default: 1 000. */
  readonly rounds?: number;
  /** Of the pauses in the race, 32 bits; a failure names it. Default: 1. */
  readonly seed?: number;
  /** How long one case may take, in milliseconds: one that hangs fails then. Default: 120 000. */
  readonly limitMs?: number;
}

/** One thing that a guard has to do. */
export interface ConformanceCase {
  /** What it is called; the same in every version of this kit. */
  readonly name: CaseName;
  /** Why it is not run; undefined when it is. */
  readonly skipped: string | undefined;
  /** Runs it on a store of its own. Throws, saying what went wrong, when the guard fails, and when the case is skipped. */
  readonly run: () => Promise<void>;
}

/** How a case ended. */
export interface ConformanceResult {
  /** Of the case. */
  readonly name: CaseName;
  /** Tells the ends apart. */
  readonly status: 'passed' | 'failed' | 'skipped';
  /** What went wrong, or why it was skipped; undefined when it passed. */
  readonly reason: string | undefined;
}

type Run = (store: GuardedStore, settings: { readonly rounds: number; readonly seed: number }) => Promise<void>;

const RUNS: Record<CaseName, Run> = {
  'first write': order.firstWrite,
  'equal token': order.equalToken,
  'higher token': order.higherToken,
  'stale token': order.staleToken,
  tenure: order.tenure,
  'stale after delete and re-creation': order.deleteAndCreate,
  'two items of one domain': order.twoItems,
  'two domains': order.twoDomains,
  'several domains in one mutation': order.severalDomains,
  'stale behind a raise': interrupted.staleBehindRaise,
  'raise during a stale write': interrupted.raiseDuringStaleWrite,
  'raise during the first write': interrupted.raiseDuringFirstWrite,
  'failed work': interrupted.failedWork,
  'crash between check and commit': interrupted.crash,
  'lost response': interrupted.lostResponse,
  restart: interrupted.restart,
  'passage of time': interrupted.passageOfTime,
  'tokens of different lengths': identity.lengths,
  '2^53 boundary': identity.boundary,
  'poison token, capped': identity.poisonCapped,
  'poison token, reset': identity.poisonReset,
  'equal token of another incarnation': identity.equalIncarnation,
  'greater token of another incarnation': identity.greaterIncarnation,
  'another issuer': identity.anotherIssuer,
  'another issuer, allowed': identity.issuerAllowed,
  'write without a lease': identity.withoutLease,
  'two holders racing': (store, { rounds, seed }) => race(store, rounds, seed),
};

/**
 * The cases for this guard, all of them, in the order of {@link CASE_NAMES}; those that it skips too, with its reason.
 * Throws a TypeError when it skips what is no case or gives no reason, and for options out of range.
 */
export function conformanceCases(subject: GuardSubject, options: ConformanceOptions = {}): readonly ConformanceCase[] {
  const { rounds = 1_000, seed = 1, limitMs = 120_000 } = options;
  const skips: Readonly<Record<string, string | undefined>> = subject.skips ?? {};
  const faults = Object.entries(skips).flatMap(([name, reason]) => {
    if (!(name in RUNS)) return [`skips ${name}, which is no case`];
    return reason?.trim() === '' ? [`skips ${name} for no reason`] : [];
  });
  if (!Number.isSafeInteger(rounds) || rounds < 1) faults.push(`rounds must be an integer from 1, not ${rounds}`);
  if (!Number.isSafeInteger(seed)) faults.push(`seed must be an integer, not ${seed}`);
  if (!Number.isSafeInteger(limitMs) || limitMs < 1 || limitMs > 2 ** 31 - 1)
    faults.push(`limitMs must be an integer from 1 to 2^31 - 1, not ${limitMs}`);
  if (faults.length > 0) throw new TypeError(`conformance of ${subject.name}: ${faults.join('; ')}`);

  return CASE_NAMES.map((name): ConformanceCase => {
    const skipped = skips[name];
    const title = `conformance of ${subject.name}, ${name}`;
    return {
      name,
      skipped,
      run: async () => {
        if (skipped !== undefined) throw new Error(`${title}: skipped, because ${skipped}`);
        const store = await subject.create();
        try {
          await within(limitMs, RUNS[name](store, { rounds, seed }));
        } catch (error) {
          throw new Error(`${title}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
        } finally {
          await store.close();
        }
      },
    };
  });
}

/** Runs every case of this guard, one after another, also when one fails. For a report, or where there is no test runner. */
export async function checkConformance(
  subject: GuardSubject,
  options: ConformanceOptions = {},
): Promise<readonly ConformanceResult[]> {
  const results: ConformanceResult[] = [];
  for (const { name, skipped, run } of conformanceCases(subject, options)) {
    if (skipped !== undefined) {
      results.push({ name, status: 'skipped', reason: skipped });
      continue;
    }
    try {
      await run();
      results.push({ name, status: 'passed', reason: undefined });
    } catch (error) {
      results.push({ name, status: 'failed', reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return results;
}

async function within(limitMs: number, work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`not done within ${limitMs} ms: the guard or its store hangs, or tries for ever`));
    }, limitMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
