/**
 * Checksums in pure code: CRC-32C over bytes for what lies on disk, and a 64-bit digest whose values can be added
 * and subtracted in any order, for the sum over a state's records (design 6) and for the state hash.
 */

/** 64 bits as two unsigned halves; cheaper than a bigint on the hot path. */
export interface Digest {
  readonly high: number;
  readonly low: number;
}

/** The digest of nothing; neutral for {@link addDigest}. */
export const ZERO_DIGEST: Digest = { high: 0, low: 0 };

// Indexed loops: iterating a typed array is many times slower, and these run over every byte written or sent.

const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc | 0;
});

/** CRC-32C (Castagnoli) of `bytes`, continued from `seed` (the CRC of what went before). Unsigned 32 bits. */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  let crc = ~seed;
  for (let at = 0; at < bytes.length; at++) crc = (TABLE[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** A 64-bit digest of `bytes`, mixed well enough that sums of digests do not cancel by accident. Not for secrets. */
export function digestBytes(bytes: Uint8Array): Digest {
  let a = 0x811c9dc5 ^ bytes.length;
  let b = 0x9747b28c ^ bytes.length;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    a = Math.imul(a ^ byte, 0x01000193);
    b = Math.imul((b ^ byte) + (b >>> 13), 0x5bd1e995);
  }
  return { high: mix(a ^ (b >>> 15)), low: mix(b ^ (a >>> 13)) };
}

/** As {@link digestBytes}, over the UTF-16 code units of `text`: no bytes have to be made of it first. */
export function digestString(text: string): Digest {
  let a = 0x811c9dc5 ^ text.length;
  let b = 0x9747b28c ^ text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul((b ^ unit) + (b >>> 13), 0x5bd1e995);
  }
  return { high: mix(a ^ (b >>> 15)), low: mix(b ^ (a >>> 13)) };
}

/** `left + right` modulo 2^64. */
export function addDigest(left: Digest, right: Digest): Digest {
  const low = left.low + right.low;
  return { high: (left.high + right.high + (low > 0xffffffff ? 1 : 0)) >>> 0, low: low >>> 0 };
}

/** `left − right` modulo 2^64. */
export function subtractDigest(left: Digest, right: Digest): Digest {
  const low = left.low - right.low;
  return { high: (left.high - right.high - (low < 0 ? 1 : 0)) >>> 0, low: low >>> 0 };
}

/** True when both are the same 64 bits. */
export function sameDigest(left: Digest, right: Digest): boolean {
  return left.high === right.high && left.low === right.low;
}

/** 16 lower-case hex digits. */
export function digestText(digest: Digest): string {
  return digest.high.toString(16).padStart(8, '0') + digest.low.toString(16).padStart(8, '0');
}

function mix(value: number): number {
  let z = value >>> 0;
  z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
  z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
  return (z ^ (z >>> 16)) >>> 0;
}
