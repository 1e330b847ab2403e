/** The part of a driver that the guards of PostgreSQL use, the handle that their work gets, and what errors mean. */
/** What a statement gave. `pg` fits. */
export interface PostgresResult {
  /** The rows, each by its column's names. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Rows returned or changed. */
  readonly rowCount: number | null;
  /** The first word of what the server says it did: `COMMIT`, or `ROLLBACK` where it could not. */
  readonly command: string;
}

/** A connection out of a pool. The `PoolClient` of `pg` fits. */
export interface PostgresConnection {
  /** Runs a statement; several without values, separated by semicolons, give an array of results. */
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  /** Back to the pool; `true` closes it instead. */
  release(destroy?: boolean): void;
  /** The server ended the connection. Without a listener that would end the process. */
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** Takes the listener off. */
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
}

/** Where the guard gets its connections. The `Pool` of `pg` fits. */
export interface PostgresPool {
  /** A connection that nobody else uses until it is released. */
  connect(): Promise<PostgresConnection>;
  /** One statement on whatever connection is free. */
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
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
   * the transaction: the guard does that. Savepoints are allowed.
   */
  query(text: string, values?: readonly unknown[]): Promise<PostgresResult>;
  /**
   * As `query`, for an insert, update or delete that has to meet a row: when it meets none, the whole run is rolled back and
   * its outcome is `missing`. Do not catch what it throws then.
   */
  change(text: string, values?: readonly unknown[]): Promise<PostgresResult>;
}

/** Work inside a fenced transaction. It may be called again, so it must have no effect outside of the transaction. */
export type PostgresWork<T> = (tx: FencedTransaction) => Promise<T> | T;

/** Would end the transaction, after which statements would be unguarded; `rollback to` a savepoint does not. */
const ENDS =
  /^\s*(?:begin|start|commit|end|abort|prepare\s+transaction|rollback(?!\s+(?:work\s+|transaction\s+)?to\b))\b/i;

/** What a text of several statements may have ended the transaction with. */
const CONTROL = ['BEGIN', 'START', 'COMMIT', 'ROLLBACK', 'PREPARE'];

/** Thrown through the work by {@link FencedTransaction.change}. */
export class MetNoRow extends Error {}

/** Thrown by {@link FencedTransaction.query}, after which nothing more goes through it. */
export class SeveralStatements extends TypeError {}

/** A handle on `connection`, and what has become of it. */
export class TransactionHandle {
  /** The first thing that went wrong, whether the work noticed or not. */
  failure: unknown;
  readonly tx: FencedTransaction;
  #open = true;

  constructor(connection: PostgresConnection) {
    const query = async (text: string, values?: readonly unknown[]): Promise<PostgresResult> => {
      if (!this.#open) throw new Error('the run of this transaction is over: nothing goes through it any more');
      if (ENDS.test(statementOf(text))) {
        throw new TypeError(`the guard begins and ends this transaction: not ${text.trim()}`);
      }
      if (this.failure instanceof SeveralStatements) throw this.failure;
      try {
        const result: PostgresResult | readonly PostgresResult[] = await connection.query(text, values && [...values]);
        if (Array.isArray(result)) checkControl(result);
        return result;
      } catch (error) {
        this.failure ??= error;
        throw error;
      }
    };
    const change = async (text: string, values?: readonly unknown[]): Promise<PostgresResult> => {
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

/** Without the comments, which nest, and the empty statements before it. */
function statementOf(text: string): string {
  let rest = text;
  for (;;) {
    rest = rest.replace(/^[\s;]+/, '');
    if (rest.startsWith('--')) rest = rest.replace(/^.*/, '');
    else if (rest.startsWith('/*')) rest = behindComment(rest);
    else return rest;
  }
}

function behindComment(text: string): string {
  let depth = 0;
  for (const { 0: mark, index } of text.matchAll(/\/\*|\*\//g)) {
    depth += mark === '/*' ? 1 : -1;
    if (depth === 0) return text.slice(index + mark.length);
  }
  return '';
}

/** A driver gives an array for several statements. */
function checkControl(results: readonly PostgresResult[]): void {
  const control = results.find(({ command }) => CONTROL.includes(command));
  if (control === undefined) return;
  throw new SeveralStatements(
    `${control.command} among several statements: the guard begins and ends this transaction. What came before an end of it ` +
      'may be kept, and what came after it in the same text',
  );
}

/** The SQLSTATE of an error, undefined when it has none. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** May the whole transaction be run again? Serialization failure, deadlock. */
export function mayRunAgain(error: unknown): boolean {
  const code = codeOf(error);
  return code === '40001' || code === '40P01';
}

/** What a driver throws where the schema, or the right to use it, is missing: with what to do about it. */
export async function explained<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const code = codeOf(error);
    if (code === '3F000' || code === '42883') {
      throw new Error(
        'this database lacks a function of the schema fencing: apply fencing.sql, and outbox.sql for an outbox',
        { cause: error },
      );
    }
    if (code === '42501') {
      throw new Error('this role may not use the schema fencing: see the grants at the end of fencing.sql', {
        cause: error,
      });
    }
    throw error;
  }
}

/** As a literal of SQL, whatever the server's settings. */
export function literal(text: string): string {
  const quoted = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`;
  return text.includes('\\') ? ` E${quoted}` : quoted;
}
