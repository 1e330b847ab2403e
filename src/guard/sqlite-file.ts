/** What the SQLite guard asks of a driver, and of how its file is kept. */

/** A prepared statement. */
export interface SqliteStatement {
  /** The first row, undefined when there is none. */
  get(...parameters: string[]): unknown;
  /** Runs it. */
  run(...parameters: string[]): { readonly changes: number | bigint };
}

/** What the guard needs of a connection: a `Database` of `better-sqlite3` or a `DatabaseSync` of `node:sqlite` fits. */
export interface SqliteDatabase {
  /** Runs statements without parameters. */
  exec(sql: string): unknown;
  /** Compiles one statement. */
  prepare(sql: string): SqliteStatement;
}

/** Outlives the data, because it is a table of its own; `strict` keeps a token from becoming a double. */
export const FENCE_TABLE = `create table if not exists fencepost_fence (
  domain text primary key,
  token integer not null check (token > 0),
  issuer text not null,
  incarnation text not null
) strict, without rowid`;

/** `PRAGMA synchronous`: what is committed is on the disk from here on. */
const FULL = 2;

/** Throws when a commit, and with it a raise, can be lost or torn, and says what to set. A database in memory may be as it likes. */
export function checkDurability(db: SqliteDatabase): void {
  if (pragma(db, 'database_list', 'file') === '') return;
  const faults: string[] = [];
  if (Number(pragma(db, 'synchronous', 'synchronous')) < FULL)
    faults.push(
      'a power failure would undo the last commits, and let a stale holder pass: set PRAGMA synchronous = FULL',
    );
  const journal = String(pragma(db, 'journal_mode', 'journal_mode'));
  if (journal === 'off' || journal === 'memory')
    faults.push(`a crash would tear a transaction (journal_mode is ${journal}): set PRAGMA journal_mode = WAL`);
  if (faults.length > 0) throw new Error(`this SQLite connection cannot keep a fence: ${faults.join('; ')}`);
}

function pragma(db: SqliteDatabase, name: string, column: string): unknown {
  const row = db.prepare(`pragma ${name}`).get();
  return typeof row === 'object' && row !== null ? (row as Record<string, unknown>)[column] : undefined;
}

/** SQLITE_BUSY, in the words of either driver. */
export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown };
  if (typeof code === 'string' && code.startsWith('SQLITE_BUSY')) return true;
  // An extended code has the kind of error in its lowest byte.
  return typeof errcode === 'number' && (errcode & 0xff) === 5;
}
