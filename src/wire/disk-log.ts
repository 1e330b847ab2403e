/**
 * Log blocks: all entries of one write in one value.
 *
 *     format u8 · first index u64 · count u32 · before u32 · entries · checksum u32
 *     entry = index u64 · term u64 · kind u8 · payload (u32 length, bytes)
 *
 * The *chain value* of an entry is the CRC-32C of its bytes, continued from the chain value of the entry before; it
 * depends on every entry since the anchor, however they were divided into blocks. So a block of which a later one has
 * superseded the tail still has a chain value for the part that stays, and `before` names exactly what the block was
 * written behind. The checksum is the CRC of the header continued from the last entry's chain value: it covers all.
 */
import { crc32c } from '../base/digest.js';
import type { Entry, EntryKind } from '../raft/types.js';
import { decodeConfiguration } from './configuration.js';
import { CorruptBytes } from './corrupt.js';
import { getUint64, setUint64, viewOf } from './disk-bytes.js';

const FORMAT = 1;
const HEADER_BYTES = 1 + 8 + 4 + 4;
const ENTRY_BYTES = 8 + 8 + 1 + 4;
const CHECKSUM_BYTES = 4;
/** Numbers on disk: never changed. */
const KINDS: readonly EntryKind[] = ['noop', 'command', 'configuration'];

/** A block as bytes, with the chain value of each entry. */
export interface EncodedBlock {
  readonly value: Uint8Array;
  readonly chains: readonly number[];
}

/** A block read back. `entries` may be empty: such a block only ends the one before it. */
export interface DecodedBlock {
  readonly first: number;
  /** Chain value of the entry before `first`. */
  readonly before: number;
  readonly entries: readonly Entry[];
  readonly chains: readonly number[];
}

/** One block of `entries`, consecutive from `first`, behind the entry whose chain value is `before`. */
export function encodeBlock(first: number, before: number, entries: readonly Entry[]): EncodedBlock {
  const payloads = entries.reduce((bytes, entry) => bytes + entry.payload.length, 0);
  const value = new Uint8Array(HEADER_BYTES + entries.length * ENTRY_BYTES + payloads + CHECKSUM_BYTES);
  const view = viewOf(value);
  value[0] = FORMAT;
  setUint64(view, 1, first);
  view.setUint32(9, entries.length);
  view.setUint32(13, before);
  const chains: number[] = [];
  let at = HEADER_BYTES;
  let chain = before;
  for (const { index, term, kind, payload } of entries) {
    setUint64(view, at, index);
    setUint64(view, at + 8, term);
    value[at + 16] = KINDS.indexOf(kind);
    view.setUint32(at + 17, payload.length);
    value.set(payload, at + ENTRY_BYTES);
    const end = at + ENTRY_BYTES + payload.length;
    chain = crc32c(value.subarray(at, end), chain);
    chains.push(chain);
    at = end;
  }
  view.setUint32(at, crc32c(value.subarray(0, HEADER_BYTES), chain));
  return { value, chains };
}

/** Reads a block and checks everything that it says of itself; `what` names it in messages. Throws {@link CorruptBytes}. */
export function decodeBlock(bytes: Uint8Array, what: string): DecodedBlock {
  const end = bytes.length - CHECKSUM_BYTES;
  if (end < HEADER_BYTES) throw new CorruptBytes(what, `${bytes.length} bytes are too few`);
  const view = viewOf(bytes);
  const before = view.getUint32(13);
  const begins: number[] = [];
  const chains: number[] = [];
  let at = HEADER_BYTES;
  let chain = before;
  for (let count = view.getUint32(9); count > 0; count--) {
    const next = at + ENTRY_BYTES > end ? end + 1 : at + ENTRY_BYTES + view.getUint32(at + 17);
    if (next > end) throw new CorruptBytes(what, 'ends too early');
    chain = crc32c(bytes.subarray(at, next), chain);
    begins.push(at);
    chains.push(chain);
    at = next;
  }
  if (at !== end || view.getUint32(end) !== crc32c(bytes.subarray(0, HEADER_BYTES), chain)) {
    throw new CorruptBytes(what, 'the checksum is wrong');
  }
  const format = view.getUint8(0);
  if (format !== FORMAT) {
    throw new CorruptBytes(what, `has format ${format}; this version of Fencepost reads format ${FORMAT}`);
  }
  const first = getUint64(view, 1, what);
  return { first, before, chains, entries: begins.map((begin, i) => readEntry(bytes, view, begin, first + i, what)) };
}

function readEntry(bytes: Uint8Array, view: DataView, at: number, expected: number, what: string): Entry {
  const index = getUint64(view, at, what);
  const term = getUint64(view, at + 8, what);
  const kind = KINDS[view.getUint8(at + 16)];
  if (index !== expected) throw new CorruptBytes(what, `entry ${index} stands where ${expected} belongs`);
  if (kind === undefined) throw new CorruptBytes(what, `entry ${index} is of an unknown kind`);
  // A plain array over the same memory, whatever class LevelDB's binding returns.
  const payload = new Uint8Array(bytes.buffer, bytes.byteOffset + at + ENTRY_BYTES, view.getUint32(at + 17));
  const entry = { index, term, kind, payload };
  return kind === 'configuration' ? { ...entry, configuration: decodeConfiguration(payload) } : entry;
}
