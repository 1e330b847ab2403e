/**
 * The one place where 64-bit integers of the wire become numbers of the program and back. Inside, every integer is a
 * number at or below 2^53 − 1; the wire could carry more, and protobuf libraries round without a word.
 */
import { assert } from '../base/assert.js';
import { CorruptBytes } from './corrupt.js';

const MAX_UINT32 = 0xffff_ffff;

interface Halves {
  readonly high: number;
  readonly low: number;
}

/** `value` if it is an integer from 0 to 2^53 − 1; a failed assertion otherwise: such a number was made by a defect. */
export function uint64(value: number, what: string): number {
  // The message is made only for a wrong number: it would cost more than the bytes of a right one.
  if (!Number.isSafeInteger(value) || value < 0) {
    assert(false, `${what} is ${value}; it must be an integer from 0 to 2^53 - 1`);
  }
  return value;
}

/** `value` if it is an integer from 0 to 2^32 − 1; a failed assertion otherwise. */
export function uint32(value: number, what: string): number {
  if (!Number.isInteger(value) || value < 0 || value > MAX_UINT32) {
    assert(false, `${what} is ${value}; it must be an integer from 0 to 2^32 - 1`);
  }
  return value;
}

/**
 * The number that a decoder found: a plain one for 32-bit fields, two halves for 64-bit fields.
 * Throws {@link CorruptBytes} for anything else and above 2^53 − 1.
 */
export function fromWire(value: unknown, what: string, field: string): number {
  if (typeof value === 'number' && value >= 0) return value;
  if (!isHalves(value)) throw new CorruptBytes(what, `${field} is no unsigned integer`);
  const number = (value.high >>> 0) * 2 ** 32 + (value.low >>> 0);
  if (number > Number.MAX_SAFE_INTEGER) throw new CorruptBytes(what, `${field} is above 2^53 - 1`);
  return number;
}

function isHalves(value: unknown): value is Halves {
  return (
    typeof value === 'object' &&
    value !== null &&
    'high' in value &&
    typeof value.high === 'number' &&
    'low' in value &&
    typeof value.low === 'number'
  );
}
