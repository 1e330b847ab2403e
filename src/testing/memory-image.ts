/** What lies on a disk in memory, and how one batch of writes changes it: the twin of the database of a data directory. */
import {
  addDigest,
  digestBytes,
  digestText,
  sameDigest,
  subtractDigest,
  ZERO_DIGEST,
  type Digest,
} from '../base/digest.js';
import { ZERO_REVISION } from '../base/revision.js';
import { encodeUtf8 } from '../base/utf8.js';
import type { RecordKey, StateRecord, StateSummary } from '../lease/types.js';
import type { Entry, HardState, LogWrite, Position, SnapshotMeta } from '../raft/types.js';
import type { Cut, Genesis, Loaded, SnapshotChunk } from '../replica/types.js';

/** One write, carried out whole or not at all. */
export type MemoryBatch =
  | { readonly type: 'log'; readonly write: LogWrite }
  | { readonly type: 'cut'; readonly cut: Cut }
  | { readonly type: 'stage'; readonly chunk: SnapshotChunk };

/** The records of one table with the count and sum that its cuts wrote. */
export interface MemoryTable {
  readonly records: Map<string, StateRecord>;
  snapshot: SnapshotMeta;
  summary: StateSummary;
  /** As the newest cut wrote them: they tell when an earlier one got lost. */
  count: number;
  sum: Digest;
}

interface MemoryStaging extends MemoryTable {
  readonly term: number;
  readonly request: number;
  nextSequence: number;
  total: SnapshotChunk['total'];
}

/** The contents of a disk. */
export interface MemoryImage {
  readonly genesis: Genesis;
  hard: HardState;
  anchor: Position;
  entries: Entry[];
  table: MemoryTable;
  staging: MemoryStaging | undefined;
  /** What a check at the next start will refuse; first fault found. */
  damage: string | undefined;
}

/** A member that has just accepted `genesis`. */
export function newImage(genesis: Genesis): MemoryImage {
  const { history, startTerm, members, limits, holdMs } = genesis;
  const position = { index: history.start, term: startTerm };
  const configuration = { voters: members, outgoing: [], learners: [] };
  return {
    genesis,
    hard: { term: startTerm, vote: undefined },
    anchor: position,
    entries: [],
    table: {
      records: new Map(),
      snapshot: { ...position, configuration, configurationIndex: history.start },
      summary: { forgotten: ZERO_REVISION, holding: holdMs > 0, limits },
      count: 0,
      sum: ZERO_DIGEST,
    },
    staging: undefined,
    damage: undefined,
  };
}

/** A copy that shares nothing that changes. */
export function copyImage(image: MemoryImage): MemoryImage {
  const { table, staging } = image;
  return {
    ...image,
    entries: [...image.entries],
    table: { ...table, records: new Map(table.records) },
    staging: staging && { ...staging, records: new Map(staging.records) },
  };
}

/** Carries a batch out. Throws when a staged snapshot that is to be installed is not whole. */
export function applyBatch(image: MemoryImage, batch: MemoryBatch): void {
  switch (batch.type) {
    case 'log':
      applyWrite(image, batch.write);
      return;
    case 'cut':
      applyCut(image, batch.cut);
      return;
    case 'stage':
      applyChunk(image, batch.chunk);
      return;
  }
}

/** A batch that was carried out, with the count and sum of the table that it wrote. */
export interface WrittenBatch {
  readonly batch: MemoryBatch;
  readonly count: number;
  readonly sum: Digest;
}

/** Carries a batch out again, on a disk that may lack earlier ones: what it wrote stays what it was. */
export function replayBatch(image: MemoryImage, { batch, count, sum }: WrittenBatch): void {
  try {
    applyBatch(image, batch);
  } catch (error) {
    image.damage ??= error instanceof Error ? error.message : String(error);
  }
  image.table.count = count;
  image.table.sum = sum;
}

/** What a start finds. Throws when it must refuse. */
export function loadImage(image: MemoryImage): Loaded {
  const { genesis, hard, anchor, entries, table } = image;
  const last = entries.at(-1)?.index ?? anchor.index;
  let sum = ZERO_DIGEST;
  for (const record of table.records.values()) sum = addDigest(sum, recordDigest(record));
  const fault =
    image.damage ??
    (table.records.size === table.count && sameDigest(sum, table.sum)
      ? undefined
      : 'count or sum of the state table is wrong') ??
    (table.snapshot.index > last
      ? `the log ends at ${last}, before the state table, which is at ${table.snapshot.index}`
      : undefined);
  if (fault !== undefined) throw new Error(`memory disk refused: ${fault}`);
  return {
    genesis,
    hard,
    anchor,
    entries: [...entries],
    snapshot: table.snapshot,
    summary: table.summary,
    records: sortedRecords(table),
  };
}

/** In the order of their keys, as a database has them: never in the order in which they came. */
export function sortedRecords({ records }: MemoryTable): readonly StateRecord[] {
  return [...records.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, record]) => record);
}

/** A text that is equal for equal records, however their fields are ordered. */
export function recordText(record: StateRecord): string {
  return JSON.stringify(record, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

function applyWrite(image: MemoryImage, { hard, cutFrom, entries, install }: LogWrite): void {
  if (install !== undefined) switchTable(image, install);
  image.hard = hard;
  const keep = (cutFrom ?? Infinity) - image.anchor.index - 1;
  if (keep < image.entries.length) image.entries.length = Math.max(0, keep);
  for (const entry of entries) {
    const last = image.entries.at(-1)?.index ?? image.anchor.index;
    if (entry.index !== last + 1) image.damage ??= `entries ${last + 1} to ${entry.index - 1} are missing`;
    image.entries.push(entry);
  }
}

function switchTable(image: MemoryImage, meta: SnapshotMeta): void {
  const { staging } = image;
  if (staging?.snapshot.index !== meta.index || staging.snapshot.term !== meta.term) {
    throw new Error(
      `the snapshot at ${meta.index} is to be installed, but staged is ${staging?.snapshot.index ?? 'nothing'}`,
    );
  }
  if (staging.total?.count !== staging.count || staging.total.digest !== digestText(staging.sum)) {
    throw new Error(`the staged snapshot at ${meta.index} does not have its sender's count and sum`);
  }
  const { records, summary, count, sum } = staging;
  image.table = { records, snapshot: meta, summary, count, sum };
  image.staging = undefined;
  image.anchor = { index: meta.index, term: meta.term };
  image.entries = [];
}

function applyCut(image: MemoryImage, { meta, changes, keepFrom }: Cut): void {
  const { table } = image;
  if (meta.index < table.snapshot.index) return;
  for (const key of changes.remove) removeRecord(table, key);
  for (const record of changes.put) putRecord(table, record);
  table.snapshot = meta;
  table.summary = changes.summary;
  const drop = Math.min(keepFrom, meta.index + 1) - image.anchor.index - 1;
  const anchor = image.entries[drop - 1];
  if (anchor === undefined) return;
  image.anchor = { index: anchor.index, term: anchor.term };
  image.entries.splice(0, drop);
}

function applyChunk(image: MemoryImage, chunk: SnapshotChunk): void {
  const { term, request, meta, summary, sequence, total, records } = chunk;
  if (sequence === 0) {
    const empty = { records: new Map<string, StateRecord>(), count: 0, sum: ZERO_DIGEST };
    image.staging = { ...empty, term, request, snapshot: meta, summary, nextSequence: 0, total: undefined };
  }
  const { staging } = image;
  if (staging?.term !== term || staging.request !== request || staging.nextSequence !== sequence) {
    throw new Error(`chunk ${sequence} of transfer ${request} does not follow what is staged`);
  }
  for (const record of records) putRecord(staging, record);
  staging.nextSequence++;
  staging.total = total;
}

function putRecord(table: MemoryTable, record: StateRecord): void {
  removeRecord(table, record);
  table.records.set(nameOf(record), record);
  table.count++;
  table.sum = addDigest(table.sum, recordDigest(record));
}

function removeRecord(table: MemoryTable, key: RecordKey): void {
  const old = table.records.get(nameOf(key));
  if (old === undefined) return;
  table.records.delete(nameOf(key));
  table.count--;
  table.sum = subtractDigest(table.sum, recordDigest(old));
}

function nameOf(key: RecordKey): string {
  switch (key.type) {
    case 'domain':
    case 'coolDown':
    case 'counting':
      return `${key.type} ${key.domain}`;
    case 'waiter':
      return `waiter ${String(key.queuedAt).padStart(16, '0')}`;
    case 'finished':
      return `finished ${String(key.lastRevision).padStart(16, '0')}`;
  }
}

function recordDigest(record: StateRecord): Digest {
  return digestBytes(encodeUtf8(recordText(record)));
}
