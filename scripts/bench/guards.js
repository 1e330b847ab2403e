/** What a fenced update costs against a plain one: median of the ratios of interleaved rounds. */
import { installServers } from '../prepare.js';
import { redisWays } from './guards-redis.js';
import { mariadbWays, postgresWays, sqliteWays } from './guards-sql.js';
import { dynamoWays, s3Ways } from './guards-stores.js';

const ROUNDS = 9;
const ROUND_MS = 700;
const LEASE = { domain: 'bench', token: 1_796_000_000_000_041n, cluster: 'bench', incarnation: 'a'.repeat(32) };

/**
 * The ways to add one to a row of a resource, for each writer on a row of its own.
 * @typedef {Readonly<Record<string, (id: number) => unknown>>} Ways
 */

/**
 * `bases`: columns of ratios, each to one of the ways.
 * @typedef {{ readonly name: string, readonly ways: Ways, readonly bases: Readonly<Record<string, string>> }} Subject
 */

/** @typedef {{ readonly subjects: readonly Subject[], readonly close: () => Promise<unknown> }} Opened */

/** @returns {Promise<object[]>} */
export async function benchGuards() {
  if (!installServers()) throw new Error('npm ci failed in test/servers');
  const table = [];
  for (const open of [postgresWays, redisWays, mariadbWays, sqliteWays, dynamoWays, s3Ways]) {
    const { subjects, close } = await open(LEASE);
    try {
      for (const subject of subjects) table.push(...(await compared(subject)));
    } finally {
      await close();
    }
  }
  return table;
}

/**
 * @param {Subject} subject
 * @returns {Promise<object[]>}
 */
async function compared({ name, ways, bases }) {
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
        resource: name,
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
 * @param {(id: number) => unknown} update
 * @returns {Promise<number>} a second
 */
async function rateOf(writers, update) {
  let done = 0;
  const start = performance.now();
  const write = async (/** @type {number} */ id) => {
    while (performance.now() < start + ROUND_MS) {
      const outcome = /** @type {{ status?: string } | undefined} */ (await update(id));
      // What is refused is no update.
      if ((outcome?.status ?? 'applied') !== 'applied') throw new Error(`an update is ${outcome?.status}`);
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
