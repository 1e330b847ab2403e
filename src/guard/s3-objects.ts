/** The objects of a domain within one run of the S3 guard. */
import type { Bucket } from './s3-bucket.js';

/**
 * The data of a domain within a guarded operation: only a guard makes one, so code that takes it cannot be called with a
 * client. Unusable when the run is over.
 */
export interface FencedObjects {
  /** The names of all objects, those that this run has put too. */
  names(): readonly string[];
  /** An object, undefined when there is none; what this run has put, as well. */
  get(name: string): Promise<Uint8Array | undefined>;
  /**
   * Uploads an object, under a key of its own; it gets this name, any text, when the run is applied. Rejects with a TypeError for
   * another name or body.
   */
  put(name: string, body: Uint8Array | string): Promise<void>;
  /** Takes the object out when the run is applied, there or not. */
  delete(name: string): void;
}

/** A manifest names an object that is not there. */
export class LostObject extends Error {
  constructor(name: string, key: string) {
    super(
      `the manifest names ${JSON.stringify(name)}, and its object ${key} is not there: somebody has deleted it past the ` +
        'guard, or brought an older manifest back',
    );
  }
}

export class Objects {
  /** What the manifest will name. */
  readonly now: Map<string, string>;
  /** Keys of this run. */
  readonly uploaded = new Set<string>();
  readonly #before: ReadonlyMap<string, string>;
  readonly #bucket: Bucket;
  readonly #newKey: () => string;
  readonly #uploads: Promise<void>[] = [];
  #open = true;

  constructor(bucket: Bucket, newKey: () => string, before: ReadonlyMap<string, string> = new Map()) {
    this.#bucket = bucket;
    this.#newKey = newKey;
    this.#before = before;
    this.now = new Map(before);
  }

  get isChanged(): boolean {
    return this.now.size !== this.#before.size || [...this.now].some(([name, key]) => this.#before.get(name) !== key);
  }

  /** Keys that nothing names once the manifest names {@link now}. */
  get superseded(): readonly string[] {
    const named = new Set(this.now.values());
    return [...this.#before.values(), ...this.uploaded].filter((key) => !named.has(key));
  }

  /** Runs the work, and waits for its uploads, those too that it did not wait for. */
  async run<T>(work: (data: FencedObjects) => Promise<T> | T): Promise<T> {
    try {
      const value = await work({
        names: () => [...this.#usable().now.keys()],
        get: (name) => this.#get(name),
        put: (name, body) => this.#put(name, body),
        delete: (name) => {
          this.#usable().now.delete(name);
        },
      });
      this.#open = false;
      await Promise.all(this.#uploads);
      return value;
    } finally {
      this.#open = false;
      // What is still under way would come after the objects of a failed run were discarded.
      await Promise.allSettled(this.#uploads);
    }
  }

  #usable(): this {
    if (!this.#open) throw new Error('the run of these objects is over: nothing goes through them any more');
    return this;
  }

  async #get(name: string): Promise<Uint8Array | undefined> {
    const key = this.#usable().now.get(name);
    if (key === undefined) return undefined;
    // It may have been put just now, without waiting.
    if (this.uploaded.has(key)) await Promise.all(this.#uploads);
    const body = await this.#bucket.object(key);
    if (body === undefined) throw new LostObject(name, key);
    return body;
  }

  async #put(name: string, body: Uint8Array | string): Promise<void> {
    const { now, uploaded } = this.#usable();
    const faults: string[] = [];
    // A manifest with another name could not be read again.
    if (typeof name !== 'string') faults.push('name must be text');
    if (typeof body !== 'string' && !(body instanceof Uint8Array)) faults.push('body must be text or a Uint8Array');
    if (faults.length > 0) throw new TypeError(`not an object: ${faults.join('; ')}`);
    const key = this.#newKey();
    uploaded.add(key);
    now.set(name, key);
    const upload = this.#bucket.put(key, typeof body === 'string' ? new TextEncoder().encode(body) : body);
    this.#uploads.push(upload);
    // Whether or not the work waits for it, the run does.
    upload.catch(() => undefined);
    await upload;
  }
}
