/** The comparison at the heart of every guard that compares tokens itself. Pure. */
import { leasedDomainFault } from '../base/domain.js';
import type { FencedLease, Rejected, Stale } from './types.js';

/** What is stored for a domain. It outlives the data that it guards. */
export interface Fence {
  /** The greatest token accepted. */
  readonly token: bigint;
  /** Kind and name of the coordinator whose tokens these are, e.g. `fencepost:prod`. */
  readonly issuer: string;
  /** The history of the cluster in which that token was granted. */
  readonly incarnation: string;
}

/** The operation may go on; `fence` is what has to be stored with it, undefined when it stands already. */
export interface Admitted {
  readonly status: 'admitted';
  readonly fence: Fence | undefined;
  readonly earlierIncarnation: string | undefined;
}

/** The greatest token: 64 bits, signed, as SQL and most languages have them. */
export const MAX_TOKEN = 2n ** 63n - 1n;

/**
 * The greatest step from a fence to a token: 20 years of microseconds, which is what revisions count. A cluster's
 * revisions follow the clock, or a floor at most 10 years ahead of it; a greater step is a token that somebody made up, and
 * taking it would shut the domain for all to come. The first token of a domain is no step.
 */
export const MAX_JUMP = 631_152_000_000_000n;

/** Whether a stored text is a token: decimal, without leading zeros. */
export function isToken(text: unknown): text is string {
  return typeof text === 'string' && /^[1-9][0-9]{0,18}$/.test(text) && BigInt(text) <= MAX_TOKEN;
}

/**
 * The issuer of a cluster's tokens. The name, never the incarnation: a restore must not lock every resource (S8). Throws a
 * TypeError for a name that no lease has: a fence that was given to it would refuse everybody.
 */
export function issuerOf(cluster: string): string {
  if (typeof cluster !== 'string' || cluster === '') throw new TypeError('cluster must be the name of a cluster');
  return `fencepost:${cluster}`;
}

/** The fence when this lease's operation was the last that was accepted. */
export function fenceOf({ token, cluster, incarnation }: FencedLease): Fence {
  return { token, issuer: issuerOf(cluster), incarnation };
}

/** Throws a TypeError, with every fault, when this is no lease. */
export function checkLease(lease: FencedLease): void {
  const faults = faultsOf(lease);
  if (faults.length > 0) throw new TypeError(`not a lease: ${faults.join('; ')}`);
}

/**
 * The leases of one operation: copies, because the caller's objects may change while it waits for its turn, and in the
 * order of their domains, so that no two operations wait for one another. Throws a TypeError, with every fault, when one
 * is no lease, when there is none, and when two are of one domain.
 */
export function leasesOf(given: FencedLease | readonly FencedLease[]): readonly FencedLease[] {
  const leases = isList(given) ? given.map(copyOf) : [copyOf(given)];
  const faults = leases.flatMap((lease, at) =>
    faultsOf(lease).map((fault) => (leases.length > 1 ? `${fault} (the ${at + 1}. of ${leases.length})` : fault)),
  );
  if (leases.length === 0) faults.push('an operation needs one at least');
  const domains = leases.map(({ domain }) => domain);
  if (new Set(domains).size < domains.length) faults.push('an operation takes one of each domain');
  if (faults.length > 0) throw new TypeError(`not a lease: ${faults.join('; ')}`);
  return leases.sort((a, b) => (a.domain < b.domain ? -1 : 1));
}

function isList(given: FencedLease | readonly FencedLease[]): given is readonly FencedLease[] {
  return Array.isArray(given);
}

function faultsOf(lease: FencedLease): string[] {
  const faults: string[] = [];
  const { domain, token, cluster, incarnation }: Record<keyof FencedLease, unknown> = { ...copyOf(lease) };
  const fault = typeof domain === 'string' ? leasedDomainFault(domain) : 'must be text';
  if (fault !== undefined) faults.push(`domain ${fault}`);
  if (typeof token !== 'bigint' || token < 1n || token > MAX_TOKEN)
    faults.push('token must be a bigint from 1 to 2^63 - 1');
  if (typeof cluster !== 'string' || cluster === '') faults.push('cluster must be the name of the cluster');
  if (typeof incarnation !== 'string') faults.push('incarnation must be text');
  return faults;
}

/**
 * May this lease act, given the fence of its domain? Accepts a token that is not lower than the fence; the equal one
 * again and again, because a tenure makes many operations under one token. Looks at no clock: an expired lease that
 * nobody superseded may still act, and that is harmless.
 */
export function admit(fence: Fence | undefined, lease: FencedLease): Admitted | Stale | Rejected {
  const wanted = fenceOf(lease);
  if (fence === undefined) return { status: 'admitted', fence: wanted, earlierIncarnation: undefined };
  if (fence.issuer !== wanted.issuer) {
    return {
      status: 'rejected',
      reason: 'issuer',
      message:
        `the fence of ${lease.domain} belongs to ${fence.issuer}, this lease to ${wanted.issuer}; their tokens do not compare. ` +
        'If the domain has moved for good, and nobody writes under the old cluster any more, call allowIssuer.',
    };
  }
  if (wanted.token < fence.token) return { status: 'stale', fence: fence.token };
  const same = wanted.incarnation === fence.incarnation;
  if (wanted.token - fence.token > MAX_JUMP) {
    return {
      status: 'rejected',
      reason: 'jump',
      message:
        `token ${wanted.token} of ${lease.domain} is more than ${MAX_JUMP} above its fence, ${fence.token}: no cluster grants ` +
        'that. If it is the lease that was granted last all the same, call reset with it.',
    };
  }
  if (wanted.token > fence.token) {
    return { status: 'admitted', fence: wanted, earlierIncarnation: same ? undefined : fence.incarnation };
  }
  if (same) return { status: 'admitted', fence: undefined, earlierIncarnation: undefined };
  return {
    status: 'rejected',
    reason: 'incarnation',
    message:
      `token ${lease.token} of ${lease.domain} was accepted in incarnation ${fence.incarnation}, and this lease has it in ` +
      `${lease.incarnation}: two histories issue the same tokens. Stop the cluster that was left behind, and acquire anew.`,
  };
}

/** All of an operation's leases may act; `raised` is what has to be stored with it. */
export interface AllAdmitted {
  readonly status: 'admitted';
  readonly raised: readonly { readonly domain: string; readonly fence: Fence }[];
  /** Of the first domain that has one. */
  readonly earlierIncarnation: string | undefined;
}

/** As {@link admit} for every lease of an operation: one that may not act refuses the whole. */
export function admitAll(
  leases: readonly FencedLease[],
  stored: (domain: string) => Fence | undefined,
): AllAdmitted | Stale | Rejected {
  const raised: { readonly domain: string; readonly fence: Fence }[] = [];
  let earlierIncarnation: string | undefined;
  for (const lease of leases) {
    const { domain } = lease;
    const verdict = admit(stored(domain), lease);
    if (verdict.status !== 'admitted') return verdict;
    if (verdict.fence !== undefined) raised.push({ domain, fence: verdict.fence });
    earlierIncarnation ??= verdict.earlierIncarnation;
  }
  return { status: 'admitted', raised, earlierIncarnation };
}

/**
 * What counts of a lease, as a copy, because the caller's object may change while it is used. Throws a TypeError for what
 * is no object; whether it is a lease {@link checkLease} says.
 */
export function copyOf(lease: FencedLease): FencedLease {
  const given: unknown = lease;
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(`not a lease: ${String(given)}. What tryAcquire gives is undefined when nothing was granted`);
  }
  const { domain, token, cluster, incarnation } = lease;
  return { domain, token, cluster, incarnation };
}
