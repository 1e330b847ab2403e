/** Number of records in a table and the order-free sum of their digests, kept from cut to cut (F4). */
import { BigMap } from '../base/big-map.js';
import { addDigest, digestBytes, subtractDigest, ZERO_DIGEST, type Digest } from '../base/digest.js';

/** The digest of each record of one table. */
export class TableSum {
  readonly #digests = new BigMap<string, Digest>();
  #sum = ZERO_DIGEST;

  /** Records in the table. */
  get count(): number {
    return this.#digests.size;
  }

  /** The sum over all records. */
  get sum(): Digest {
    return this.#sum;
  }

  /** A record was added, or took the place of the one under its key. */
  put(key: Uint8Array, value: Uint8Array): void {
    this.remove(key);
    const digest = recordDigest(key, value);
    this.#digests.set(nameOf(key), digest);
    this.#sum = addDigest(this.#sum, digest);
  }

  /** The record under this key was removed, if there was one. */
  remove(key: Uint8Array): void {
    const name = nameOf(key);
    const digest = this.#digests.get(name);
    if (digest === undefined) return;
    this.#digests.delete(name);
    this.#sum = subtractDigest(this.#sum, digest);
  }
}

/** The digest of one record: of its key's length, its key and its value. */
export function recordDigest(key: Uint8Array, value: Uint8Array): Digest {
  const bytes = new Uint8Array(2 + key.length + value.length);
  bytes[0] = key.length >>> 8;
  bytes[1] = key.length;
  bytes.set(key, 2);
  bytes.set(value, 2 + key.length);
  return digestBytes(bytes);
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1');
}
