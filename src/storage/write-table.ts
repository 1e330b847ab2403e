/** Writes of the state table: cuts, staged chunks, and the removal of prefixes that are out of use. */
import { assert } from '../base/assert.js';
import type { StateSummary } from '../lease/types.js';
import type { SnapshotMeta } from '../raft/types.js';
import type { Cut, SnapshotChunk } from '../replica/types.js';
import { blockKey, metaKey, prefixRange, tableKeys } from '../wire/disk.js';
import { encodeCutMeta } from '../wire/disk-records.js';
import { encodeStateRecord, recordKey } from '../wire/state.js';
import { commit, type DiskState } from './disk-state.js';
import type { Operation } from './database.js';
import { TableSum } from './table-sum.js';

/** Records that one step of a removal deletes; the log's writes come in between. */
const SWEEP_RECORDS = 2_000;

interface EncodedRecord {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** A cut as bytes, made in the turn in which it was submitted: the state at exactly one index (S4.1). */
export interface EncodedCut {
  readonly snapshot: SnapshotMeta;
  readonly summary: StateSummary;
  readonly put: readonly EncodedRecord[];
  readonly remove: readonly Uint8Array[];
  readonly keepFrom: number;
}

/** Copies the cut out of the state machine's hands. */
export function encodeCut({ meta, changes, keepFrom }: Cut): EncodedCut {
  const { summary, put, remove } = changes;
  return { snapshot: meta, summary, put: put.map(encodeStateRecord), remove: remove.map(recordKey), keepFrom };
}

/** Writes a cut. False when it is older than the table, which an installed snapshot has replaced meanwhile: it is dropped. */
export async function performCut(disk: DiskState, cut: EncodedCut): Promise<boolean> {
  const { snapshot, summary } = cut;
  const { prefix, sum } = disk.table;
  if (snapshot.index < disk.table.snapshot.index) return false;
  const { last } = disk.log;
  assert(
    snapshot.index <= last.index,
    `a cut at ${snapshot.index} overtook the log, which ends at ${last.index} (S2.4)`,
  );
  const operations: Operation[] = [];
  const keyOf = tableKeys(prefix);
  for (const key of cut.remove) {
    sum.remove(key);
    operations.push({ type: 'del', key: keyOf(key) });
  }
  for (const { key, value } of cut.put) {
    sum.put(key, value);
    operations.push({ type: 'put', key: keyOf(key), value });
  }
  for (const first of disk.log.compact(Math.min(cut.keepFrom, snapshot.index + 1))) {
    operations.push({ type: 'del', key: blockKey(first) });
  }
  const { incarnation, history } = disk.genesis;
  const { anchor } = disk.log;
  const meta = { prefix, snapshot, incarnation, history, anchor, count: sum.count, sum: sum.sum, summary };
  operations.push({ type: 'put', key: metaKey(prefix), value: encodeCutMeta(meta) });
  disk.table = { prefix, sum, snapshot };
  await commit(disk, operations);
  return true;
}

/** Writes a chunk under the staging prefix. The first one of a transfer begins a new prefix; returns the one it leaves. */
export async function performStage(disk: DiskState, chunk: SnapshotChunk): Promise<number | undefined> {
  const left = disk.staging?.prefix;
  const begins = chunk.sequence === 0;
  if (begins) {
    disk.staging = {
      prefix: disk.nextPrefix++,
      term: chunk.term,
      request: chunk.request,
      meta: chunk.meta,
      sum: new TableSum(),
      summary: chunk.summary,
      nextSequence: 0,
      total: undefined,
    };
  }
  const { staging } = disk;
  if (staging?.term !== chunk.term || staging.request !== chunk.request || staging.nextSequence !== chunk.sequence) {
    throw new Error(`chunk ${chunk.sequence} of transfer ${chunk.request} does not follow what is staged`);
  }
  const keyOf = tableKeys(staging.prefix);
  const operations = chunk.records.map((record): Operation => {
    const { key, value } = encodeStateRecord(record);
    staging.sum.put(key, value);
    return { type: 'put', key: keyOf(key), value };
  });
  disk.staging = { ...staging, nextSequence: chunk.sequence + 1, total: chunk.total };
  await commit(disk, operations);
  return begins ? left : undefined;
}

/** Removes some of the records under a prefix that is out of use; true while there are more. Needs no sync: a start does it too. */
export async function sweepSome(disk: DiskState, prefix: number): Promise<boolean> {
  await disk.database.clear({ ...prefixRange(prefix), limit: SWEEP_RECORDS });
  const rest = await disk.database.keys({ ...prefixRange(prefix), limit: 1 }).all();
  return rest.length > 0;
}
