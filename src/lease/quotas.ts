/**
 * How much each principal has, and how much lies below each prefix with a quota. Counted as leases and waiters come and
 * go, so a question costs no scan.
 */
import { AssertionFailed } from '../base/assert.js';
import type { State } from './state.js';
import type { QuotaKind, Result, StateLimits } from './types.js';

/** What somebody, or a prefix, has. */
interface Counted {
  leases: number;
  waiters: number;
}

/** By principal and by prefix. */
export interface Counts {
  readonly principals: Map<string, Counted>;
  readonly prefixes: ReadonlyMap<string, Counted>;
}

/** A lease or a waiter, as far as quotas look at it. */
interface Owned {
  readonly domain: string;
  readonly principal: string;
}

/** Nothing counted. */
export function createCounts({ prefixes }: StateLimits): Counts {
  return {
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

/** The answer to an acquire that would be one `what` too many; undefined when there is room. */
export function overQuota(state: State, what: keyof Counted, { domain, principal }: Owned): Result | undefined {
  const { counts, limits } = state;
  const limit = what === 'leases' ? limits.leasesPerPrincipal : limits.waitersPerPrincipal;
  if ((counts.principals.get(principal)?.[what] ?? 0) >= limit) return refusal(principal, what, limit);
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
