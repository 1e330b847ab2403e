/**
 * How much each principal has, and how much lies below each prefix with a quota. Counted as leases and waiters come and
 * go, so a question costs no scan.
 */
import { AssertionFailed } from '../base/assert.js';
import { namesFrom } from './names.js';
import type { Counted, Counts, State } from './state.js';
import type { CountingName, QuotaKind, Result, StateLimits } from './types.js';

const NONE: Readonly<Counted> = { leases: 0, waiters: 0 };

/** A lease or a waiter, as far as quotas look at it. */
interface Owned {
  readonly domain: string;
  readonly principal: string;
}

/** Nothing counted. */
export function createCounts({ prefixes }: StateLimits): Counts {
  return {
    names: new Map(),
    principals: new Map(),
    prefixes: new Map(prefixes.map(({ prefix }) => [prefix, { leases: 0, waiters: 0 }])),
  };
}

/** One more (`by` = 1) or one less (`by` = −1) of what. Principals that have nothing are forgotten. */
export function count({ counts }: State, what: keyof Counted, { domain, principal }: Owned, by: 1 | -1): void {
  let counted = counts.principals.get(principal);
  if (counted === undefined) {
    counted = { leases: 0, waiters: 0 };
    counts.principals.set(principal, counted);
  }
  counted[what] += by;
  if (counted[what] < 0) throw new AssertionFailed(`${principal} has ${counted[what]} ${what}`);
  if (counted.leases === 0 && counted.waiters === 0) counts.principals.delete(principal);
  for (const [prefix, below] of counts.prefixes) if (domain.startsWith(prefix)) below[what] += by;
}

/** One more counting name, which is never forgotten. */
export function countName({ counts: { names } }: State, { principal }: CountingName): void {
  names.set(principal, (names.get(principal) ?? 0) + 1);
}

/**
 * Begins to count below the prefixes that have a quota now. One that had a quota before keeps its count; for a new one
 * everything below it is looked at, some tenths of a microsecond for each name.
 */
export function recountPrefixes(state: State): void {
  const { counts, limits } = state;
  counts.prefixes = new Map(
    limits.prefixes.map(({ prefix }) => [prefix, counts.prefixes.get(prefix) ?? below(state, prefix)]),
  );
}

function below({ names, leases, queues }: State, prefix: string): Counted {
  const counted = { leases: 0, waiters: 0 };
  for (const name of namesFrom(names, prefix, '', Infinity)) {
    if (leases.has(name)) counted.leases++;
    counted.waiters += queues.get(name)?.length ?? 0;
  }
  return counted;
}

/** The answer to an acquire whose grant would be one too many; undefined when there is room. */
export function overLeases(state: State, owned: Owned): Result | undefined {
  return overBoth(state, owned) ?? overPrefix(state, 'leases', owned);
}

/** The answer to an acquire that would be one waiter too many; undefined when there is room, for its lease too. */
export function overWaiters(state: State, owned: Owned): Result | undefined {
  const { principal } = owned;
  const limit = state.limits.waitersPerPrincipal;
  if ((state.counts.principals.get(principal)?.waiters ?? 0) >= limit) return refusal(principal, 'waiters', limit);
  return overBoth(state, owned) ?? overPrefix(state, 'waiters', owned);
}

/** The answer to an acquire that would begin one counting name too many; undefined when there is room. */
export function overNames(state: State, { principal }: Owned): Result | undefined {
  const { countingNames } = state.limits;
  const left = countingNames - state.slots.size;
  if (left <= 0) return refusal('this cluster', 'counting names', countingNames);
  const own = state.counts.names.get(principal) ?? 0;
  return own >= left ? refusal(principal, 'counting names', own) : undefined;
}

function overBoth({ counts, limits }: State, { principal }: Owned): Result | undefined {
  const { leases, waiters } = counts.principals.get(principal) ?? NONE;
  const limit = limits.leasesPerPrincipal;
  return leases + waiters >= limit ? refusal(principal, 'leases and waiters', limit) : undefined;
}

function overPrefix({ counts, limits }: State, what: keyof Counted, { domain }: Owned): Result | undefined {
  for (const quota of limits.prefixes) {
    if (!domain.startsWith(quota.prefix)) continue;
    if ((counts.prefixes.get(quota.prefix)?.[what] ?? 0) >= quota[what]) {
      return refusal(`prefix ${quota.prefix}`, what, quota[what]);
    }
  }
  return undefined;
}

function refusal(of: string, what: QuotaKind, limit: number): Result {
  return { type: 'overQuota', of, what, limit };
}
