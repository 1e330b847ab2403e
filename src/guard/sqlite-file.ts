/** What the SQLite guard asks of a driver, and of how its file is kept; and its fences as rows. */
import { isToken } from './fence.js';
import type { Fence } from './fence.js';

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

/**
 * Throws when a commit, and with it a raise, can be lost or torn, and says what to set; keeps `synchronous` where it is from
 * here on. A database in memory may be as it likes.
 */
export function keepDurable(db: SqliteDatabase): void {
  if (pragma(db, 'database_list', 'file') === '') return;
  const faults: string[] = [];
  const synchronous = Number(pragma(db, 'synchronous', 'synchronous'));
  if (!(synchronous >= FULL))
    faults.push(
      'a power failure would undo the last commits, and let a stale holder pass: set PRAGMA synchronous = FULL',
    );
  const journal = String(pragma(db, 'journal_mode', 'journal_mode'));
  if (journal === 'off' || journal === 'memory')
    faults.push(`a crash would tear a transaction (journal_mode is ${journal}): set PRAGMA journal_mode = WAL`);
  if (faults.length > 0) throw new Error(`this SQLite connection cannot keep a fence: ${faults.join('; ')}`);
  // A default goes down by itself, in builds that have it so, when anybody switches the file to a write-ahead log; what was set stays.
  db.exec(`pragma synchronous = ${synchronous}`);
}

/** Reads a row of the table back. Throws, with every fault, when it is no fence: nothing is guessed. */
export function fenceIn(domain: string, row: unknown): Fence | undefined {
  if (row === undefined || row === null) return undefined;
  const { token, issuer, incarnation } = row as Readonly<Record<keyof Fence, unknown>>;
  const faults: string[] = [];
  if (!isToken(token)) faults.push('token is no integer from 1 to 2^63 - 1');
  if (typeof issuer !== 'string' || issuer === '') faults.push('issuer is no text');
  if (typeof incarnation !== 'string') faults.push('incarnation is no text');
  if (faults.length === 0) {
    return { token: BigInt(token as string), issuer: issuer as string, incarnation: incarnation as string };
  }
  throw new Error(
    `the row ${domain} of fencepost_fence is no fence: ${faults.join('; ')}. Nothing was changed. Set it right with reset, and ` +
      'the lease that was granted last',
  );
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
