/**
 * The ports through which effects leave and events come back: submit and complete, never promises. Each has a twin in
 * memory (`testing/`) that injects faults, and one suite that both pass.
 */
import type { Header } from '../base/api.js';
import type { Command } from '../lease/commands.js';
import type { LogWrite } from '../raft/types.js';
import type { CallId, CallResult, Cut, Effect, Loaded, SnapshotChunk } from './types.js';

/** The bytes of a command. Pure and total: `decode` throws on bytes that no version of `encode` made. */
export interface CommandCodec {
  encode(command: Command): Uint8Array;
  decode(bytes: Uint8Array): Command;
}

/** The effects that go to other members. */
export type PeerEffect = Extract<
  Effect,
  {
    readonly type:
      | 'send'
      | 'forward'
      | 'forwardCancel'
      | 'forwardResult'
      | 'probe'
      | 'sendSnapshot'
      | 'abortSnapshot'
      | 'refuseChunks'
      | 'chunksDone';
  }
>;

/** The way to the other members. What cannot be sent is dropped: Raft repeats. Reports by events to the executor. */
export interface PeerPort {
  perform(effect: PeerEffect): void;
  /** A chunk that arrived is durable here: its sender may go on. */
  chunkStaged(request: number, sequence: number): void;
}

/** The way back to this node's clients. */
export interface ClientPort {
  answer(id: CallId, header: Header, result: CallResult): void;
}

/** The effects that go to the watchers of this node. */
export type WatchEffect = Extract<Effect, { readonly type: 'watchNews' | 'watchFailed' }>;

/** The way to this node's watchers. Reports `watchReady` and `watchClosed` to the executor. */
export interface WatchPort {
  perform(effect: WatchEffect): void;
}

/** What the writes of a store report. A failed write is reported once and ends the process; nothing is reported after. */
export interface StoreListener {
  written(seq: number): void;
  cutWritten(index: number): void;
  staged(request: number, sequence: number): void;
  /** The disk refused a write or a sync: end the process with exit code 74, retry nothing. */
  failed(error: Error): void;
}

/**
 * The log: hard state and entries, one write in flight, each synced before it is reported. Shares one queue with
 * {@link StateStore}: writes are carried out in the order submitted.
 */
export interface LogStore {
  write(write: LogWrite): void;
}

/** The table of the state machine's records, in cuts; and the staging prefix of a snapshot being received. */
export interface StateStore {
  cut(cut: Cut): void;
  stage(chunk: SnapshotChunk): void;
  /** The newest durable cut as a consistent iterator; later cuts do not disturb it. */
  openSnapshot(): SnapshotReader;
}

/** Reads one cut from the first record to the last. */
export interface SnapshotReader {
  /** Next records, about `maxBytes` of them, in chunk form (term and request are filled in by the sender); undefined after the last chunk. */
  next(maxBytes: number): Promise<Omit<SnapshotChunk, 'term' | 'request' | 'sequence'> | undefined>;
  close(): Promise<void>;
}

/** Both halves of one data directory, opened. */
export interface Store extends LogStore, StateStore {
  /** What was found at the start. */
  readonly loaded: Loaded;
  /** Starts reporting. Called once, before the first write. */
  listen(listener: StoreListener): void;
  /** Waits for what is under way, syncs MARK and closes. */
  close(): Promise<void>;
}
