/** `fencepost fence` for the fences of a MariaDB database, through the user's own `mysql2`. */
import { literal } from '../../guard/mysql-transaction.js';
import { fault } from './findings.js';
import { diagnoseAccounts } from './mysql-accounts.js';
import { MysqlConnection } from './mysql-connection.js';
import { statementsOf } from './mysql-script.js';
import { diagnoseServer } from './mysql-server.js';
import { diagnoseTables } from './mysql-tables.js';
import { ResourceError } from './resource-error.js';
import { fenceOf, migrationOf, sqlFilesOf, wrongVersion } from './schema.js';
import type { Diagnosis, FenceStore, Finding, ResetRequest, SchemaKind, StoredFence } from './store.js';

/** So many fences are read at once. */
const PAGE = 1_000;
const SELECT = `select domain, cast(token as char) as token, issuer, incarnation,
  concat(left(date_format(raised_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') as raised_at from fencing_fences`;

/** See the file's head. */
export const mysql: SchemaKind = {
  schemes: ['mysql', 'mariadb'],
  form: 'mysql://USER@HOST:PORT/DATABASE',
  migration: () => migrationOf(sqlFilesOf('mysql')),
  addressFault: (address) => {
    if (!URL.canParse(address)) return 'is no URL; special characters are written as %XX';
    const { hostname, pathname } = new URL(address);
    if (hostname === '') return 'names no host: mysql://USER@HOST:PORT/DATABASE';
    return /^\/[^/]+$/.test(pathname) ? undefined : 'names no database: mysql://USER@HOST:PORT/DATABASE';
  },
  async open(address, surroundings) {
    const connection = new MysqlConnection(new URL(address), surroundings);
    return new MysqlStore(connection, await connection.open());
  },
};

class MysqlStore implements FenceStore {
  readonly name: string;
  readonly #connection: MysqlConnection;

  constructor(connection: MysqlConnection, version: string) {
    this.#connection = connection;
    this.name = `MariaDB ${version}, ${connection.place}`;
  }

  /** Not whole or not at all: what defines something commits. What is missing then, doctor says, and a second run makes. */
  async migrate() {
    const { version, sql } = mysql.migration();
    const before = await this.#version();
    // Before anything of the newer one is replaced.
    if (before !== undefined && before > version)
      throw new ResourceError(
        'REFUSED',
        `${this.#connection.place}: ${wrongVersion('fencing_settings', before, version).message}`,
      );
    for (const statement of statementsOf(sql)) await this.#connection.query(statement);
    return before;
  }

  async *fences(): AsyncGenerator<StoredFence> {
    await this.#refuseWithout();
    let after = '';
    for (;;) {
      const sql = `${SELECT} where domain > ${literal(after)} order by domain limit ${PAGE}`;
      const page: readonly StoredFence[] = (await this.#connection.query(sql)).map(fenceOf);
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last.domain;
    }
  }

  async fence(domain: string) {
    await this.#refuseWithout();
    return await this.#read(domain);
  }

  observed() {
    // The triggers refuse, or are not there: nothing only observes.
    return Promise.resolve([]);
  }

  async reset({ domain, token, note, incarnation }: ResetRequest) {
    await this.#refuseWithout();
    const before = await this.#read(domain);
    if (before === undefined) return undefined;
    const history = incarnation ?? before.incarnation;
    const values = [
      literal(domain),
      String(token),
      literal(note),
      'null',
      history === undefined ? 'null' : literal(history),
    ];
    // What it found may have been raised since it was read here.
    const [row] = await this.#connection.query(`call fencing_reset(${values.join(', ')})`);
    return { ...before, token: BigInt(String(row?.['token_before'])) };
  }

  async diagnose(): Promise<Diagnosis> {
    const installed = await this.#version();
    const { version: shipped } = mysql.migration();
    if (installed === undefined) return { findings: [NOT_MIGRATED], readable: false };
    const findings: Finding[] = installed === shipped ? [] : [wrongVersion('fencing_settings', installed, shipped)];
    const missing = await this.#missing();
    findings.push(...missing.map(missingPart));
    findings.push(...(await diagnoseTables(this.#connection)));
    findings.push(...(await diagnoseAccounts(this.#connection)));
    findings.push(...(await diagnoseServer(this.#connection)));
    return { findings, readable: !missing.includes('fencing_fences') };
  }

  async close() {
    await this.#connection.close();
  }

  async #read(domain: string): Promise<StoredFence | undefined> {
    const [row] = await this.#connection.query(`${SELECT} where domain = ${literal(domain)}`);
    return row === undefined ? undefined : fenceOf(row);
  }

  async #version(): Promise<number | undefined> {
    const [there] = await this.#connection.query(
      "select 1 as there from information_schema.tables where table_schema = database() and table_name = 'fencing_settings'",
    );
    if (there === undefined) return undefined;
    const [row] = await this.#connection.query('select version from fencing_settings');
    return row === undefined ? undefined : Number(row['version']);
  }

  /** What the files make and this database has not. Protecting tables is optional: then all of its file is missing. */
  async #missing(): Promise<readonly string[]> {
    const rows = await this.#connection.query(
      `select routine_name as name from information_schema.routines where routine_schema = database()
      union all select table_name from information_schema.views where table_schema = database()`,
    );
    const there = new Set(rows.map(({ name }) => name));
    return sqlFilesOf('mysql').flatMap((sql, at) => {
      const made = [...sql.matchAll(/^create or replace (?:procedure|view) (\w+)/gm)].map(([, name]) => String(name));
      const missing = made.filter((name) => !there.has(name));
      return at > 0 && missing.length === made.length ? [] : missing;
    });
  }

  async #refuseWithout(): Promise<void> {
    if ((await this.#version()) === undefined)
      throw new ResourceError('NOT_MIGRATED', `${this.#connection.place}: ${NOT_MIGRATED.message}`);
  }
}

const NOT_MIGRATED = fault(
  'not-migrated',
  'fencing_settings',
  'this database has no table fencing_settings that this account may see: run fencepost fence migrate',
);

function missingPart(name: string): Finding {
  return fault('procedure-missing', name, 'is not there, or this account may not see it: run fencepost fence migrate');
}
