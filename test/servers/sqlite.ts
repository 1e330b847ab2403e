/** The SQLite drivers that this machine has: `better-sqlite3`, from `npm ci --prefix test/servers`, and Node's own from 22 on. */
import { createRequire, isBuiltin } from 'node:module';
import { resolve } from 'node:path';
import type BetterSqlite from 'better-sqlite3';
import type { SqliteDatabase } from '../../src/guard/sqlite.js';

/** A connection of either driver, as the tests use it. */
export interface SqliteConnection extends SqliteDatabase {
  close(): unknown;
}

/** A driver. */
export interface SqliteDriver {
  /** For the names of tests; says what is missing when it is. */
  readonly name: string;
  /** Opens or creates a file; undefined when the driver is not there. */
  readonly open: ((file: string) => SqliteConnection) | undefined;
}

const BETTER = 'better-sqlite3';
const BUILTIN = 'node:sqlite';
/** Also for programs that are bundled elsewhere; tests run in the root. */
const require = createRequire(resolve('test/servers/package.json'));

/** `better-sqlite3` first, there or not. */
export const SQLITE: readonly SqliteDriver[] = [better(), ...(isBuiltin(BUILTIN) ? [builtin()] : [])];

function better(): SqliteDriver {
  let Database: typeof BetterSqlite;
  try {
    Database = require(BETTER) as typeof BetterSqlite;
    new Database(':memory:').close();
  } catch {
    return { name: `${BETTER} (missing: npm ci --prefix test/servers, and a compiler)`, open: undefined };
  }
  return { name: BETTER, open: (file) => new Database(file) };
}

function builtin(): SqliteDriver {
  const { DatabaseSync } = require(BUILTIN) as { DatabaseSync: new (file: string) => SqliteConnection };
  return {
    name: BUILTIN,
    open(file) {
      const db = new DatabaseSync(file);
      // As better-sqlite3 has it from the start.
      db.exec('pragma busy_timeout = 5000');
      return db;
    },
  };
}
