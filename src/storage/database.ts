/** LevelDB: how it is opened, and what its own log says of damage. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClassicLevel, type Iterator, type Snapshot } from 'classic-level';
import type { Files } from './files.js';
import { DirectoryRefused, MAKE_ROOM, REPLACE_MEMBER } from './refused.js';

/** The database of a data directory, in bytes. */
export type Database = ClassicLevel<Uint8Array, Uint8Array>;

/** A pass over some of its records. */
export type DatabaseIterator = Iterator<Database, Uint8Array, Uint8Array>;

/** A fixed view of it. */
export type DatabaseView = Snapshot;

/** One operation of a batch. */
export type Operation =
  | { readonly type: 'put'; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly type: 'del'; readonly key: Uint8Array };

const OPTIONS = { keyEncoding: 'view', valueEncoding: 'view', compression: false } as const;
/** A process that was just killed may hold the lock for a moment longer. */
const LOCK_TRIES = 20;
const LOCK_RETRY_MS = 100;
/** LevelDB says so, and goes on, when it has skipped damaged bytes. */
const DAMAGE = /dropping \d+ bytes|ignoring error|Corruption: /i;

/** Makes a database where there is none. */
export async function createDatabase(location: string): Promise<Database> {
  const database: Database = new ClassicLevel(location, { ...OPTIONS, errorIfExists: true });
  await database.open();
  return database;
}

/** Opens an existing database. Throws {@link DirectoryRefused}, also when another process has it open. */
export async function openDatabase(location: string): Promise<Database> {
  for (let tries = 1; ; tries++) {
    const database: Database = new ClassicLevel(location, { ...OPTIONS, createIfMissing: false });
    try {
      await database.open();
      return database;
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined;
      const locked = isLevelError(cause) && cause.code === 'LEVEL_LOCKED';
      if (locked && tries < LOCK_TRIES) {
        await sleep(LOCK_RETRY_MS);
        continue;
      }
      if (locked) {
        throw new DirectoryRefused(
          join(location, 'LOCK'),
          'another process has this data directory open',
          'Stop that process, or give this node a directory of its own; do not delete LOCK',
          { cause },
        );
      }
      throw refusedByLevel(location, cause ?? error);
    }
  }
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

/**
 * Throws {@link DirectoryRefused} when LevelDB's own log, of this run or the one before, tells of skipped bytes. Looked
 * at before opening as well: LevelDB deletes what it could not read, and a second start would find nothing wrong.
 */
export async function checkLevelLog(location: string, files: Files): Promise<void> {
  for (const name of ['LOG', 'LOG.old']) {
    const bytes = await files.read(join(location, name));
    const line =
      bytes === undefined
        ? undefined
        : Buffer.from(bytes)
            .toString('latin1')
            .split('\n')
            .find((text) => DAMAGE.test(text));
    if (line !== undefined) {
      throw new DirectoryRefused(join(location, name), `LevelDB skipped damaged data: "${line}"`, REPLACE_MEMBER);
    }
  }
}

/** A plain array over the same memory: LevelDB's binding returns Buffers. */
export function plainBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
