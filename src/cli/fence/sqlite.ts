/** `fencepost fence` for the fences of a SQLite file, through the user's own `better-sqlite3`. */
import { FENCE_TABLE } from '../../guard/sqlite-file.js';
import { loadDriver, unusable } from './driver.js';
import { fault, note } from './findings.js';
import { codeOf, ResourceError, textOf } from './resource-error.js';
import type { Diagnosis, FenceStore, Finding, ResetRequest, SchemaKind, StoredFence, Surroundings } from './store.js';

const DRIVER = 'better-sqlite3';
/** There is one shape of the table so far; the guard makes it too. */
const VERSION = 1;
/** Why an operator changed a fence by hand. The guard does not look at it. */
const HISTORY_TABLE = `create table if not exists fencepost_fence_history (
  at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
  domain text not null,
  token_before integer not null,
  token_after integer not null,
  note text not null
) strict`;
const COLUMNS = ['domain TEXT', 'token INTEGER', 'issuer TEXT', 'incarnation TEXT'];
// As text: the driver would make a double of it.
const SELECT = 'select domain, cast(token as text) as token, issuer, incarnation from fencepost_fence';

interface Statement {
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  iterate(...values: unknown[]): IterableIterator<unknown>;
  run(...values: unknown[]): unknown;
}

interface Database {
  prepare(sql: string): Statement;
  exec(sql: string): unknown;
  close(): unknown;
}

type Constructor = new (file: string, options: { readonly fileMustExist: true; readonly timeout: number }) => Database;

/** See the file's head. */
export const sqlite: SchemaKind = {
  schemes: ['sqlite'],
  form: 'sqlite:FILE',
  migration: () => ({ version: VERSION, sql: `${FENCE_TABLE};\n${HISTORY_TABLE};\n` }),
  addressFault: (address) => {
    if (fileOf(address) === '') return 'names no file: sqlite:orders.db, or sqlite:/var/lib/orders.db';
    return /^sqlite:\/\/[^/]/.test(address) ? 'names a host: a path begins with one slash or with three' : undefined;
  },
  open: (address, surroundings) => Promise.resolve().then(() => open(fileOf(address), surroundings)),
};

function fileOf(address: string): string {
  return address.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '');
}

function open(file: string, { folder, timeoutMs }: Surroundings): FenceStore {
  const Database = loadDriver(DRIVER, folder) as Constructor;
  let db: Database;
  try {
    db = new Database(file, { fileMustExist: true, timeout: timeoutMs });
  } catch (error) {
    // What is not SQLite's own is the native part, built for another version of Node.
    if (codeOf(error).startsWith('SQLITE_')) throw failure('NO_CONNECTION', file, error);
    if (error instanceof TypeError && error.message.includes('directory')) throw failure('NO_CONNECTION', file, error);
    throw unusable(DRIVER, error);
  }
  try {
    // A reset must survive a power failure, as a raise does.
    db.exec('pragma synchronous = full');
    const { version } = db.prepare('select sqlite_version() as version').get() as { readonly version: string };
    return new SqliteStore(db, file, `SQLite ${version}, ${file}`);
  } catch (error) {
    db.close();
    throw failure('NO_CONNECTION', file, error);
  }
}

function failure(code: 'NO_CONNECTION' | 'REFUSED', file: string, cause: unknown): ResourceError {
  const what = code === 'NO_CONNECTION' ? 'cannot be opened' : 'refused';
  return new ResourceError(code, `${file} ${what}: ${textOf(cause)}`, { cause });
}

class SqliteStore implements FenceStore {
  readonly name: string;
  readonly #db: Database;
  readonly #file: string;

  constructor(db: Database, file: string, name: string) {
    this.#db = db;
    this.#file = file;
    this.name = name;
  }

  migrate() {
    return this.#asked(() =>
      this.#changed(() => {
        const before = this.#shape() === 'none' ? undefined : VERSION;
        if (before !== undefined) this.#refuseStrangers();
        this.#db.exec(sqlite.migration().sql);
        return before;
      }),
    );
  }

  async *fences(): AsyncGenerator<StoredFence> {
    yield* await this.#asked(() => {
      this.#refuseStrangers();
      return this.#db.prepare(`${SELECT} order by domain`).all().map(fenceOf);
    });
  }

  fence(domain: string) {
    return this.#asked(() => {
      this.#refuseStrangers();
      return this.#read(domain);
    });
  }

  observed() {
    // The guard alone compares here: what goes past it is seen by nobody.
    return Promise.resolve([]);
  }

  reset({ domain, token, note, incarnation }: ResetRequest) {
    return this.#asked(() =>
      this.#changed(() => {
        this.#refuseStrangers();
        const before = this.#read(domain);
        if (before === undefined) return undefined;
        this.#db.exec(HISTORY_TABLE);
        this.#db
          .prepare('update fencepost_fence set token = cast(? as integer), incarnation = ? where domain = ?')
          .run(String(token), incarnation ?? before.incarnation, domain);
        this.#db
          .prepare(
            'insert into fencepost_fence_history (domain, token_before, token_after, note) ' +
              'values (?, cast(? as integer), cast(? as integer), ?)',
          )
          .run(domain, String(before.token), String(token), note);
        return before;
      }),
    );
  }

  diagnose() {
    return this.#asked((): Diagnosis => {
      const shape = this.#shape();
      if (shape !== 'ours') return { findings: [shape === 'none' ? NOT_MIGRATED : STRANGE], readable: false };
      const findings: Finding[] = [NO_LIMIT];
      const [damage] = this.#integrity();
      if (damage !== undefined) {
        const next = 'restore the file from a copy, and have every holder acquire and open anew';
        findings.push(fault('damaged', 'fencepost_fence', `SQLite finds it damaged (${damage}): ${next}`));
      }
      const triggers = this.#db
        .prepare("select name from sqlite_schema where type = 'trigger' and tbl_name = 'fencepost_fence'")
        .all() as { readonly name: string }[];
      for (const { name } of triggers)
        findings.push(
          fault('fence-trigger', name, 'this trigger acts when a fence is raised, and may lower or remove it: drop it'),
        );
      return { findings, readable: damage === undefined };
    });
  }

  close() {
    this.#db.close();
    return Promise.resolve();
  }

  #read(domain: string): StoredFence | undefined {
    const row = this.#db.prepare(`${SELECT} where domain = ?`).get(domain);
    return row === undefined ? undefined : fenceOf(row);
  }

  /** What stands under the name of the guard's table. */
  #shape(): 'none' | 'ours' | 'strange' {
    const found = this.#db.prepare("select type, strict from pragma_table_list('fencepost_fence')").get();
    if (found === undefined) return 'none';
    const columns = this.#db.prepare("select name, type from pragma_table_info('fencepost_fence')").all() as {
      readonly name: string;
      readonly type: string;
    }[];
    const same = columns.map(({ name, type }) => `${name} ${type.toUpperCase()}`).join() === COLUMNS.join();
    const { type, strict } = found as { readonly type: string; readonly strict: number };
    return same && type === 'table' && strict === 1 ? 'ours' : 'strange';
  }

  /** The first thing that SQLite finds wrong in the table. */
  #integrity(): readonly string[] {
    try {
      const rows = this.#db.prepare("pragma integrity_check('fencepost_fence')").all();
      return rows.map((row) => String(Object.values(row as object)[0])).filter((text) => text !== 'ok');
    } catch (error) {
      if (codeOf(error).startsWith('SQLITE_CORRUPT')) return [textOf(error)];
      throw error;
    }
  }

  #refuseStrangers(): void {
    const shape = this.#shape();
    if (shape === 'none') throw new ResourceError('NOT_MIGRATED', `${this.#file}: ${NOT_MIGRATED.message}`);
    if (shape === 'strange') throw new ResourceError('REFUSED', `${this.#file}: ${STRANGE.message}`);
  }

  /** With the file's only write lock; whole, or not at all. */
  #changed<T>(change: () => T): T {
    this.#db.exec('begin immediate');
    try {
      const value = change();
      this.#db.exec('commit');
      return value;
    } catch (error) {
      // Best effort: SQLite may have rolled back by itself, and closing does it anyway.
      try {
        this.#db.exec('rollback');
      } catch {
        // The first error says more.
      }
      throw error;
    }
  }

  /** The driver is synchronous and throws its own errors; the port is not, and does not. */
  async #asked<T>(ask: () => T): Promise<T> {
    try {
      return await Promise.resolve(ask());
    } catch (error) {
      if (error instanceof ResourceError) throw error;
      throw failure('REFUSED', this.#file, error);
    }
  }
}

const NOT_MIGRATED = fault(
  'not-migrated',
  'fencepost_fence',
  'this file has no table of fences: run fencepost fence migrate, or open it once with the guard',
);

const STRANGE = fault(
  'fence-table',
  'fencepost_fence',
  'a table of this name is there and is not that of the guard: rename it, then run fencepost fence migrate',
);

const NO_LIMIT = note(
  'no-limit',
  'write lock',
  'SQLite has no time-out for it: a process that is stopped within a transaction keeps all writers out',
);

function fenceOf(row: unknown): StoredFence {
  const { domain, token, issuer, incarnation } = row as Record<'domain' | 'token' | 'issuer' | 'incarnation', string>;
  return { domain, token: BigInt(token), issuer, incarnation, raisedAt: undefined };
}
