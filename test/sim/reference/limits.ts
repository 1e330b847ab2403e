/** The limits of a lease model, held against what a member has, saves and tells. */
import type { SharedLimits } from '../../../src/base/shared-limits.js';
import type { StateLimits } from '../../../src/lease/types.js';

/** Limits are never changed, only replaced, and asked for at every step. */
const texts = new WeakMap<StateLimits, string>();

/** One text for equal limits. */
export function limitsText(limits: StateLimits): string {
  const known = texts.get(limits);
  if (known !== undefined) return known;
  const { finishedRequests, queue, leasesPerPrincipal, waitersPerPrincipal, countingNames, prefixes } = limits;
  const numbers = [finishedRequests, queue, leasesPerPrincipal, waitersPerPrincipal, countingNames];
  const quotas = prefixes.map(({ prefix, leases, waiters }) => `${prefix}=${leases}/${waiters}`);
  const text = [...numbers, ...quotas].join(' ');
  texts.set(limits, text);
  return text;
}

/** Whether that is what operators are told of these limits. */
export function isSame(own: StateLimits, told: SharedLimits): boolean {
  const { queueLimit: queue, leasesPerPrincipal, waitersPerPrincipal, prefixQuotas: prefixes } = told;
  return limitsText(own) === limitsText({ ...own, queue, leasesPerPrincipal, waitersPerPrincipal, prefixes });
}
