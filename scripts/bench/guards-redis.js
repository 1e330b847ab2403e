/** The part of `guards.js` on Redis, with every write synced. */
import { runnerImport } from 'vite';
import { fencedScript, redisFence } from '../../dist/guard/redis.js';

/**
 * A connection for each driver, on one server.
 * @param {import('../../dist/guard/redis.js').FencedLease} lease
 * @returns {Promise<import('./guards.js').Opened>}
 */
export async function redisWays(lease) {
  /** @type {{ module: any }} */
  const { module } = await runnerImport('./test/servers/redis.ts');
  if (module.REDIS_MISSING !== undefined) throw new Error(`Redis: ${module.REDIS_MISSING}`);
  const add = fencedScript("return redis.call('INCR', KEYS[1])");
  const server = await module.RedisServer.start();
  const key = (/** @type {number} */ id) => `{${lease.domain}}:${id}`;
  const opened = await Promise.all(
    module.REDIS_DRIVERS.map(async (/** @type {any} */ driver) => {
      const connection = await driver.connect(server.port);
      const fence = redisFence(connection.client);
      /** @type {import('./guards.js').Ways} */
      const ways = {
        'plain command': (id) => connection.send('INCR', key(id)),
        'fenced command': (id) => fence.run(lease, [['INCR', key(id)]]),
        'fenced Lua': (id) => fence.run(lease, add([key(id)])),
      };
      const bases = { 'cost against plain': 'plain command' };
      return { subject: { name: `Redis through ${driver.name}`, ways, bases }, connection };
    }),
  );
  return {
    subjects: opened.map(({ subject }) => subject),
    async close() {
      for (const { connection } of opened) await connection[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}
