/** The single records of a data directory's database: hard state, Genesis, the pointer to the table, a cut's meta. */
import type { Digest } from '../base/digest.js';
import { isHexId, isNodeId, type DirectoryId, type Incarnation } from '../base/ids.js';
import type { History, Revision } from '../base/revision.js';
import type { StateSummary } from '../lease/types.js';
import type { HardState, Member, SnapshotMeta } from '../raft/types.js';
import type { Genesis } from '../replica/types.js';
import { decodeConfiguration, encodeConfiguration } from './configuration.js';
import { CorruptBytes } from './corrupt.js';
import { RecordReader, RecordWriter } from './disk-bytes.js';
import { decodeGenesis, encodeGenesis } from './genesis.js';
import { decodeSummary, encodeSummary } from './summary.js';

const HARD = { kind: 0x48, format: 1, what: 'the hard-state record' } as const;
const GENESIS = { kind: 0x47, format: 1, what: 'the Genesis record' } as const;
const POINTER = { kind: 0x50, format: 1, what: 'the pointer to the state table' } as const;
const META = { kind: 0x43, format: 1, what: "the meta record of the state's cut" } as const;

/** Term and vote with the number of the synced write that wrote them. */
export interface NumberedHardState extends HardState {
  readonly write: number;
}

/** A position in the log with the chain value of its entry. */
export interface ChainPosition {
  readonly index: number;
  readonly term: number;
  readonly chain: number;
}

/** What a cut says of itself (design 6; F4, S2.2, S4.5). */
export interface CutMeta {
  /** The prefix of the table that it describes. */
  readonly prefix: number;
  /** The state is that at exactly this position. */
  readonly snapshot: SnapshotMeta;
  readonly incarnation: Incarnation;
  readonly history: History;
  /** The entry before the first kept one. Blocks at or below it are rubbish. */
  readonly anchor: ChainPosition;
  /** Records in the table, and the sum of their digests. */
  readonly count: number;
  readonly sum: Digest;
  readonly summary: StateSummary;
}

/** A vote inside another record. */
export function writeVote(writer: RecordWriter, vote: Member | undefined): void {
  writer.uint8(vote === undefined ? 0 : 1);
  if (vote !== undefined) writer.text(vote.node).text(vote.directory);
}

/** The inverse of {@link writeVote}. */
export function readVote(reader: RecordReader, what: string): Member | undefined {
  if (reader.uint8() === 0) return undefined;
  const node = reader.text();
  const directory = reader.text();
  if (!isNodeId(node) || !isHexId(directory)) throw new CorruptBytes(what, 'the vote names no member');
  return { node, directory: directory as DirectoryId };
}

/** Written with every batch. */
export function encodeHardState(hard: NumberedHardState): Uint8Array {
  const writer = new RecordWriter(HARD.kind, HARD.format).uint64(hard.write).uint64(hard.term);
  writeVote(writer, hard.vote);
  return writer.seal();
}

/** The inverse of {@link encodeHardState}. */
export function decodeHardState(bytes: Uint8Array): NumberedHardState {
  const reader = new RecordReader(bytes, HARD.kind, HARD.format, HARD.what);
  const [write, term] = [reader.uint64(), reader.uint64()];
  const vote = readVote(reader, HARD.what);
  reader.end();
  return { write, term, vote };
}

/** Genesis with a checksum around it. */
export function sealGenesis(genesis: Genesis): Uint8Array {
  return new RecordWriter(GENESIS.kind, GENESIS.format).bytes(encodeGenesis(genesis)).seal();
}

/** The inverse of {@link sealGenesis}. */
export function unsealGenesis(bytes: Uint8Array): Genesis {
  const reader = new RecordReader(bytes, GENESIS.kind, GENESIS.format, GENESIS.what);
  const genesis = decodeGenesis(reader.bytes());
  reader.end();
  return genesis;
}

/** Names the prefix under which the current table lies. */
export function encodePointer(prefix: number): Uint8Array {
  return new RecordWriter(POINTER.kind, POINTER.format).uint64(prefix).seal();
}

/** The inverse of {@link encodePointer}. */
export function decodePointer(bytes: Uint8Array): number {
  const reader = new RecordReader(bytes, POINTER.kind, POINTER.format, POINTER.what);
  const prefix = reader.uint64();
  reader.end();
  return prefix;
}

/** A cut's meta record. */
export function encodeCutMeta(meta: CutMeta): Uint8Array {
  const { snapshot, anchor } = meta;
  return new RecordWriter(META.kind, META.format)
    .uint64(meta.prefix)
    .uint64(snapshot.index)
    .uint64(snapshot.term)
    .bytes(encodeConfiguration(snapshot.configuration))
    .uint64(snapshot.configurationIndex)
    .text(meta.incarnation)
    .uint64(meta.history.base)
    .uint64(meta.history.start)
    .uint64(anchor.index)
    .uint64(anchor.term)
    .uint32(anchor.chain)
    .uint64(meta.count)
    .uint32(meta.sum.high)
    .uint32(meta.sum.low)
    .bytes(encodeSummary(meta.summary))
    .seal();
}

/** The inverse of {@link encodeCutMeta}. */
export function decodeCutMeta(bytes: Uint8Array): CutMeta {
  const reader = new RecordReader(bytes, META.kind, META.format, META.what);
  const prefix = reader.uint64();
  const [index, term] = [reader.uint64(), reader.uint64()];
  const configuration = decodeConfiguration(reader.bytes());
  const configurationIndex = reader.uint64();
  const incarnation = reader.text() as Incarnation;
  const history = { base: reader.uint64() as Revision, start: reader.uint64() };
  const anchor = { index: reader.uint64(), term: reader.uint64(), chain: reader.uint32() };
  const count = reader.uint64();
  const sum = { high: reader.uint32(), low: reader.uint32() };
  const summary = decodeSummary(reader.bytes());
  reader.end();
  if (!isHexId(incarnation)) throw new CorruptBytes(META.what, 'the incarnation is none');
  return {
    prefix,
    snapshot: { index, term, configuration, configurationIndex },
    incarnation,
    history,
    anchor,
    count,
    sum,
    summary,
  };
}
