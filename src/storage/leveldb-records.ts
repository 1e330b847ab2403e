/**
 * LevelDB's record files (the write-ahead log and MANIFEST), read without LevelDB: blocks of 32 KiB with records of
 * checksum u32, length u16, type u8, all little-endian. Format: doc/log_format.md of LevelDB.
 */
import { crc32c } from '../base/digest.js';
import { CorruptBytes } from '../wire/corrupt.js';
import { viewOf } from '../wire/disk-bytes.js';

const BLOCK_BYTES = 32_768;
const HEADER_BYTES = 7;
const ZERO = 0;
const FULL = 1;
const FIRST = 2;
const LAST = 4;

/** LevelDB's stored form of a CRC-32C. */
export function maskedCrc(bytes: Uint8Array, seed?: number): number {
  const crc = crc32c(bytes, seed);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

/**
 * The records of a file. A record that was cut off at the end of the file is left out, as LevelDB does: whether it was
 * acknowledged, MARK knows. Throws {@link CorruptBytes} for anything that LevelDB would skip.
 */
export function readRecords(bytes: Uint8Array, what: string): readonly Uint8Array[] {
  const view = viewOf(bytes);
  const records: Uint8Array[] = [];
  let parts: Uint8Array[] = [];
  for (let block = 0; block < bytes.length; block += BLOCK_BYTES) {
    const end = Math.min(block + BLOCK_BYTES, bytes.length);
    for (let at = block; at + HEADER_BYTES <= end;) {
      const length = view.getUint16(at + 4, true);
      const type = view.getUint8(at + 6);
      const next = at + HEADER_BYTES + length;
      if (next > end) {
        if (end - block < BLOCK_BYTES) return records;
        throw new CorruptBytes(what, `the record at ${at} is longer than its block`);
      }
      // Space that the file system had set aside.
      if (type === ZERO && length === 0) break;
      if (view.getUint32(at, true) !== maskedCrc(bytes.subarray(at + 6, next))) {
        throw new CorruptBytes(what, `the record at ${at} has a wrong checksum`);
      }
      const begins = type === FULL || type === FIRST;
      if (type < FULL || type > LAST || begins !== (parts.length === 0)) {
        throw new CorruptBytes(what, `the record at ${at} is no part of a whole one`);
      }
      parts.push(bytes.subarray(at + HEADER_BYTES, next));
      if (type === FULL || type === LAST) {
        records.push(Buffer.concat(parts));
        parts = [];
      }
      at = next;
    }
  }
  return records;
}

/** Reads LevelDB's variable-length integers and length-prefixed strings. */
export class VarintReader {
  readonly #bytes: Uint8Array;
  readonly #what: string;
  #at = 0;

  constructor(bytes: Uint8Array, what: string) {
    this.#bytes = bytes;
    this.#what = what;
  }

  /** Whether everything has been read. */
  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** A number; LevelDB's are below 2^56, and all that are used here below 2^53. */
  number(): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 56; factor *= 128) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) break;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new CorruptBytes(this.#what, 'a number ends too early');
  }

  /** So many bytes. */
  take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new CorruptBytes(this.#what, 'a string ends too early');
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  /** A length and so many bytes. */
  string(): Uint8Array {
    return this.take(this.number());
  }
}
