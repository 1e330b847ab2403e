/** Reads the log at a start: every block from the anchor on, each behind the one before, without a hole (F9). */
import type { Entry } from '../raft/types.js';
import { CorruptBytes } from '../wire/corrupt.js';
import { blockRange, firstOfBlockKey } from '../wire/disk.js';
import { decodeBlock, type DecodedBlock } from '../wire/disk-log.js';
import type { ChainPosition } from '../wire/disk-records.js';
import { plainBytes, type Database } from './database.js';
import { LogIndex } from './log-index.js';

/** A log as it was found. */
export interface LoadedLog {
  readonly index: LogIndex;
  readonly entries: readonly Entry[];
}

/** Blocks at or below `anchor` are rubbish that a power loss brought back, and are not looked at. Throws `CorruptBytes`. */
export async function loadLog(database: Database, anchor: ChainPosition): Promise<LoadedLog> {
  const index = new LogIndex(anchor);
  const entries: Entry[] = [];
  for await (const [key, value] of database.iterator(blockRange())) {
    const first = firstOfBlockKey(plainBytes(key));
    if (first === undefined) throw new CorruptBytes('the log', 'a key is none of a log block');
    if (first <= anchor.index) continue;
    const block = decodeBlock(plainBytes(value), `log block ${first}`);
    checkPlace(block, first, index);
    // What the block supersedes exists for no reader.
    index.cut(first);
    entries.length = first - anchor.index - 1;
    index.append({ first, terms: block.entries.map((entry) => entry.term), chains: block.chains });
    for (const entry of block.entries) entries.push(entry);
  }
  return { index, entries };
}

function checkPlace({ first, before, entries }: DecodedBlock, key: number, index: LogIndex): void {
  const what = `log block ${key}`;
  if (first !== key) throw new CorruptBytes(what, `says that it begins at ${first}`);
  const previous = index.at(first - 1);
  if (previous === undefined)
    throw new CorruptBytes('the log', `entries ${index.last.index + 1} to ${first - 1} are missing`);
  if (previous.chain !== before)
    throw new CorruptBytes(what, 'was written behind another entry than the one before it');
  let { term } = previous;
  for (const entry of entries) {
    if (entry.term < term) throw new CorruptBytes(what, `entry ${entry.index} has a lower term than the one before it`);
    term = entry.term;
  }
}
