/**
 * MARK: what a start must find at least. Two slots, written in turn; the valid one with the greater counter holds. They
 * lie in different pages and sectors, so that a write that was cut off damages one of them only.
 */
import type { Member } from '../raft/types.js';
import { CorruptBytes } from './corrupt.js';
import { RecordReader, RecordWriter, viewOf } from './disk-bytes.js';
import { readVote, writeVote } from './disk-records.js';

const KIND = 0x4d;
const FORMAT = 1;

/** Bytes of a slot; more than any mark needs. */
export const MARK_SLOT_BYTES = 256;
/** Where the two slots begin. */
export const MARK_SLOT_OFFSETS = [0, 4096] as const;

/** The state of the disk after a synced write. */
export interface Mark {
  /** Of the write; compared with the hard-state record's. */
  readonly write: number;
  readonly term: number;
  readonly vote: Member | undefined;
  /** The last entry, its term and its chain value. */
  readonly index: number;
  readonly indexTerm: number;
  readonly chain: number;
}

/** A mark with its place in the order of marks. */
export interface NumberedMark extends Mark {
  readonly counter: number;
}

/** One slot: length, sealed record, zeros. */
export function encodeMarkSlot(mark: NumberedMark): Uint8Array {
  const writer = new RecordWriter(KIND, FORMAT).uint64(mark.counter).uint64(mark.write).uint64(mark.term);
  writeVote(writer, mark.vote);
  const sealed = writer.uint64(mark.index).uint64(mark.indexTerm).uint32(mark.chain).seal();
  const slot = new Uint8Array(MARK_SLOT_BYTES);
  viewOf(slot).setUint16(0, sealed.length);
  slot.set(sealed, 2);
  return slot;
}

/** The mark that holds in `file`; throws {@link CorruptBytes} when neither slot is whole. */
export function decodeMarkFile(file: Uint8Array): NumberedMark {
  let newest: NumberedMark | undefined;
  for (const offset of MARK_SLOT_OFFSETS) {
    const mark = decodeSlot(file.subarray(offset, offset + MARK_SLOT_BYTES));
    if (mark !== undefined && (newest === undefined || mark.counter > newest.counter)) newest = mark;
  }
  if (newest === undefined) throw new CorruptBytes('MARK', 'neither of its two slots is whole');
  return newest;
}

function decodeSlot(slot: Uint8Array): NumberedMark | undefined {
  if (slot.length < 2) return undefined;
  const sealed = slot.subarray(2, 2 + viewOf(slot).getUint16(0));
  try {
    const reader = new RecordReader(sealed, KIND, FORMAT, 'MARK');
    const [counter, write, term] = [reader.uint64(), reader.uint64(), reader.uint64()];
    const vote = readVote(reader, 'MARK');
    const [index, indexTerm, chain] = [reader.uint64(), reader.uint64(), reader.uint32()];
    reader.end();
    return { counter, write, term, vote, index, indexTerm, chain };
  } catch (error) {
    if (error instanceof CorruptBytes) return undefined;
    throw error;
  }
}
