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
const MAX_TOKEN = 2n ** 63n - 1n;

/** The issuer of a cluster's tokens. The name, never the incarnation: a restore must not lock every resource (S8). */
export function issuerOf(cluster: string): string {
  return `fencepost:${cluster}`;
}

/** Throws a TypeError, with every fault, when this is no lease. */
export function checkLease(lease: FencedLease): void {
  const faults: string[] = [];
  const { domain, token, cluster, incarnation }: Record<keyof FencedLease, unknown> = { ...pick(lease) };
  const fault = typeof domain === 'string' ? leasedDomainFault(domain) : 'must be text';
  if (fault !== undefined) faults.push(`domain ${fault}`);
  if (typeof token !== 'bigint' || token < 1n || token > MAX_TOKEN)
    faults.push('token must be a bigint from 1 to 2^63 - 1');
  if (typeof cluster !== 'string' || cluster === '') faults.push('cluster must be the name of the cluster');
  if (typeof incarnation !== 'string') faults.push('incarnation must be text');
  if (faults.length > 0) throw new TypeError(`not a lease: ${faults.join('; ')}`);
}

/**
 * May this lease act, given the fence of its domain? Accepts a token that is not lower than the fence; the equal one
 * again and again, because a tenure makes many operations under one token. Looks at no clock: an expired lease that
 * nobody superseded may still act, and that is harmless.
 */
export function admit(fence: Fence | undefined, lease: FencedLease): Admitted | Stale | Rejected {
  const wanted: Fence = { token: lease.token, issuer: issuerOf(lease.cluster), incarnation: lease.incarnation };
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

function pick({ domain, token, cluster, incarnation }: FencedLease): FencedLease {
  return { domain, token, cluster, incarnation };
}
