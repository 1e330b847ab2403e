/** `fencepost fence` for the schema `fencing` of a PostgreSQL database, through the user's own `pg`. */
import { loadDriver, unusable } from './driver.js';
import { fault } from './findings.js';
import { PostgresConnection } from './postgres-connection.js';
import type { Client } from './postgres-connection.js';
import { diagnoseServer } from './postgres-server.js';
import { diagnoseRoles, diagnoseTables } from './postgres-tables.js';
import { ResourceError } from './resource-error.js';
import { fenceOf, migrationOf, sqlFilesOf, wrongVersion } from './schema.js';
import type {
  Diagnosis,
  FenceStore,
  Finding,
  Observation,
  ResetRequest,
  SchemaKind,
  StoredFence,
  Surroundings,
} from './store.js';

const DRIVER = 'pg';
/** So many fences are read at once. */
const PAGE = 1_000;
const SELECT = `select f.domain, f.token::text as token, f.issuer, f.incarnation, ${iso('f.raised_at')} as raised_at from fencing.fence f`;

/** See the file's head. */
export const postgres: SchemaKind = {
  schemes: ['postgres', 'postgresql'],
  form: 'postgres://USER@HOST:PORT/DATABASE',
  migration: () => migrationOf(sqlFilesOf('postgres')),
  addressFault: (address) => (URL.canParse(address) ? undefined : 'is no URL; special characters are written as %XX'),
  async open(address, surroundings) {
    const connection = new PostgresConnection(clientFor(address, surroundings), placeOf(address));
    return new PostgresStore(connection, await connection.open());
  },
};

function clientFor(address: string, { folder, timeoutMs }: Surroundings): Client {
  const { Client } = loadDriver(DRIVER, folder) as { readonly Client?: new (config: object) => Client };
  if (Client === undefined) throw unusable(DRIVER, 'it has no Client');
  return new Client({
    connectionString: address,
    connectionTimeoutMillis: timeoutMs,
    statement_timeout: timeoutMs,
    application_name: 'fencepost fence',
  });
}

/** Without user, password and parameters. */
function placeOf(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname}`;
}

/** Of a column with a time. */
function iso(column: string): string {
  return `to_char(${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

class PostgresStore implements FenceStore {
  readonly name: string;
  readonly #connection: PostgresConnection;

  constructor(connection: PostgresConnection, version: string) {
    this.#connection = connection;
    this.name = `PostgreSQL ${version}, ${connection.place}`;
  }

  async migrate() {
    return await this.#connection.transaction(async () => {
      const before = await this.#version();
      await this.#connection.query(postgres.migration().sql);
      return before;
    });
  }

  async *fences(): AsyncGenerator<StoredFence> {
    await this.#refuseWithout();
    let after: string | null = null;
    for (;;) {
      const sql = `${SELECT} where $1::text is null or f.domain > $1 order by f.domain limit ${PAGE}`;
      const page: readonly StoredFence[] = (await this.#connection.query(sql, [after])).map(fenceOf);
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

  async observed(domain: string | undefined): Promise<readonly Observation[]> {
    // Protecting tables is optional.
    if (!(await this.#connection.has('fencing.observed'))) return [];
    const rows = await this.#connection.query(
      `select relation, operation, code, domain, role, application, count::text as count, ${iso('first_at')} as first_at,
        ${iso('last_at')} as last_at from fencing.observed where $1::text is null or domain = $1 order by 1, 2, 3, 4, 5, 6`,
      [domain ?? null],
    );
    return rows.map(({ count, first_at: firstAt, last_at: lastAt, ...texts }) => ({
      ...(texts as unknown as Observation),
      count: BigInt(String(count)),
      firstAt: String(firstAt),
      lastAt: String(lastAt),
    }));
  }

  async reset({ domain, token, note, incarnation }: ResetRequest) {
    await this.#refuseWithout();
    return await this.#connection.transaction(async () => {
      const before = await this.#read(domain);
      if (before === undefined) return undefined;
      const [row] = await this.#connection.query('select fencing.reset($1, $2, $3, null, $4)::text as token', [
        domain,
        String(token),
        note,
        incarnation ?? before.incarnation ?? null,
      ]);
      // What was read before the function locked it: no more than a moment, but it may have been raised in it.
      if (row?.['token'] !== String(before.token))
        throw new ResourceError(
          'REFUSED',
          `the fence of ${domain} was raised at this very moment: look at it, then repeat`,
        );
      return before;
    });
  }

  async diagnose(): Promise<Diagnosis> {
    const installed = await this.#version();
    const { version: shipped } = postgres.migration();
    if (installed === undefined) return { findings: [NOT_MIGRATED], readable: false };
    const findings: Finding[] = installed === shipped ? [] : [wrongVersion('fencing', installed, shipped)];
    findings.push(...(await diagnoseTables(this.#connection)));
    findings.push(...(await diagnoseRoles(this.#connection)));
    findings.push(...(await diagnoseServer(this.#connection)));
    return { findings, readable: true };
  }

  async close() {
    await this.#connection.close();
  }

  async #read(domain: string): Promise<StoredFence | undefined> {
    const [row] = await this.#connection.query(`${SELECT} where f.domain = $1`, [domain]);
    return row === undefined ? undefined : fenceOf(row);
  }

  async #version(): Promise<number | undefined> {
    if (!(await this.#connection.has('fencing.settings'))) return undefined;
    const [row] = await this.#connection.query('select version from fencing.settings');
    return row === undefined ? undefined : Number(row['version']);
  }

  async #refuseWithout(): Promise<void> {
    if ((await this.#version()) === undefined)
      throw new ResourceError('NOT_MIGRATED', `${this.#connection.place}: ${NOT_MIGRATED.message}`);
  }
}

const NOT_MIGRATED = fault(
  'not-migrated',
  'fencing',
  'this database has no schema fencing: run fencepost fence migrate',
);
