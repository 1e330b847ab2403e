/** What the S3 guard asks of a client and of its bucket: objects, and the conditional replacement of one. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeManifest, encodeManifest, folderOf, KEPT_WRITES } from './s3-manifest.js';
import type { Manifest } from './s3-manifest.js';

/** The part of a client that the guard uses. `S3` of `@aws-sdk/client-s3` 3 fits. */
export interface S3Client {
  /** Reads an object. Rejects with an error named `NoSuchKey` when there is none. */
  getObject(input: S3ObjectName): Promise<{
    readonly Body?: { transformToByteArray(): Promise<Uint8Array> } | undefined;
    readonly ETag?: string | undefined;
  }>;
  /** Writes an object, on a condition where the input has one. */
  putObject(input: S3PutInput): Promise<unknown>;
  /** Removes an object, there or not. */
  deleteObject(input: S3ObjectName): Promise<unknown>;
}

/** Where an object is. */
export interface S3ObjectName {
  /** The bucket. */
  readonly Bucket: string;
  /** The whole key. */
  readonly Key: string;
}

/** An object to be written. */
export interface S3PutInput extends S3ObjectName {
  /** What it will be. */
  readonly Body: Uint8Array;
  /** Only over the object with this ETag. */
  readonly IfMatch?: string;
  /** `*`: only where there is none. */
  readonly IfNoneMatch?: string;
}

/** A manifest as it was read. */
export interface Version {
  readonly manifest: Manifest;
  readonly etag: string;
}

/** A manifest that is to be, without the ids of writes: {@link Bucket.replace} adds its own. */
export type NextManifest = Omit<Manifest, 'writes'>;

/** The manifest has moved on, and this replacement was not made: it may be tried again from the start. */
export interface Superseded {
  readonly status: 'again';
  readonly cause: unknown;
  readonly last: false;
}

/** How often a replacement is sent anew, as it is, when S3 says that another request was in its way. */
const SENDS = 5;
const PAUSE_MS = 20;

const GONE =
  'its fence is gone, and a stale holder may create it anew. Bring it back, or stop all writers and reset the fence with the ' +
  'lease that was granted last';

export class Bucket {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;
  #probed: Promise<void> | undefined;

  constructor(client: S3Client, bucket: string, prefix: string) {
    this.#client = client;
    this.#bucket = bucket;
    this.#prefix = prefix;
  }

  /** A key that nobody has had and nobody will have. */
  newKey(domain: string, token: bigint): string {
    return `${folderOf(this.#prefix, domain)}${token}/${randomUUID()}`;
  }

  /** The manifest of a domain, undefined when nobody has written under it. */
  async read(domain: string): Promise<Version | undefined> {
    const key = this.#manifestKey(domain);
    const found = await this.#get(key);
    if (found === undefined) return undefined;
    if (found.etag === undefined) throw new Error(`S3 gave no ETag of ${key}`);
    return { manifest: decodeManifest(domain, key, found.bytes), etag: found.etag };
  }

  /** An object of the data, undefined when there is none. */
  async object(key: string): Promise<Uint8Array | undefined> {
    return (await this.#get(key))?.bytes;
  }

  async put(key: string, body: Uint8Array): Promise<void> {
    await this.#client.putObject({ Bucket: this.#bucket, Key: key, Body: body });
  }

  /** Objects that nothing names any more. What cannot be removed stays, and costs room only. */
  async discard(keys: Iterable<string>): Promise<void> {
    const removed = [...keys].map((key) => this.#client.deleteObject({ Bucket: this.#bucket, Key: key }));
    await Promise.allSettled(removed);
  }

  /**
   * Puts `next` in the place of `base`, if that is what is there still. Whatever S3 answers, the manifest itself says in the
   * end what became of it: a request that the client sent twice, because its first answer was lost, meets its own effect.
   * Throws when nobody can know, and what S3 says for other causes.
   */
  async replace(domain: string, base: Version | undefined, next: NextManifest): Promise<undefined | Superseded> {
    await this.#probe();
    const id = randomUUID();
    const writes = [id, ...(base?.manifest.writes ?? [])].slice(0, KEPT_WRITES);
    const input = {
      Bucket: this.#bucket,
      Key: this.#manifestKey(domain),
      Body: encodeManifest(domain, { ...next, writes }),
      ...(base === undefined ? { IfNoneMatch: '*' } : { IfMatch: base.etag }),
    };
    for (let sends = 1; ; sends++) {
      try {
        await this.#client.putObject(input);
        return undefined;
      } catch (cause) {
        const found = await this.#afterFailure(domain, cause);
        if (found?.manifest.writes.includes(id) === true) return undefined;
        if (found === undefined && base !== undefined) {
          throw new Error(`the manifest of ${domain} was deleted: ${GONE}`, { cause });
        }
        if (found?.etag === base?.etag) {
          // The very same request may be repeated: whichever of the two is carried out, it is once.
          if (statusOf(cause) !== 409 || sends === SENDS) throw unsettled(domain, cause);
        } else if (isWholeSince(found, base)) return { status: 'again', cause, last: false };
        else throw unsettled(domain, cause);
      }
      await sleep(Math.random() * PAUSE_MS * sends);
    }
  }

  async #afterFailure(domain: string, cause: unknown): Promise<Version | undefined> {
    try {
      return await this.read(domain);
    } catch {
      throw unsettled(domain, cause);
    }
  }

  async #get(key: string): Promise<{ readonly bytes: Uint8Array; readonly etag: string | undefined } | undefined> {
    try {
      const { Body: body, ETag: etag } = await this.#client.getObject({ Bucket: this.#bucket, Key: key });
      return { bytes: (await body?.transformToByteArray()) ?? new Uint8Array(), etag };
    } catch (error) {
      // A bucket that is not there has the same status, and is no absent object.
      if (error instanceof Error && error.name === 'NoSuchKey') return undefined;
      throw error;
    }
  }

  #manifestKey(domain: string): string {
    return `${folderOf(this.#prefix, domain)}manifest.json`;
  }

  /** Some stores with the interface of S3 ignore conditions without a word, and would guard nothing. Asked once. */
  #probe(): Promise<void> {
    this.#probed ??= this.#tryConditions().catch((error: unknown) => {
      this.#probed = undefined;
      throw error;
    });
    return this.#probed;
  }

  async #tryConditions(): Promise<void> {
    const probe = { Bucket: this.#bucket, Key: `${this.#prefix}fencepost-probe`, Body: new Uint8Array() };
    const isRefused = async (condition: Pick<S3PutInput, 'IfMatch' | 'IfNoneMatch'>): Promise<boolean> => {
      try {
        await this.#client.putObject({ ...probe, ...condition });
        return false;
      } catch (error) {
        if ([409, 412].includes(statusOf(error) ?? 0)) return true;
        throw error;
      }
    };
    await isRefused({ IfNoneMatch: '*' });
    const ignored = [
      ...((await isRefused({ IfNoneMatch: '*' })) ? [] : ['If-None-Match: *']),
      ...((await isRefused({ IfMatch: '"00000000000000000000000000000000"' })) ? [] : ['If-Match']),
    ];
    if (ignored.length === 0) return;
    throw new Error(
      `the store of bucket ${this.#bucket} ignores ${ignored.join(' and ')} when an object is put: it cannot be guarded. ` +
        'Use one with conditional writes',
    );
  }
}

/** Does what was found name every write since `base`? Then a write that it does not name was not made. */
function isWholeSince(found: Version | undefined, base: Version | undefined): boolean {
  if (found === undefined) return false;
  const { writes } = found.manifest;
  const [last] = base?.manifest.writes ?? [];
  return last === undefined ? writes.length < KEPT_WRITES : writes.includes(last);
}

/** What to throw. A refusal says that nothing was done, if it is of the first copy: nobody knows what became of copies before it. */
function unsettled(domain: string, cause: unknown): unknown {
  const { httpStatusCode: status, attempts = 1 } = answerOf(cause);
  const isRefusal = status !== undefined && status >= 400 && status < 500 && ![404, 408, 409, 412].includes(status);
  if (isRefusal && attempts === 1) return cause;
  return new Error(
    `what became of a replacement of the manifest of ${domain} is not known: read it before you do anything again`,
    { cause },
  );
}

/** The status of the answer of HTTP, undefined when there was none. */
function statusOf(error: unknown): number | undefined {
  return answerOf(error).httpStatusCode;
}

/** What the client says of the answer, and how often it sent the request. */
function answerOf(error: unknown): { readonly httpStatusCode?: number; readonly attempts?: number } {
  if (typeof error !== 'object' || error === null || !('$metadata' in error)) return {};
  return error.$metadata ?? {};
}
