/** An open data directory, and the one way in which batches are written to it. */
import type { HardState, SnapshotMeta } from '../raft/types.js';
import type { Genesis } from '../replica/types.js';
import type { StateSummary } from '../lease/types.js';
import { crc32c } from '../base/digest.js';
import { encodeUtf8 } from '../base/utf8.js';
import { HARD_KEY } from '../wire/disk.js';
import { encodeHardState, type ChainPosition } from '../wire/disk-records.js';
import type { Mark } from '../wire/disk-mark.js';
import type { Database, Operation } from './database.js';
import type { LogIndex } from './log-index.js';
import type { MarkFile } from './mark.js';
import type { TableSum } from './table-sum.js';

/** The table in force. */
export interface Table {
  readonly prefix: number;
  readonly sum: TableSum;
  /** The newest cut's position. */
  readonly snapshot: SnapshotMeta;
}

/** A snapshot that is being received. */
export interface Staging {
  readonly prefix: number;
  readonly term: number;
  readonly request: number;
  readonly meta: SnapshotMeta;
  readonly sum: TableSum;
  readonly summary: StateSummary;
  readonly nextSequence: number;
  /** The sender's count and sum, once the last chunk is here. */
  readonly total: { readonly count: number; readonly digest: string } | undefined;
}

/** Everything about an open directory. Changed only by the job at the head of the queue. */
export interface DiskState {
  readonly database: Database;
  readonly mark: MarkFile;
  readonly genesis: Genesis;
  readonly log: LogIndex;
  /** As in the last batch. */
  hard: HardState;
  /** Number of the last batch. */
  write: number;
  table: Table;
  staging: Staging | undefined;
  /** No table has used this prefix. */
  nextPrefix: number;
}

/** Writes one batch, synced, with the hard-state record; then the mark. Everything that is kept goes through here. */
export async function commit(disk: DiskState, operations: readonly Operation[], hard = disk.hard): Promise<void> {
  const write = disk.write + 1;
  const record: Operation = { type: 'put', key: HARD_KEY, value: encodeHardState({ ...hard, write }) };
  await disk.database.batch([...operations, record], { sync: true });
  disk.write = write;
  disk.hard = hard;
  await disk.mark.write(markAt(disk, disk.log.last));
}

/** The mark of the last write, with `position` as the end of the log. */
export function markAt(disk: DiskState, position: ChainPosition): Mark {
  const { term, vote } = disk.hard;
  return { write: disk.write, term, vote, index: position.index, indexTerm: position.term, chain: position.chain };
}

/** Where a log begins that has no entry before it: at Genesis, or at an installed snapshot. */
export function chainStart(genesis: Pick<Genesis, 'incarnation'>, index: number, term: number): ChainPosition {
  return { index, term, chain: crc32c(encodeUtf8(`${genesis.incarnation} ${index} ${term}`)) };
}
