/** The state machine's limits, and a change of them, as parts of other messages (`record.proto`). */
import type { PrefixQuota } from '../base/shared-limits.js';
import type { ChangeableLimits, StateLimits } from '../lease/types.js';
import { has, integer, part, parts, text, wellFormed } from './fields.js';
import { uint32 } from './numbers.js';
import type { Fields } from './proto.js';

/** All limits. */
export function limitsFields(limits: StateLimits): Fields {
  const { finishedRequests, queue, leasesPerPrincipal, waitersPerPrincipal, countingNames, prefixes } = limits;
  return {
    finishedRequests: uint32(finishedRequests, 'finishedRequests'),
    queue: uint32(queue, 'queue'),
    leasesPerPrincipal: uint32(leasesPerPrincipal, 'leasesPerPrincipal'),
    waitersPerPrincipal: uint32(waitersPerPrincipal, 'waitersPerPrincipal'),
    countingNames: uint32(countingNames, 'countingNames'),
    prefixes: prefixes.map(quotaFields),
  };
}

/** All limits from their message. */
export function readLimits(fields: Fields, what: string): StateLimits {
  return {
    finishedRequests: integer(fields, 'finishedRequests', what),
    queue: integer(fields, 'queue', what),
    leasesPerPrincipal: integer(fields, 'leasesPerPrincipal', what),
    waitersPerPrincipal: integer(fields, 'waitersPerPrincipal', what),
    countingNames: integer(fields, 'countingNames', what),
    prefixes: readQuotas(fields, what),
  };
}

/** Those that are to change; a list of prefixes is a message of its own, so that an empty one can be told from none. */
export function limitsChangeFields(change: Partial<ChangeableLimits>): Fields {
  const { queue, leasesPerPrincipal, waitersPerPrincipal, prefixes } = change;
  return {
    ...(queue === undefined ? {} : { queue: uint32(queue, 'queue') }),
    ...(leasesPerPrincipal === undefined
      ? {}
      : { leasesPerPrincipal: uint32(leasesPerPrincipal, 'leasesPerPrincipal') }),
    ...(waitersPerPrincipal === undefined
      ? {}
      : { waitersPerPrincipal: uint32(waitersPerPrincipal, 'waitersPerPrincipal') }),
    ...(prefixes === undefined ? {} : { prefixes: { prefixes: prefixes.map(quotaFields) } }),
  };
}

/** Those that are to change, from their message. */
export function readLimitsChange(fields: Fields, what: string): Partial<ChangeableLimits> {
  return {
    ...(has(fields, 'queue') ? { queue: integer(fields, 'queue', what) } : {}),
    ...(has(fields, 'leasesPerPrincipal') ? { leasesPerPrincipal: integer(fields, 'leasesPerPrincipal', what) } : {}),
    ...(has(fields, 'waitersPerPrincipal')
      ? { waitersPerPrincipal: integer(fields, 'waitersPerPrincipal', what) }
      : {}),
    ...(has(fields, 'prefixes') ? { prefixes: readQuotas(part(fields, 'prefixes', what), what) } : {}),
  };
}

function quotaFields({ prefix, leases, waiters }: PrefixQuota): Fields {
  return {
    prefix: wellFormed(prefix, 'prefix'),
    leases: uint32(leases, 'leases'),
    waiters: uint32(waiters, 'waiters'),
  };
}

function readQuotas(fields: Fields, what: string): readonly PrefixQuota[] {
  return parts(fields, 'prefixes', what).map((quota) => ({
    prefix: text(quota, 'prefix', what),
    leases: integer(quota, 'leases', what),
    waiters: integer(quota, 'waiters', what),
  }));
}
