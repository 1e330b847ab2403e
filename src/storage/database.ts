/** The database of a data directory, as the store uses it. A port: the real one is LevelDB (leveldb.ts). */
import { CorruptBytes } from '../wire/corrupt.js';
import type { KeyRange } from '../wire/disk.js';
import type { Files } from './files.js';
import { DirectoryRefused, MAKE_ROOM, REPLACE_MEMBER } from './refused.js';

/** One operation of a batch. */
export type Operation =
  | { readonly type: 'put'; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly type: 'del'; readonly key: Uint8Array };

/** A fixed view of a database: later writes do not change it. */
export interface DatabaseView {
  close(): Promise<void>;
}

/** A pass over some of its records, in the order of their keys, as they were when it was made. */
export interface DatabaseIterator extends AsyncIterable<[Uint8Array, Uint8Array]> {
  /** At most `size` more; none at the end. */
  nextv(size: number): Promise<[Uint8Array, Uint8Array][]>;
  close(): Promise<void>;
}

/** Which records: a range, as they are in a view if one is given. */
type Selection = KeyRange & { readonly snapshot?: DatabaseView };

/** Ordered records of bytes. What it returns may be Buffers; see {@link plainBytes}. */
export interface Database {
  get(key: Uint8Array, options?: { readonly snapshot: DatabaseView }): Promise<Uint8Array | undefined>;
  /** All or nothing. With `sync` it outlives a power loss when this resolves. */
  batch(operations: Operation[], options: { readonly sync: boolean }): Promise<unknown>;
  iterator(selection: Selection): DatabaseIterator;
  /** `reverse`: the last ones, backwards. */
  keys(selection: KeyRange & { readonly limit: number; readonly reverse?: boolean }): { all(): Promise<Uint8Array[]> };
  /** Removes records, at most `limit` of them; neither synced nor atomic. */
  clear(selection: KeyRange & { readonly limit?: number }): Promise<void>;
  snapshot(): DatabaseView;
  close(): Promise<void>;
}

/** How databases come to be. */
export interface Databases {
  /** Makes one where there is none. */
  create(location: string): Promise<Database>;
  /**
   * Opens an existing one, after a look at its files. Throws {@link DirectoryRefused} when they are damaged, or another
   * process has it open.
   */
  open(location: string, files: Files): Promise<Database>;
}

/** Whether an error is one of LevelDB's. */
export function isLevelError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('LEVEL_');
}

/** What LevelDB could not open, read or write. A full or unreadable disk is no damage: the member starts again after it. */
export function refusedByLevel(location: string, error: unknown): DirectoryRefused {
  const reason = error instanceof Error ? error.message : String(error);
  const next = isLevelError(error) && error.code === 'LEVEL_IO_ERROR' ? MAKE_ROOM : REPLACE_MEMBER;
  return new DirectoryRefused(location, `LevelDB cannot use it: ${reason}`, next, { cause: error });
}

/** Carries `read` out; damage that it meets is told of `file`, as {@link DirectoryRefused}. */
export async function refusing<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isLevelError(error)) throw refusedByLevel(file, error);
    if (!(error instanceof CorruptBytes)) throw error;
    throw new DirectoryRefused(file, error.message, REPLACE_MEMBER, { cause: error });
  }
}

/** A plain array over the same memory: LevelDB's binding returns Buffers. */
export function plainBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
