/**
 * A guard for S3, and stores with its interface that have conditional writes (`If-Match` and `If-None-Match: *` when an object
 * is put) and read what was written last. One object of each domain, the manifest, has the fence and names the objects of
 * the data; it alone is ever replaced, on the condition that it is what was read. The data lie under keys that are used once
 * and have the token in them, so a stale holder can only make objects that nothing names.
 *
 * S3 itself compares no tokens: this is safe only while every writer of the prefix uses the guard. Not protected: what goes
 * past it; a manifest that is deleted, or brought back from an older version or another region, which lowers its fence (and
 * names objects that are gone); two processes under one token, which nothing orders. Nobody ever waits for a holder that
 * stands still, so there is no limit of time.
 *
 * @packageDocumentation
 */
import { repeated } from './again.js';
import type { Attempt } from './again.js';
import { admit, checkLease, copyOf, fenceOf, issuerOf, leasesOf } from './fence.js';
import type { Fence } from './fence.js';
import { Bucket } from './s3-bucket.js';
import type { NextManifest, S3Client, Version } from './s3-bucket.js';
import { LostObject, Objects } from './s3-objects.js';
import type { FencedObjects } from './s3-objects.js';
import type { Applied, FencedLease, Rejected, Retry, Stale } from './types.js';

export type { Fence } from './fence.js';
export type { S3Client, S3ObjectName, S3PutInput } from './s3-bucket.js';
export type { FencedObjects } from './s3-objects.js';
export type { Applied, FencedLease, Rejected, Retry, Stale } from './types.js';

/**
 * How a guarded operation ends on S3. `retry`: others under the same token replaced the manifest again and again.
 * `missing` does not occur: what your own reading found is for your work to return.
 */
export type S3Outcome<T> = Applied<T> | Stale | Rejected | Retry;

/** Reads and writes the objects of the domain. It may be called again, so it must have no other effect. */
export type S3Work<T> = (data: FencedObjects) => Promise<T> | T;

/** For {@link s3Fence}. */
export interface S3FenceOptions {
  /** Where the objects are. */
  readonly bucket: string;
  /** What all keys of this guard begin with, for example `orders/`. Nothing else may write there. Default: none. */
  readonly prefix?: string;
}

/** A tenure that has raised its fence: from here on no lower token is accepted, so what it reads stays true. */
export interface S3Tenure {
  /** Whose fence it raised. */
  readonly domain: string;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link S3Fence.run} under the lease that was opened. */
  run<T>(work: S3Work<T>): Promise<S3Outcome<T>>;
}

/** A guard over the objects under one prefix. */
export interface S3Fence {
  /**
   * Begins a tenure: raises the fence to the lease's token before anything is read. Do this first; without it a
   * predecessor may still write between your first read and your first write.
   */
  open(lease: FencedLease): Promise<S3Outcome<S3Tenure>>;
  /**
   * Reads the manifest, checks the fence, runs `work`, and replaces the manifest: everything that the work put or deleted
   * becomes visible at once, or nothing. When the lease is stale or rejected, `work` is not called. When `work` throws,
   * nothing is changed, and `run` throws the same. When the manifest was replaced meanwhile the whole is run again, `work`
   * included, up to five times; then the outcome is `retry`.
   *
   * One lease only: S3 cannot replace the manifests of two domains at once. An answer that is lost is found out by reading
   * the manifest again, which has the ids of its last 16 writes; where that does not tell (the connection is gone), it
   * throws, and you look. Throws also what S3 says, and for a manifest that is corrupt.
   */
  run<T>(lease: FencedLease, work: S3Work<T>): Promise<S3Outcome<T>>;
  /**
   * An object of the domain, for whoever reads and holds no lease; undefined when there is none. Not fenced, as no reading is.
   * Throws when it is replaced faster than it can be read, five times in a row.
   */
  read(domain: string, name: string): Promise<Uint8Array | undefined>;
  /** The fence of a domain, undefined when nobody has written under it. For operators. */
  fence(domain: string): Promise<Fence | undefined>;
  /**
   * For operators: from now on the fence of this domain takes tokens of the cluster `cluster`, and no others. It
   * stays where it is, so the new cluster's tokens have to be greater (form it with a floor). False when there is no fence.
   */
  allowIssuer(domain: string, cluster: string): Promise<boolean>;
  /**
   * For operators: sets the fence to what this lease says, also lower than it stands. For one case: somebody presented a
   * token that the cluster never granted, and shut the domain for all to come. It has to be the lease that was granted
   * last; after an older one stale holders pass.
   */
  reset(lease: FencedLease): Promise<void>;
}

/** How often a reader without a lease follows a manifest that is replaced under its eyes. */
const READS = 5;

/**
 * A guard over the bucket and prefix, through `new S3(…)` of `@aws-sdk/client-s3`. It asks the store once, with an object
 * `fencepost-probe` under the prefix, whether it heeds conditions, and refuses one that does not. It needs the rights
 * `s3:GetObject`, `s3:PutObject`, `s3:DeleteObject`, and `s3:ListBucket`, without which S3 does not say that an object is absent.
 */
export function s3Fence(client: S3Client, { bucket: name, prefix = '' }: S3FenceOptions): S3Fence {
  const faults: string[] = [];
  if (typeof name !== 'string' || name === '') faults.push('bucket must be the name of a bucket');
  if (typeof prefix !== 'string' || prefix.startsWith('/'))
    faults.push('prefix must be text that begins with no slash');
  if (faults.length > 0) throw new TypeError(faults.join('; '));
  const bucket = new Bucket(client, name, prefix);

  const attempt = async <T>(lease: FencedLease, work: S3Work<T>): Promise<Attempt<T>> => {
    const { domain, token } = lease;
    const base = await bucket.read(domain);
    const verdict = admit(base?.manifest.fence, lease);
    if (verdict.status !== 'admitted') return verdict;
    const { earlierIncarnation } = verdict;
    const objects = new Objects(bucket, () => bucket.newKey(domain, token), base?.manifest.objects);
    let value: T;
    try {
      value = await objects.run(work);
    } catch (error) {
      await bucket.discard(objects.uploaded);
      // Another under the same token may have replaced the object between the reading of its name and of itself.
      const replaced = error instanceof LostObject && (await bucket.read(domain))?.etag !== base?.etag;
      if (replaced) return { status: 'again', cause: error, last: false };
      throw error;
    }
    const applied: Applied<T> = { status: 'applied', value, earlierIncarnation };
    if (verdict.fence === undefined && !objects.isChanged) {
      await bucket.discard(objects.superseded);
      return applied;
    }
    const again = await bucket.replace(domain, base, { fence: fenceOf(lease), objects: objects.now });
    await bucket.discard(again === undefined ? objects.superseded : objects.uploaded);
    return again ?? applied;
  };

  const run = async <T>(given: FencedLease, work: S3Work<T>): Promise<S3Outcome<T>> => {
    const [lease, ...others] = leasesOf(given);
    if (lease === undefined || others.length > 0) {
      throw new TypeError('an operation on S3 takes one lease only: two manifests cannot be replaced at once');
    }
    const outcome = await repeated(() => attempt(lease, work));
    if (outcome.status === 'missing') throw new Error('nothing of this guard is missing');
    return outcome;
  };

  /** An operator's change of the fence alone. */
  const change = async (domain: string, to: (base: Version | undefined) => Fence | undefined): Promise<boolean> => {
    const outcome = await repeated(async (): Promise<Attempt<boolean>> => {
      const base = await bucket.read(domain);
      const fence = to(base);
      if (fence === undefined) return { status: 'applied', value: false, earlierIncarnation: undefined };
      const next: NextManifest = { fence, objects: base?.manifest.objects ?? new Map<string, string>() };
      const again = await bucket.replace(domain, base, next);
      return again ?? { status: 'applied', value: true, earlierIncarnation: undefined };
    });
    if (outcome.status === 'applied') return outcome.value;
    throw new Error(`the manifest of ${domain} was replaced by others again and again: nothing was changed`);
  };

  return {
    run,
    async open(lease) {
      const opened = copyOf(lease);
      const { domain, token } = opened;
      const raised = await run(opened, () => undefined);
      if (raised.status !== 'applied') return raised;
      return { ...raised, value: { domain, token, run: (work) => run(opened, work) } };
    },
    async read(domain, of) {
      let key: string | undefined;
      for (let reads = 0; reads < READS; reads++) {
        const next = (await bucket.read(domain))?.manifest.objects.get(of);
        if (next === undefined) return undefined;
        const body = await bucket.object(next);
        if (body !== undefined) return body;
        if (next === key) throw new LostObject(of, key);
        key = next;
      }
      throw new Error(`${of} of ${domain} was replaced each of the ${READS} times that it was read: read it again`);
    },
    fence: async (domain) => (await bucket.read(domain))?.manifest.fence,
    allowIssuer: (domain, cluster) =>
      change(domain, (base) => base && { ...base.manifest.fence, issuer: issuerOf(cluster) }),
    async reset(lease) {
      checkLease(lease);
      const fence = fenceOf(lease);
      await change(lease.domain, () => fence);
    },
  };
}
