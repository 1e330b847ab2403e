/**
 * Sealed records: how small values lie on disk. `kind`, `format`, fields, CRC-32C over all before it. Numbers are
 * big-endian, so that keys sort by number; texts and byte strings carry their length.
 */
import { crc32c } from '../base/digest.js';
import { encodeUtf8 } from '../base/utf8.js';
import { CorruptBytes } from './corrupt.js';

const TWO_32 = 2 ** 32;
const CHECKSUM_BYTES = 4;
const decoder = new TextDecoder('utf-8', { fatal: true });

/** Writes `value`, a safe integer ≥ 0, as 8 bytes. */
export function setUint64(view: DataView, at: number, value: number): void {
  view.setUint32(at, Math.floor(value / TWO_32));
  view.setUint32(at + 4, value % TWO_32);
}

/** Reads 8 bytes as a safe integer; `what` names it when it is none. */
export function getUint64(view: DataView, at: number, what: string): number {
  const value = view.getUint32(at) * TWO_32 + view.getUint32(at + 4);
  if (!Number.isSafeInteger(value)) throw new CorruptBytes(what, 'a number is greater than 2^53');
  return value;
}

/** A view over exactly the bytes of `bytes`. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Collects the fields of one sealed record. */
export class RecordWriter {
  #bytes = new Uint8Array(256);
  #view = viewOf(this.#bytes);
  #length = 0;

  /** `kind` tells the records of one directory apart; `format` is the version of that kind. */
  constructor(kind: number, format: number) {
    this.uint8(kind).uint8(format);
  }

  /** One byte. */
  uint8(value: number): this {
    const at = this.#take(1);
    this.#view.setUint8(at, value);
    return this;
  }

  /** Four bytes. */
  uint32(value: number): this {
    const at = this.#take(4);
    this.#view.setUint32(at, value);
    return this;
  }

  /** Eight bytes; a safe integer ≥ 0. */
  uint64(value: number): this {
    const at = this.#take(8);
    setUint64(this.#view, at, value);
    return this;
  }

  /** Length and bytes. */
  bytes(value: Uint8Array): this {
    this.uint32(value.length);
    const at = this.#take(value.length);
    this.#bytes.set(value, at);
    return this;
  }

  /** Length and UTF-8. */
  text(value: string): this {
    return this.bytes(encodeUtf8(value));
  }

  /** The record with its checksum. */
  seal(): Uint8Array {
    this.uint32(crc32c(this.#bytes.subarray(0, this.#length)));
    return this.#bytes.slice(0, this.#length);
  }

  /** Room for so many bytes. Comes before `#bytes` and `#view` are used, which it may replace. */
  #take(count: number): number {
    const at = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(this.#length, this.#bytes.length * 2));
      larger.set(this.#bytes);
      this.#bytes = larger;
      this.#view = viewOf(larger);
    }
    return at;
  }
}

/** Reads the fields of one sealed record in the order in which they were written; the checksum is checked first. */
export class RecordReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #what: string;
  readonly #end: number;
  #at = 0;

  /** `what` names the record in messages. Throws {@link CorruptBytes} unless it is an undamaged one of `kind` in `format`. */
  constructor(bytes: Uint8Array, kind: number, format: number, what: string) {
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    this.#what = what;
    this.#end = bytes.length - CHECKSUM_BYTES;
    if (this.#end < 2) throw new CorruptBytes(what, `${bytes.length} bytes are too few`);
    if (this.#view.getUint32(this.#end) !== crc32c(bytes.subarray(0, this.#end))) {
      throw new CorruptBytes(what, 'the checksum is wrong');
    }
    const [foundKind, foundFormat] = [this.uint8(), this.uint8()];
    if (foundKind !== kind) throw new CorruptBytes(what, `is a record of kind ${foundKind}, not ${kind}`);
    if (foundFormat !== format) {
      throw new CorruptBytes(what, `has format ${foundFormat}; this version of Fencepost reads format ${format}`);
    }
  }

  /** One byte. */
  uint8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  /** Four bytes. */
  uint32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  /** Eight bytes. */
  uint64(): number {
    return getUint64(this.#view, this.#take(8), this.#what);
  }

  /** Length and bytes; a copy. */
  bytes(): Uint8Array {
    const length = this.uint32();
    const at = this.#take(length);
    return Uint8Array.prototype.slice.call(this.#bytes, at, at + length);
  }

  /** Length and UTF-8. */
  text(): string {
    const bytes = this.bytes();
    try {
      return decoder.decode(bytes);
    } catch {
      throw new CorruptBytes(this.#what, 'a text is not UTF-8');
    }
  }

  /** Throws unless everything has been read. */
  end(): void {
    if (this.#at !== this.#end) throw new CorruptBytes(this.#what, `${this.#end - this.#at} bytes too many`);
  }

  #take(count: number): number {
    const at = this.#at;
    if (count > this.#end - at) throw new CorruptBytes(this.#what, 'ends too early');
    this.#at += count;
    return at;
  }
}
