/**
 * Checks the files of a LevelDB database before LevelDB opens it. LevelDB itself does not: it reads tables without
 * looking at their checksums, ends the process by an assertion when a damaged block does not make sense, skips damaged
 * parts of its write-ahead log, and then deletes that log, so that nobody can examine it. Formats: doc/impl.md,
 * doc/table_format.md of LevelDB.
 */
import { join } from 'node:path';
import { CorruptBytes } from '../wire/corrupt.js';
import { viewOf } from '../wire/disk-bytes.js';
import type { Files } from './files.js';
import { maskedCrc, readRecords, VarintReader } from './leveldb-records.js';

const FOOTER_BYTES = 48;
/** LevelDB's magic number, as its eight bytes stand in the file. */
const MAGIC = '57fb808b247547db';
/** Type byte and checksum behind each block. */
const TRAILER_BYTES = 5;
const UNCOMPRESSED = 0;

/** What MANIFEST says is in force. */
interface Version {
  /** Number → size of the tables. */
  readonly tables: ReadonlyMap<number, number>;
  /** Write-ahead logs below this number have been moved into tables. */
  readonly firstLog: number;
}

/** Throws {@link CorruptBytes} unless every file in use is there and every checksum in it is right. */
export async function checkDatabaseFiles(location: string, files: Files): Promise<void> {
  const version = await readVersion(location, files);
  for (const [number, size] of version.tables) {
    const name = `${String(number).padStart(6, '0')}.ldb`;
    const bytes = await required(location, name, files);
    if (bytes.length !== size) throw new CorruptBytes(name, `has ${bytes.length} bytes instead of ${size}`);
    checkTable(bytes, name);
  }
  const names = (await files.list(location)) ?? [];
  const logs = names.filter((name) => name.endsWith('.log') && Number.parseInt(name, 10) >= version.firstLog);
  if (logs.length === 0)
    throw new CorruptBytes('the write-ahead log', `is missing (a file from ${version.firstLog} on, .log)`);
  for (const name of logs) readRecords(await required(location, name, files), name);
}

async function readVersion(location: string, files: Files): Promise<Version> {
  const current = Buffer.from(await required(location, 'CURRENT', files)).toString('latin1');
  const name = /^(MANIFEST-\d+)\n$/.exec(current)?.[1];
  if (name === undefined) throw new CorruptBytes('CURRENT', 'names no MANIFEST');
  const tables = new Map<number, number>();
  let firstLog = 0;
  for (const record of readRecords(await required(location, name, files), name)) {
    const edit = new VarintReader(record, name);
    while (!edit.done) firstLog = applyField(edit, tables, name) ?? firstLog;
  }
  return { tables, firstLog };
}

/** One field of a version edit; returns the number of the first log when that is what it says. */
function applyField(edit: VarintReader, tables: Map<number, number>, what: string): number | undefined {
  const tag = edit.number();
  switch (tag) {
    case 1: // comparator
      edit.string();
      return undefined;
    case 2: // first write-ahead log in use
      return edit.number();
    case 3: // next file number
    case 4: // last sequence number
    case 9: // previous log; always 0 since LevelDB 1.3
      edit.number();
      return undefined;
    case 5: // compaction pointer: level, key
      edit.number();
      edit.string();
      return undefined;
    case 6: // table that is gone: level, number
      edit.number();
      tables.delete(edit.number());
      return undefined;
    case 7: {
      // new table: level, number, size, least and greatest key
      edit.number();
      const number = edit.number();
      tables.set(number, edit.number());
      edit.string();
      edit.string();
      return undefined;
    }
    default:
      throw new CorruptBytes(what, `has a field of unknown kind ${tag}`);
  }
}

/** Every block's checksum: of the index, and of all that it and the index of filters name. */
function checkTable(bytes: Uint8Array, what: string): void {
  const footer = bytes.subarray(-FOOTER_BYTES);
  if (Buffer.from(footer.subarray(-8)).toString('hex') !== MAGIC) throw new CorruptBytes(what, 'is no table');
  const reader = new VarintReader(footer, what);
  for (let indexes = 0; indexes < 2; indexes++) {
    for (const [offset, size] of handlesIn(checkedBlock(bytes, reader.number(), reader.number(), what), what)) {
      checkedBlock(bytes, offset, size, what);
    }
  }
}

function checkedBlock(bytes: Uint8Array, offset: number, size: number, what: string): Uint8Array {
  const end = offset + size;
  if (end + TRAILER_BYTES > bytes.length) throw new CorruptBytes(what, `the block at ${offset} ends beyond the file`);
  if (viewOf(bytes).getUint32(end + 1, true) !== maskedCrc(bytes.subarray(offset, end + 1))) {
    throw new CorruptBytes(what, `the block at ${offset} has a wrong checksum`);
  }
  if (bytes[end] !== UNCOMPRESSED) throw new CorruptBytes(what, `the block at ${offset} is compressed`);
  return bytes.subarray(offset, end);
}

/** The values of an index block: offset and size of other blocks. */
function* handlesIn(block: Uint8Array, what: string): Iterable<readonly [offset: number, size: number]> {
  const restarts = block.length < 4 ? Infinity : viewOf(block).getUint32(block.length - 4, true);
  const end = block.length - 4 * (1 + restarts);
  if (end < 0) throw new CorruptBytes(what, 'an index block is too short');
  const reader = new VarintReader(block.subarray(0, end), what);
  while (!reader.done) {
    reader.number(); // bytes shared with the key before
    const [keyBytes, valueBytes] = [reader.number(), reader.number()];
    reader.take(keyBytes);
    const value = new VarintReader(reader.take(valueBytes), what);
    yield [value.number(), value.number()];
  }
}

async function required(location: string, name: string, files: Files): Promise<Uint8Array> {
  const bytes = await files.read(join(location, name));
  if (bytes === undefined) throw new CorruptBytes(name, 'is missing');
  return bytes;
}
