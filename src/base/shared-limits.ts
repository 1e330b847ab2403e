/**
 * The limits that all members share because they are replicated state (design 8): their names as operators know them,
 * what each may be, and what is wrong with a list of prefixes. The configuration, the API and the command line use this.
 */
import { prefixFault } from './domain.js';
import { MAX_PREFIX_QUOTAS, MAX_QUOTA } from './limits.js';

/**
 * A quota for all domains and counting names that begin with `prefix`, as bytes, with their slots. Waiters do not count as
 * leases here: a hand-over takes the place of the lease before. The calls of waiters of a domain that came free while
 * nobody called for it may lead beyond the lease quota, by one for each such domain.
 */
export interface PrefixQuota {
  /** See `prefixFault`. */
  readonly prefix: string;
  /** 0–{@link MAX_QUOTA}. */
  readonly leases: number;
  /** 0–{@link MAX_QUOTA}. */
  readonly waiters: number;
}

/** The limits in force. */
export interface SharedLimits {
  /** Requests that may wait for one domain or name. */
  readonly queueLimit: number;
  /** Leases that one principal may hold, with its waiting requests. */
  readonly leasesPerPrincipal: number;
  /** Requests of one principal that may wait. */
  readonly waitersPerPrincipal: number;
  /** What all principals together may have below a prefix; at most {@link MAX_PREFIX_QUOTAS}, each prefix once. */
  readonly prefixQuotas: readonly PrefixQuota[];
}

/** Another value for some of them; what is left out stays. A list of prefixes takes the place of the whole list. */
export type LimitsChange = Partial<SharedLimits>;

/** Those of {@link SharedLimits} that are numbers, in the order of the documentation, with the least and the greatest value. */
export const LIMIT_RANGES = {
  queueLimit: { least: 0, most: MAX_QUOTA },
  leasesPerPrincipal: { least: 1, most: MAX_QUOTA },
  waitersPerPrincipal: { least: 0, most: MAX_QUOTA },
} as const satisfies Record<Exclude<keyof SharedLimits, 'prefixQuotas'>, { least: number; most: number }>;

/** The names of {@link LIMIT_RANGES}, in its order. */
export const LIMIT_NAMES = Object.keys(LIMIT_RANGES) as readonly (keyof typeof LIMIT_RANGES)[];

/** What a prefix of a quota must be, as the end of a sentence. */
export const PREFIX_RULE =
  'must be the beginning of a domain: at most 255 bytes of [A-Za-z0-9._~:@+=-] with single slashes between segments';

/** What a list of prefixes must be, as the end of a sentence. */
export const PREFIX_COUNT_RULE = `must have at most ${MAX_PREFIX_QUOTAS} prefixes: every lease is held against each`;

/** Each prefix that stands in the list more than once. */
export function repeatedPrefixes(quotas: readonly PrefixQuota[]): readonly string[] {
  const prefixes = quotas.map(({ prefix }) => prefix);
  return [...new Set(prefixes.filter((prefix, at) => prefixes.indexOf(prefix) !== at))];
}

/** What is wrong with a list of quotas, each fault beginning with `field` and the place in it. */
export function quotaFaults(field: string, quotas: readonly PrefixQuota[]): string[] {
  if (quotas.length > MAX_PREFIX_QUOTAS) return [`${field} ${PREFIX_COUNT_RULE}, not ${quotas.length}`];
  const faults: string[] = [];
  for (const [at, { prefix, leases, waiters }] of quotas.entries()) {
    if (prefixFault(prefix) !== undefined) {
      faults.push(`${field}[${at}].prefix ${PREFIX_RULE}, not ${JSON.stringify(prefix).slice(0, 80)}`);
    }
    for (const [name, value] of Object.entries({ leases, waiters })) {
      if (value > MAX_QUOTA) faults.push(`${field}[${at}].${name} is ${value}; it must be from 0 to ${MAX_QUOTA}`);
    }
  }
  return [...faults, ...repeatedPrefixes(quotas).map((prefix) => `${field} names ${prefix} twice`)];
}
