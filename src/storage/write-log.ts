/** Writes of the log: merged while they wait, one block each, lowered mark before what cuts. */
import { assert } from '../base/assert.js';
import { digestText } from '../base/digest.js';
import type { Entry, HardState, LogWrite, SnapshotMeta } from '../raft/types.js';
import { blockKey, metaKey, POINTER_KEY } from '../wire/disk.js';
import { encodeBlock } from '../wire/disk-log.js';
import { encodeCutMeta, encodePointer } from '../wire/disk-records.js';
import { chainStart, commit, markAt, type DiskState, type Staging } from './disk-state.js';
import type { Operation } from './database.js';

/** Several log writes as one. */
export interface MergedWrite {
  readonly seqs: readonly number[];
  readonly hard: HardState;
  readonly cutFrom: number | undefined;
  readonly entries: readonly Entry[];
  readonly install: SnapshotMeta | undefined;
}

/** One write, ready to take more. */
export function single(write: LogWrite): MergedWrite {
  const { seq, ...rest } = write;
  return { ...rest, seqs: [seq] };
}

/** Both in one, the later after the earlier; undefined when the later must stand alone. */
export function merge(earlier: MergedWrite, later: LogWrite): MergedWrite | undefined {
  if (later.install !== undefined) return undefined;
  const cut = later.cutFrom;
  const common = { seqs: [...earlier.seqs, later.seq], hard: later.hard, install: earlier.install };
  if (cut === undefined) {
    return { ...common, cutFrom: earlier.cutFrom, entries: [...earlier.entries, ...later.entries] };
  }
  return {
    ...common,
    cutFrom: Math.min(earlier.cutFrom ?? cut, cut),
    entries: [...earlier.entries.filter((entry) => entry.index < cut), ...later.entries],
  };
}

/** Carries a write out: durable when this resolves. */
export async function performLogWrite(disk: DiskState, write: MergedWrite): Promise<void> {
  const operations: Operation[] = [];
  if (write.install !== undefined) operations.push(...(await switchTable(disk, write.install)));
  const from = write.cutFrom ?? Infinity;
  const cuts = from <= disk.log.last.index;
  if (cuts) {
    const stays = disk.log.at(from - 1);
    assert(
      stays !== undefined && from > disk.table.snapshot.index,
      `a cut from ${from} reaches below what was applied`,
    );
    await disk.mark.lower(markAt(disk, stays));
    operations.push(...disk.log.cut(from).map(deleteBlock));
  }
  // With nothing new, an empty block ends the one whose tail was cut off.
  if (cuts || write.entries.length > 0) operations.push(appendBlock(disk, write.entries));
  await commit(disk, operations, write.hard);
}

function appendBlock(disk: DiskState, entries: readonly Entry[]): Operation {
  const { index, term, chain } = disk.log.last;
  const first = index + 1;
  const terms = entries.map((entry) => entry.term);
  for (const [i, entry] of entries.entries()) {
    assert(entry.index === first + i, `entry ${entry.index} was given where ${first + i} belongs`);
    assert(entry.term >= (terms[i - 1] ?? term), `entry ${entry.index} has a lower term than the one before it`);
  }
  const { value, chains } = encodeBlock(first, chain, entries);
  disk.log.append({ first, terms, chains });
  return { type: 'put', key: blockKey(first), value };
}

/** The part of a batch that puts the staged table in force and drops the log. */
async function switchTable(disk: DiskState, meta: SnapshotMeta): Promise<readonly Operation[]> {
  const staged = checkStaged(disk.staging, meta);
  assert(meta.index >= disk.table.snapshot.index, `snapshot ${meta.index} lies below cut ${disk.table.snapshot.index}`);
  const stays = disk.log.at(Math.min(meta.index, disk.log.last.index));
  assert(stays !== undefined, `snapshot ${meta.index} lies below the log's anchor ${disk.log.anchor.index}`);
  await disk.mark.lower(markAt(disk, stays));
  const { incarnation, history } = disk.genesis;
  const anchor = chainStart(disk.genesis, meta.index, meta.term);
  const { prefix, sum, summary } = staged;
  const record = { prefix, snapshot: meta, incarnation, history, anchor, count: sum.count, sum: sum.sum, summary };
  disk.table = { prefix, sum, snapshot: meta };
  disk.staging = undefined;
  return [
    ...disk.log.reset(anchor).map(deleteBlock),
    { type: 'put', key: POINTER_KEY, value: encodePointer(prefix) },
    { type: 'put', key: metaKey(prefix), value: encodeCutMeta(record) },
  ];
}

function checkStaged(staging: Staging | undefined, meta: SnapshotMeta): Staging {
  if (staging?.meta.index !== meta.index || staging.meta.term !== meta.term) {
    throw new Error(
      `the snapshot at ${meta.index} is to be installed, but staged is ${staging?.meta.index ?? 'nothing'}`,
    );
  }
  const { total, sum } = staging;
  if (total?.count !== sum.count || total.digest !== digestText(sum.sum)) {
    throw new Error(
      `the staged snapshot at ${meta.index} has ${sum.count} records with sum ${digestText(sum.sum)}; ` +
        `its sender has ${total?.count ?? 'an unknown number'} with sum ${total?.digest ?? 'unknown'}`,
    );
  }
  return staging;
}

function deleteBlock(first: number): Operation {
  return { type: 'del', key: blockKey(first) };
}
