import { codeOf, ResourceError, textOf } from './resource-error.js';

/** A row, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** The part of `pg`'s `Client` that is used. */
export interface Client {
  connect(): Promise<unknown>;
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly Row[] }>;
  end(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** Connects and asks; whatever goes wrong is a `ResourceError` that says what to do. */
export class PostgresConnection {
  /** The address without what is secret. */
  readonly place: string;
  readonly #client: Client;

  constructor(client: Client, place: string) {
    this.#client = client;
    this.place = place;
    // A connection that the server ends is told to whoever asks next.
    client.on('error', () => undefined);
  }

  /** Gives the version of the server. */
  async open(): Promise<string> {
    try {
      await this.#client.connect();
    } catch (error) {
      const message = `${this.place} cannot be reached: ${textOf(error) || codeOf(error)}`;
      throw new ResourceError('NO_CONNECTION', message, { cause: error });
    }
    try {
      // So that names are those of the catalogue, and tables are shown with their schema.
      await this.query('set search_path to pg_catalog');
      const [row] = await this.query("select current_setting('server_version') as version");
      return String(row?.['version']).split(' ')[0] ?? '';
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** The rows of one statement. */
  async query(sql: string, values: unknown[] = []): Promise<readonly Row[]> {
    try {
      // Without values several statements may stand in one text.
      const { rows } = await (values.length === 0 ? this.#client.query(sql) : this.#client.query(sql, values));
      return rows;
    } catch (error) {
      throw new ResourceError('REFUSED', `${this.place} refused: ${textOf(error)}${ADVICE[codeOf(error)] ?? ''}`, {
        cause: error,
      });
    }
  }

  /** Is there such a table or view? */
  async has(relation: string): Promise<boolean> {
    const [row] = await this.query('select to_regclass($1) is not null as there', [relation]);
    return row?.['there'] === true;
  }

  /** All of `work`, or nothing. */
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.query('begin');
    let value: T;
    try {
      value = await work();
    } catch (error) {
      // Fails where the connection is gone, and then the server has done so by itself.
      await this.query('rollback').catch(() => undefined);
      throw error;
    }
    try {
      await this.query('commit');
    } catch (error) {
      throw new ResourceError('REFUSED', `${textOf(error)}; look whether it was done`, {
        outcome: 'unknown',
        cause: error,
      });
    }
    return value;
  }

  async close(): Promise<void> {
    // Whatever was asked has been answered: a connection that cannot be closed well is closed all the same.
    await this.#client.end().catch(() => undefined);
  }
}

/** By SQLSTATE. */
const ADVICE: Readonly<Record<string, string>> = {
  '25006': '; this is a standby, or read-only: connect to the primary',
  '42501': '; connect as the owner of the schema fencing, or as a superuser',
  '57014': '; what holds its lock is in pg_stat_activity, or allow more with --timeout-ms',
};
