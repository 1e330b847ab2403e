/** What the fences of a resource say of the cluster: from where a new one has to begin, and which tokens none can have granted. */
import { MAX_FLOOR_AHEAD_US } from '../../base/limits.js';
import { fault } from './findings.js';
import type { Finding, StoredFence } from './store.js';
import { tokenText } from './views.js';

/** The cluster to compare with. */
export interface ComparedCluster {
  readonly name: string;
  /** Everything up to it has been applied, and it was read after the fences: they were all granted before. */
  readonly revision: bigint;
}

/** `floor` of a cluster that is formed anew: its first token is greater. */
export interface Floor {
  /** Of the fences that it is for; undefined where nobody said. */
  readonly issuer: string | undefined;
  readonly floor: bigint;
}

/** A cluster whose wall clock shows `nowMs` can be formed with no greater floor, so none grants a greater token. */
export function greatestFloor(nowMs: number): bigint {
  return BigInt(Math.floor(nowMs)) * 1_000n + BigInt(MAX_FLOOR_AHEAD_US);
}

/** Whether this is the fence of a Fencepost cluster, as far as it says. */
function isOurs({ issuer }: StoredFence): boolean {
  return issuer === undefined || issuer.startsWith('fencepost:');
}

/**
 * The greatest fence of each issuer, by issuer. One that names no issuer may be of any cluster, so it counts for each. Tokens above
 * `limit` do not count: no cluster can begin above them, and {@link poisoned} names them.
 */
export function floorsOf(fences: readonly StoredFence[], limit: bigint): readonly Floor[] {
  const greatest = new Map<string | undefined, bigint>();
  for (const { issuer, token } of fences.filter(isOurs))
    if (token <= limit && token > (greatest.get(issuer) ?? 0n)) greatest.set(issuer, token);
  const unnamed = greatest.get(undefined) ?? 0n;
  if (greatest.size > 1) greatest.delete(undefined);
  return [...greatest]
    .map(([issuer, floor]) => ({ issuer, floor: floor > unnamed ? floor : unnamed }))
    .sort((a, b) => ((a.issuer ?? '') < (b.issuer ?? '') ? -1 : 1));
}

/** Fences that no cluster can have raised. */
export function poisoned(fences: readonly StoredFence[], limit: bigint): readonly Finding[] {
  return fences
    .filter((fence) => isOurs(fence) && fence.token > limit)
    .map(({ domain, token }) =>
      fault(
        'fence-beyond-floor',
        domain,
        `token ${tokenText(token)} is more than ten years ahead of the clock: no cluster has granted it, and none will get above it. Set the fence to the token of the lease that was granted last: fencepost fence reset`,
      ),
    );
}

/** Fences of this cluster's name above its revision; not those of which {@link poisoned} has spoken. */
export function aboveCluster(
  fences: readonly StoredFence[],
  { name, revision }: ComparedCluster,
  limit: bigint,
): readonly Finding[] {
  return fences
    .filter(
      ({ issuer, token }) =>
        (issuer ?? `fencepost:${name}`) === `fencepost:${name}` && token > revision && token <= limit,
    )
    .map(({ domain, token }) =>
      fault(
        'fence-above-cluster',
        domain,
        `token ${tokenText(token)} is above the revision of cluster ${name}, ${revision}: its holders are refused. Either nobody was granted it: fencepost fence reset. Or the cluster was restored or formed without what it had granted: form it anew with the floor below`,
      ),
    );
}
