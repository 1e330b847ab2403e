/** The part of `guards.js` on SQL databases, with fsync. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runnerImport } from 'vite';
import { mysqlFence, mysqlRows } from '../../dist/guard/mysql.js';
import { postgresFence, postgresRows } from '../../dist/guard/postgres.js';
import { sqliteFence } from '../../dist/guard/sqlite.js';

/** @typedef {import('../../dist/guard/postgres.js').FencedLease} FencedLease */
/** @typedef {import('./guards.js').Opened} Opened */

const SET = 'balance = balance + 1';
const WRITERS = 16;
const BASES = { 'cost against plain': 'plain update', 'against begin … commit': 'plain update in begin … commit' };

/**
 * @param {FencedLease} lease
 * @returns {Promise<Opened>}
 */
export async function postgresWays(lease) {
  /** @type {{ module: any }} */
  const { module } = await runnerImport('./test/servers/postgres.ts');
  const kind = found(module.POSTGRES, 'bin');
  const server = await module.PostgresServer.start(kind, ['autovacuum=off']);
  const pool = server.pool({ max: WRITERS });
  await pool.query(await readFile('src/guard/postgres/fencing.sql', 'utf8'));
  await pool.query(`
    create table account (id int primary key, balance bigint, fence_token bigint not null default 0, fence_issuer text)
      with (fillfactor = 50);
    insert into account select id, 0 from generate_series(1, ${WRITERS}) id`);
  const fence = postgresFence(pool, { limitMs: 60_000 });
  const rows = postgresRows(pool, { table: 'account', key: 'id' });
  const update = `update account set ${SET} where id = $1`;
  const takeOut = () => pool.connect();
  const ways = waysOf({ pool, takeOut, fence, rows, update, lease });
  return { subjects: [{ name: kind.name, ways, bases: BASES }], close: () => server[Symbol.asyncDispose]() };
}

/**
 * @param {FencedLease} lease
 * @returns {Promise<Opened>}
 */
export async function mariadbWays(lease) {
  /** @type {{ module: any }} */
  const { module } = await runnerImport('./test/servers/mariadb.ts');
  const kind = found(module.MARIADB, 'program');
  const server = await module.MariadbServer.start(kind, []);
  const pool = server.pool({ connectionLimit: WRITERS });
  server.apply(await readFile('src/guard/mysql/fencing.sql', 'utf8'));
  server.apply(`
    create table account (id int primary key, balance bigint not null default 0, fence_token bigint not null default 0,
      fence_issuer varbinary(512), fence_writes bigint unsigned not null default 0);
    insert into account (id) select seq from seq_1_to_${WRITERS}`);
  const fence = mysqlFence(pool, { limitMs: 60_000 });
  const rows = mysqlRows(pool, { table: 'account', key: 'id' });
  const update = `update account set ${SET} where id = ?`;
  const takeOut = () => pool.getConnection();
  const ways = waysOf({ pool, takeOut, fence, rows, update, lease });
  return { subjects: [{ name: kind.name, ways, bases: BASES }], close: () => server[Symbol.asyncDispose]() };
}

/**
 * One connection: the driver is synchronous, so writers of one process never meet, and sixteen show what one does.
 * @param {FencedLease} lease
 * @returns {Promise<Opened>}
 */
export async function sqliteWays(lease) {
  /** @type {{ module: any }} */
  const { module } = await runnerImport('./test/servers/sqlite.ts');
  const driver = found(module.SQLITE, 'open');
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-bench-'));
  const db = driver.open(join(folder, 'data.db'));
  db.exec(`pragma journal_mode = wal; pragma synchronous = full;
    create table account (id integer primary key, balance integer not null)`);
  for (let id = 1; id <= WRITERS; id++) db.exec(`insert into account values (${id}, 0)`);
  const fence = sqliteFence(db);
  const update = db.prepare(`update account set ${SET} where id = ?`);
  /** @type {import('./guards.js').Ways} */
  const ways = {
    'plain update': (id) => update.run(String(id)),
    'plain update in begin … commit': (id) => {
      db.exec('begin immediate');
      update.run(String(id));
      db.exec('commit');
    },
    'fenced update': (id) => fence.run(lease, () => update.run(String(id))),
  };
  return {
    subjects: [{ name: `SQLite through ${driver.name}`, ways, bases: BASES }],
    async close() {
      db.close();
      await rm(folder, { recursive: true });
    },
  };
}

/**
 * The same ways for both databases; `takeOut` takes a connection out of the pool.
 * @param {{ readonly pool: any, readonly takeOut: () => Promise<any>, readonly fence: any, readonly rows: any,
 *   readonly update: string, readonly lease: FencedLease }} parts
 * @returns {import('./guards.js').Ways}
 */
function waysOf({ pool, takeOut, fence, rows, update, lease }) {
  return {
    'plain update': (id) => pool.query(update, [id]),
    'row layout': (id) => rows.change(lease, id, { set: SET }),
    'plain update in begin … commit': async (id) => {
      const connection = await takeOut();
      await connection.query('begin');
      await connection.query(update, [id]);
      await connection.query('commit');
      connection.release();
    },
    'domain layout': (id) => fence.run(lease, (/** @type {any} */ tx) => tx.query(update, [id]).then(() => undefined)),
  };
}

/**
 * @param {readonly any[]} kinds
 * @param {string} program
 */
function found(kinds, program) {
  const kind = kinds.find((each) => each[program] !== undefined);
  if (kind === undefined) throw new Error(kinds.map(({ name }) => name).join('; '));
  return kind;
}
