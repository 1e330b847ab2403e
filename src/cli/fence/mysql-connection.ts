import { errnoOf } from '../../guard/mysql-transaction.js';
import { loadDriver, unusable } from './driver.js';
import { codeOf, ResourceError, textOf } from './resource-error.js';
import type { Surroundings } from './store.js';

const DRIVER = 'mysql2';

/** A row, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** The part of `mysql2`'s promise connection that is used. */
interface Client {
  connect(): Promise<unknown>;
  query(sql: string): Promise<readonly [unknown, unknown]>;
  end(): Promise<void>;
}

/** What `createConnection` makes; its errors come as events where nobody asks. */
interface CallbackClient {
  on(event: 'error', listener: (error: Error) => void): unknown;
  promise(): Client;
}

/** Connects and asks; whatever goes wrong is a `ResourceError` that says what to do. */
export class MysqlConnection {
  /** The address without what is secret. */
  readonly place: string;
  readonly #client: Client;
  readonly #timeoutMs: number;

  constructor(address: URL, { folder, timeoutMs }: Surroundings) {
    const { protocol, host, pathname } = address;
    this.place = `${protocol}//${host}${pathname}`;
    this.#timeoutMs = timeoutMs;
    const { createConnection } = loadDriver(DRIVER, folder) as {
      readonly createConnection?: (config: object) => CallbackClient;
    };
    if (createConnection === undefined) throw unusable(DRIVER, 'it has no createConnection');
    const client = createConnection({
      // An address of IPv6 has brackets in a URL only.
      host: address.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: address.port === '' ? 3306 : Number(address.port),
      user: decodeURIComponent(address.username),
      password: decodeURIComponent(address.password),
      database: decodeURIComponent(pathname.slice(1)),
      connectTimeout: timeoutMs,
      charset: 'utf8mb4',
    });
    // A connection that the server ends is told to whoever asks next.
    client.on('error', () => undefined);
    this.#client = client.promise();
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
      const seconds = Math.ceil(this.#timeoutMs / 1_000);
      await this.query(
        `set session max_statement_time = ${this.#timeoutMs / 1_000}, lock_wait_timeout = ${seconds},
          innodb_lock_wait_timeout = ${seconds}, time_zone = '+00:00'`,
      );
      const [row] = await this.query('select version() as version');
      return String(row?.['version']).split('-')[0] ?? '';
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** The rows of one statement; of a procedure those of its first result. */
  async query(sql: string): Promise<readonly Row[]> {
    try {
      const [given] = await this.#client.query(sql);
      if (!Array.isArray(given)) return [];
      const [first] = given as readonly unknown[];
      return (Array.isArray(first) ? first : given) as readonly Row[];
    } catch (error) {
      const advice = ADVICE[errnoOf(error) ?? 0] ?? '';
      throw new ResourceError('REFUSED', `${this.place} refused: ${textOf(error)}${advice}`, {
        // What the server says was not done; where it says nothing nobody knows.
        outcome: error instanceof Error && 'sqlState' in error ? 'not-done' : 'unknown',
        cause: error,
      });
    }
  }

  async close(): Promise<void> {
    // Whatever was asked has been answered: a connection that cannot be closed well is closed all the same.
    await this.#client.end().catch(() => undefined);
  }
}

const RIGHTS = '; connect as the owner of the procedures of fencing, with the right to read the database mysql';
const WAITED = '; what holds its lock is in information_schema.innodb_trx, or allow more with --timeout-ms';

/** By the server's numbers. */
const ADVICE: Readonly<Record<number, string>> = {
  1044: RIGHTS,
  1142: RIGHTS,
  1205: WAITED,
  1227: RIGHTS,
  1290: '; this is a replica, or read-only: connect to the primary',
  1370: RIGHTS,
  1969: WAITED,
};
