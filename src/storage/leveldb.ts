/** LevelDB: how it is opened, and what its own log says of damage. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClassicLevel } from 'classic-level';
import { isLevelError, refusedByLevel, refusing, type Database, type Databases } from './database.js';
import type { Files } from './files.js';
import { checkDatabaseFiles } from './leveldb-check.js';
import { DirectoryRefused, REPLACE_MEMBER } from './refused.js';

type Level = ClassicLevel<Uint8Array, Uint8Array>;

const OPTIONS = { keyEncoding: 'view', valueEncoding: 'view', compression: false } as const;
/** A process that was just killed may hold the lock for a moment longer. */
const LOCK_TRIES = 20;
const LOCK_RETRY_MS = 100;
/** LevelDB says so, and goes on, when it has skipped damaged bytes. */
const DAMAGE = /dropping \d+ bytes|ignoring error|Corruption: /i;

/** Databases on disk. */
export const levelDatabases: Databases = {
  async create(location) {
    const database: Level = new ClassicLevel(location, { ...OPTIONS, errorIfExists: true });
    await database.open();
    return asDatabase(database);
  },
  async open(location, files) {
    await checkLevelLog(location, files);
    await refusing(location, () => checkFiles(location, files));
    const database = await openLevel(location);
    try {
      await checkLevelLog(location, files);
      return database;
    } catch (error) {
      await database.close();
      throw error;
    }
  },
};

async function openLevel(location: string): Promise<Database> {
  for (let tries = 1; ; tries++) {
    const database: Level = new ClassicLevel(location, { ...OPTIONS, createIfMissing: false });
    try {
      await database.open();
      return asDatabase(database);
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

/**
 * The database as it is but for its batches, which are given to LevelDB operation by operation: as a list each of them is
 * copied, looked through and taken apart again, ten times the work in the turn of the loop that begins the write (measured).
 */
function asDatabase(level: Level): Database {
  const database: Database = level;
  return {
    get: (key, options) => database.get(key, options),
    batch: async (operations, options) => {
      const batch = level.batch();
      for (const operation of operations) {
        if (operation.type === 'put') batch.put(operation.key, operation.value);
        else batch.del(operation.key);
      }
      await batch.write(options);
    },
    iterator: (selection) => database.iterator(selection),
    keys: (selection) => database.keys(selection),
    clear: (selection) => database.clear(selection),
    snapshot: () => database.snapshot(),
    close: () => database.close(),
  };
}

/** Twice before it is refused: another process that has the database open may have replaced files meanwhile. */
async function checkFiles(location: string, files: Files): Promise<void> {
  try {
    await checkDatabaseFiles(location, files);
  } catch {
    await checkDatabaseFiles(location, files);
  }
}

/**
 * Throws {@link DirectoryRefused} when LevelDB's own log, of this run or the one before, tells of skipped bytes. Looked
 * at before opening as well: LevelDB deletes what it could not read, and a second start would find nothing wrong.
 */
async function checkLevelLog(location: string, files: Files): Promise<void> {
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
