/** The part of a driver that the guards of MariaDB use, the handle that their work gets, and what errors mean. */

/** A statement, with settings that go before those of the pool. */
export interface MysqlStatement {
  /** Its text. */
  sql: string;
  /** False: each row by its column's names. */
  rowsAsArray?: boolean;
  /** How values become JavaScript's; `next` does it as the driver does by default. */
  typeCast?: (field: unknown, next: () => unknown) => unknown;
}

/** A connection out of a pool. The `PoolConnection` of `mysql2/promise` fits. */
export interface MysqlConnection {
  /** Runs a statement: rows, or what was affected; then what the driver knows of the columns. */
  query(statement: MysqlStatement, values?: unknown[]): Promise<[unknown, unknown]>;
  /** Back to the pool. */
  release(): void;
  /** Closes it: the server rolls back. */
  destroy(): void;
}

/** Where the guard gets its connections. The `Pool` of `mysql2/promise` fits, whatever its options and flags. */
export interface MysqlPool {
  /** A connection that nobody else uses until it is released. */
  getConnection(): Promise<MysqlConnection>;
  /** One statement on whatever connection is free. */
  query(statement: MysqlStatement, values?: unknown[]): Promise<[unknown, unknown]>;
}

/** A row, by the names of its columns, as the driver gives it. */
export type Row = Readonly<Record<string, unknown>>;

/** What a statement gave. */
export interface MysqlResult {
  /** The rows; of a procedure those of its first result. */
  readonly rows: readonly Row[];
  /**
   * Rows returned or met. An update counts those that its condition met, also where it changed nothing in them, whatever the
   * flags of the connection; `on duplicate key update` counts as the server does.
   */
  readonly rowCount: number;
  /** What `auto_increment` gave to the first row that was inserted; 0 when it gave nothing. */
  readonly insertId: number | string;
}

declare const FENCED: unique symbol;

/**
 * A transaction whose fence stands: whatever goes through it is applied under the lease, or not at all. Only a guard makes
 * one, so code that takes a `FencedTransaction` cannot be called with a pool or a connection. Unusable when the run is over.
 */
export interface FencedTransaction {
  /** Only in the types. */
  readonly [FENCED]: true;
  /**
   * Runs one statement inside the transaction. Throws what the database says, and a TypeError for statements that would end
   * the transaction: its control, and whatever defines something (MariaDB commits before that). Savepoints are allowed, and so
   * are temporary tables. A statement that fails takes back only itself, so work may go on after it; not after a deadlock and
   * its like, which end the transaction.
   */
  query(text: string, values?: readonly unknown[]): Promise<MysqlResult>;
  /**
   * As `query`, for an insert, update or delete that has to meet a row: when it meets none, the whole run is rolled back and
   * its outcome is `missing`. Do not catch what it throws then.
   */
  change(text: string, values?: readonly unknown[]): Promise<MysqlResult>;
}

/** Work inside a fenced transaction. It may be called again, so it must have no effect outside of the transaction. */
export type MysqlWork<T> = (tx: FencedTransaction) => Promise<T> | T;

/** Comments before a statement; what the server runs as code (`/*!`) is none. */
const COMMENTS = /^(?:\s+|#[^\n]*(?:\n|$)|--(?:[ \t][^\n]*)?(?:\n|$)|\/\*(?!M?!)[^]*?\*\/|\/\*M?!\d*)+/;

/**
 * Would end the transaction, or leave the database that has the fences. What gets past this, in a procedure for example, is
 * noticed before the commit.
 */
const ENDS = new RegExp(
  [
    String.raw`^(?:begin|start|commit|xa|use|alter|truncate|rename|grant|revoke|lock|unlock)\b`,
    String.raw`^(?:analyze|check|optimize|repair|cache|load\s+index|flush|reset|install|uninstall|stop|change)\b`,
    String.raw`^rollback\b(?!\s+(?:work\s+)?to\b)`,
    String.raw`^(?:create|drop)\s+(?!(?:or\s+replace\s+)?temporary\b)`,
    String.raw`^set\s+(?:@@|(?:session|local|global|transaction|password)\b|[^]*\bautocommit\b)`,
    String.raw`^call\s+(?:[^\s(]+\.)?${'`'}?fencing_`,
  ].join('|'),
  'i',
);

/** Where an update's count is that of the rows met, the server says so beside it: matched, changed, warnings. */
const MATCHED = /^\D*(\d+)\D+\d+\D+\d+\D*$/;

/** Thrown through the work by {@link FencedTransaction.change}. */
export class MetNoRow extends Error {}

/** A handle on `connection`, and what has become of it. */
export class TransactionHandle {
  /** The first thing that keeps the transaction from its commit, whether the work noticed or not. */
  failure: Error | undefined;
  readonly tx: FencedTransaction;
  #open = true;

  constructor(connection: MysqlConnection) {
    const query = async (text: string, values?: readonly unknown[]): Promise<MysqlResult> => {
      if (!this.#open) throw new Error('the run of this transaction is over: nothing goes through it any more');
      const statement = text.replace(COMMENTS, '');
      if (ENDS.test(statement)) throw new TypeError(`the guard begins and ends this transaction: not ${text.trim()}`);
      if (this.failure !== undefined) {
        throw new Error('this transaction is rolled back: nothing more goes through it', { cause: this.failure });
      }
      try {
        const [given] = await connection.query({ sql: text, rowsAsArray: false }, values && [...values]);
        return resultOf(given, statement);
      } catch (error) {
        if (mayRunAgain(error) || error instanceof SeveralStatements) this.failure = error as Error;
        throw error;
      }
    };
    const change = async (text: string, values?: readonly unknown[]): Promise<MysqlResult> => {
      const result = await query(text, values);
      if (result.rowCount !== 0) return result;
      const cause = new MetNoRow(`met no row: ${text.trim()}`);
      this.failure ??= cause;
      throw cause;
    };
    // The mark is only in the types.
    this.tx = { query, change } as unknown as FencedTransaction;
  }

  /** From here on nothing goes through it. */
  close(): void {
    this.#open = false;
  }
}

class SeveralStatements extends TypeError {}

/** What the driver says of a statement that gives no rows. */
interface Header {
  readonly affectedRows: number;
  readonly insertId: number | string;
  readonly info: string;
}

function resultOf(given: unknown, statement: string): MysqlResult {
  if (!Array.isArray(given)) {
    const { affectedRows, insertId, info } = given as Header;
    const inserts = /^(?:insert|replace)\b/i.test(statement);
    const matched = inserts ? undefined : MATCHED.exec(info)?.[1];
    return { rows: [], rowCount: Math.max(affectedRows, Number(matched ?? 0)), insertId };
  }
  const [first] = given as readonly unknown[];
  if (isHeader(first)) throw new SeveralStatements('one statement at a time: nothing of these is kept');
  const rows = (Array.isArray(first) ? first : given) as readonly Row[];
  return { rows, rowCount: rows.length, insertId: 0 };
}

function isHeader(given: unknown): given is Header {
  return typeof given === 'object' && given !== null && 'serverStatus' in given && 'affectedRows' in given;
}

/** The rows of a statement of the guard's own, whatever the pool makes of values. A procedure gives them first of several. */
export async function rowsOf(
  connection: Pick<MysqlConnection, 'query'>,
  sql: string,
  values?: unknown[],
): Promise<readonly Row[]> {
  const statement: MysqlStatement = { sql, rowsAsArray: false, typeCast: (_, next) => next() };
  const [given] = await explained(connection.query(statement, values));
  const [first] = Array.isArray(given) ? (given as readonly unknown[]) : [];
  return (Array.isArray(first) ? first : given) as readonly Row[];
}

/** The server's number of an error, undefined when it has none. */
export function errnoOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('errno' in error)) return undefined;
  return typeof error.errno === 'number' ? error.errno : undefined;
}

/** A lock that was not granted in time. */
const LOCK_TIMEOUT = 1205;
/** A deadlock; a row that was changed since this transaction's snapshot (`innodb_snapshot_isolation`). */
const CONFLICTS = [1213, 1020];
/** `max_statement_time`. */
const STATEMENT_TIMEOUT = 1969;

/** May the whole transaction be run again? */
export function mayRunAgain(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === LOCK_TIMEOUT || CONFLICTS.includes(errno ?? 0);
}

/** Did the statement wait for longer than it may? */
export function isTimeout(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === LOCK_TIMEOUT || errno === STATEMENT_TIMEOUT;
}

/** No such procedure; also no such savepoint. */
export const DOES_NOT_EXIST = 1305;

/** What a driver throws where the procedures, or the right to use them, are missing: with what to do about it. */
async function explained<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (errnoOf(error) === DOES_NOT_EXIST && !String(error).includes('fencing_guard')) {
      throw new Error('this database has no procedures of fencing, or older ones: apply fencing.sql', { cause: error });
    }
    if (errnoOf(error) === 1370) {
      throw new Error('this account may not call the procedures of fencing: see the grants at the end of fencing.sql', {
        cause: error,
      });
    }
    throw error;
  }
}

/** The text that the server gave as hexadecimal digits, so that no character set comes between; null is null. */
export function textOf(hex: unknown): string | null {
  return hex === null ? null : Buffer.from(hex as string, 'hex').toString();
}

/** As a literal of SQL, whatever the modes and the character set of the connection. */
export function literal(text: string): string {
  return `_utf8mb4 x'${Buffer.from(text).toString('hex')}'`;
}
