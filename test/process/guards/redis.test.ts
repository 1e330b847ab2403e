/** Workers with connections of their own: what is compared is compared at the server. */
import { describe, it } from 'vitest';
import { REDIS_DRIVERS, REDIS_MISSING, RedisServer } from '../../servers/redis.js';
import { describeStaleHolder } from './frame.js';

for (const driver of REDIS_DRIVERS) {
  const name = `Redis through ${driver.name}`;
  if (REDIS_MISSING !== undefined) {
    describe(name, () => {
      it.skip(`a worker that was stopped past its TTL (${REDIS_MISSING})`);
    });
    continue;
  }
  describeStaleHolder(name, async () => {
    const server = await RedisServer.start();
    return {
      where: { kind: 'redis', driver: driver.name, port: server.port },
      async read() {
        await using connection = await driver.connect(server.port);
        return String(await connection.send('GET', '{guarded}:text'));
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  });
}
