/** What a fenced update costs against a plain one, on databases with fsync: median of the ratios of interleaved rounds. */
import { readFileSync } from 'node:fs';
import { runnerImport } from 'vite';
import { postgresFence, postgresRows } from '../../dist/guard/postgres.js';
import { mysqlFence, mysqlRows } from '../../dist/guard/mysql.js';
import { installServers } from '../prepare.js';
import { redisWays } from './guards-redis.js';

const ROUNDS = 9;
const ROUND_MS = 700;
const SET = 'balance = balance + 1';
const LEASE = { domain: 'bench', token: 1_796_000_000_000_041n, cluster: 'bench', incarnation: 'a'.repeat(32) };

const SQL_BASES = { 'cost against plain': 'plain update', 'against begin … commit': 'plain update in begin … commit' };

/** @typedef {Readonly<Record<string, (id: number) => Promise<unknown>>>} Ways */

/** @returns {Promise<object[]>} */
export async function benchGuards() {
  if (!installServers()) throw new Error('npm ci failed in test/servers');
  return [...(await onPostgres()), ...(await onRedis()), ...(await onMariadb())];
}

/** @returns {Promise<object[]>} */
async function onRedis() {
  const redis = await redisWays(LEASE);
  const bases = { 'cost against plain': 'plain command' };
  const table = [];
  try {
    for (const { name, ways } of redis.drivers) table.push(...(await compared(name, ways, bases)));
    return table;
  } finally {
    await redis.close();
  }
}

/** @returns {Promise<object[]>} */
async function onPostgres() {
  /** @type {{ module: any }} */
  const { module } = await runnerImport('./test/servers/postgres.ts');
  const kind = found(module.POSTGRES, 'bin');
  const server = await module.PostgresServer.start(kind, ['autovacuum=off']);
  try {
    const pool = server.pool({ max: 16 });
    await pool.query(readFileSync('src/guard/postgres/fencing.sql', 'utf8'));
    await pool.query(`
      create table account (id int primary key, balance bigint, fence_token bigint not null default 0, fence_issuer text)
        with (fillfactor = 50);
      insert into account select id, 0 from generate_series(1, 16) id`);
    const fence = postgresFence(pool, { limitMs: 60_000 });
    const rows = postgresRows(pool, { table: 'account', key: 'id' });
    const update = `update account set ${SET} where id = $1`;
    return await compared(
      kind.name,
      {
        'plain update': (id) => pool.query(update, [id]),
        'row layout': (id) => rows.change(LEASE, id, { set: SET }),
        'plain update in begin … commit': async (id) => {
          const client = await pool.connect();
          await client.query('begin');
          await client.query(update, [id]);
          await client.query('commit');
          client.release();
        },
        'domain layout': (id) => fence.run(LEASE, (tx) => tx.query(update, [id]).then(() => undefined)),
      },
      SQL_BASES,
    );
  } finally {
    await server[Symbol.asyncDispose]();
  }
}

/** @returns {Promise<object[]>} */
async function onMariadb() {
  /** @type {{ module: any }} */
  const { module } = await runnerImport('./test/servers/mariadb.ts');
  const kind = found(module.MARIADB, 'program');
  const server = await module.MariadbServer.start(kind, []);
  try {
    const pool = server.pool({ connectionLimit: 16 });
    server.apply(readFileSync('src/guard/mysql/fencing.sql', 'utf8'));
    server.apply(`
      create table account (id int primary key, balance bigint not null default 0, fence_token bigint not null default 0,
        fence_issuer varbinary(512), fence_writes bigint unsigned not null default 0);
      insert into account (id) select seq from seq_1_to_16`);
    const fence = mysqlFence(pool, { limitMs: 60_000 });
    const rows = mysqlRows(pool, { table: 'account', key: 'id' });
    const update = `update account set ${SET} where id = ?`;
    return await compared(
      kind.name,
      {
        'plain update': (id) => pool.query(update, [id]),
        'row layout': (id) => rows.change(LEASE, id, { set: SET }),
        'plain update in begin … commit': async (id) => {
          const connection = await pool.getConnection();
          await connection.query('begin');
          await connection.query(update, [id]);
          await connection.query('commit');
          connection.release();
        },
        'domain layout': (id) => fence.run(LEASE, (tx) => tx.query(update, [id]).then(() => undefined)),
      },
      SQL_BASES,
    );
  } finally {
    await server[Symbol.asyncDispose]();
  }
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

/**
 * @param {string} database
 * @param {Ways} ways
 * @param {Readonly<Record<string, string>>} bases columns of ratios, each to one of the ways
 * @returns {Promise<object[]>}
 */
async function compared(database, ways, bases) {
  const table = [];
  for (const writers of [1, 16]) {
    /** @type {Record<string, number>[]} */
    const rounds = [];
    for (let round = -1; round < ROUNDS; round++) {
      /** @type {Record<string, number>} */
      const rates = {};
      for (const [way, update] of Object.entries(ways)) rates[way] = await rateOf(writers, update);
      // The first one warms up.
      if (round >= 0) rounds.push(rates);
    }
    for (const way of Object.keys(ways)) {
      const of = (/** @type {string} */ base) => median(rounds.map((rates) => (rates[base] ?? 0) / (rates[way] ?? 0)));
      table.push({
        database,
        writers,
        way,
        'updates/s': Math.round(median(rounds.map((rates) => rates[way] ?? 0))),
        ...Object.fromEntries(Object.entries(bases).map(([column, base]) => [column, of(base).toFixed(2)])),
      });
    }
  }
  return table;
}

/**
 * @param {number} writers each on a row of its own
 * @param {(id: number) => Promise<unknown>} update
 * @returns {Promise<number>} a second
 */
async function rateOf(writers, update) {
  let done = 0;
  const start = performance.now();
  const write = async (/** @type {number} */ id) => {
    while (performance.now() < start + ROUND_MS) {
      await update(id);
      done++;
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, at) => write(at + 1)));
  return (done / (performance.now() - start)) * 1_000;
}

/**
 * @param {readonly number[]} values
 * @returns {number}
 */
function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
