/**
 * Writes messages of `proto/fencepost/internal/v1` without a table of their fields, for the few that are written for every
 * entry: what `protobufjs` makes of an object of fields costs several times as much. Byte for byte the same, as a test
 * shows: fields in the order of their numbers, and each of them, also where it is 0 or empty.
 */
import { encodeUtf8 } from '../base/utf8.js';

const VARINT = 0;
const BYTES = 2;

/** At most so many bytes has a varint of a number up to 2^53 − 1. */
const MAX_VARINT = 8;
const FIRST_BYTES = 4_096;

/** Writes one message after the other into memory of its own. */
export class FieldWriter {
  #bytes = new Uint8Array(FIRST_BYTES);
  #at = 0;

  /** Begins a message; what was written of one that failed is gone. */
  clear(): void {
    this.#at = 0;
  }

  /** An integer from 0 to 2^53 − 1, which `numbers.ts` has checked. */
  integer(field: number, value: number): void {
    this.#reserve(1 + MAX_VARINT);
    this.#tag(field, VARINT);
    this.#varint(value);
  }

  /** Well-formed text. */
  text(field: number, text: string): void {
    const { length } = text;
    this.#reserve(1 + MAX_VARINT + length);
    const start = this.#at;
    this.#tag(field, BYTES);
    this.#varint(length);
    const bytes = this.#bytes;
    let at = this.#at;
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit >= 0x80) {
        // Rare: it has more bytes than units.
        this.#at = start;
        this.#encoded(field, encodeUtf8(text));
        return;
      }
      bytes[at++] = unit;
    }
    this.#at = at;
  }

  /** Begins a message within; what is written up to {@link end} is its fields. Gives what `end` needs. */
  begin(field: number): number {
    this.#reserve(2);
    this.#tag(field, BYTES);
    // Mostly its length will have one byte.
    return this.#at++;
  }

  /** Ends the message that began at `begun`. */
  end(begun: number): void {
    const start = begun + 1;
    const end = this.#at;
    const length = end - start;
    this.#reserve(MAX_VARINT);
    this.#at = begun;
    if (length >= 0x80) {
      let more = 0;
      for (let rest = length; rest >= 0x80; rest = Math.floor(rest / 0x80)) more++;
      this.#bytes.copyWithin(start + more, start, end);
    }
    this.#varint(length);
    this.#at += length;
  }

  /** The bytes of what was written, as a copy. */
  take(): Uint8Array {
    return this.#bytes.slice(0, this.#at);
  }

  #encoded(field: number, text: Uint8Array): void {
    this.#reserve(1 + MAX_VARINT + text.length);
    this.#tag(field, BYTES);
    this.#varint(text.length);
    this.#bytes.set(text, this.#at);
    this.#at += text.length;
  }

  #tag(field: number, type: number): void {
    this.#bytes[this.#at++] = (field << 3) | type;
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest >= 2 ** 31; rest = Math.floor(rest / 0x80)) this.#bytes[this.#at++] = (rest % 0x80) | 0x80;
    for (; rest >= 0x80; rest >>>= 7) this.#bytes[this.#at++] = (rest & 0x7f) | 0x80;
    this.#bytes[this.#at++] = rest;
  }

  #reserve(more: number): void {
    const needed = this.#at + more;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
  }
}
