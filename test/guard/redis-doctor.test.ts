/** What the settings of a server cost, and that the guard's own look at them finds it. */
import { describe, expect, it } from 'vitest';
import { fenceFaults, redisFence } from '../../src/guard/redis.js';
import type { FencedLease, RedisServer as Asked } from '../../src/guard/redis.js';
import { until } from '../process/cluster.js';
import { REDIS_DRIVERS, REDIS_MISSING, RedisServer } from '../servers/redis.js';
import type { RedisConnection } from '../servers/redis.js';

const KEY = '{orders/eu}:stock';
const lease = (token: number): FencedLease => ({
  domain: 'orders/eu',
  token: BigInt(token),
  cluster: 'prod',
  incarnation: 'a'.repeat(32),
});

if (REDIS_MISSING !== undefined) describe.skip(`fenceFaults (${REDIS_MISSING})`, () => undefined);
else
  describe.each(REDIS_DRIVERS)('fenceFaults over $name', (driver) => {
    const asked = (redis: RedisConnection) => fenceFaults(redis.client as unknown as Asked);

    it('finds nothing at a server that keeps everything', async () => {
      await using server = await RedisServer.start();
      await using redis = await driver.connect(server.port);
      expect(await asked(redis)).toEqual([]);
      await redis.send('CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru');
      expect(await asked(redis)).toEqual([]);
    });

    it('names each setting, what it may cost, and what to set', async () => {
      const settings = ['--appendfsync', 'everysec', '--maxmemory-policy', 'allkeys-lru'];
      await using server = await RedisServer.start([...settings, '--no-appendfsync-on-rewrite', 'yes']);
      await using redis = await driver.connect(server.port);
      expect(await asked(redis)).toEqual([
        'maxmemory-policy is allkeys-lru: fences are evicted when memory runs out. Set it to noeviction',
        'appendfsync is everysec: a power failure takes back the last raises. Set it to always',
        'no-appendfsync-on-rewrite is yes: there is no fsync while the file is rewritten. Set it to no',
      ]);
    });

    it('throws what a server says that hides its settings', async () => {
      await using server = await RedisServer.start(['--rename-command', 'CONFIG', '']);
      await using redis = await driver.connect(server.port);
      await expect(asked(redis)).rejects.toThrow(/unknown command 'CONFIG'/i);
    });

    it('without an append-only file: a restart forgets the fence, and the stale write passes', async () => {
      await using server = await RedisServer.start(['--appendonly', 'no']);
      {
        await using redis = await driver.connect(server.port);
        expect(await asked(redis)).toEqual([
          'appendonly is no: a restart takes fences back to the last snapshot. Set it to yes',
        ]);
        expect((await redisFence(redis.client).open(lease(6))).status).toBe('applied');
      }
      await server.kill();
      await server.run();
      await using redis = await driver.connect(server.port);
      expect((await redisFence(redis.client).run(lease(5), [['SET', KEY, 'late']])).status).toBe('applied');
    });

    it('with allkeys-random: the fence is evicted, and the stale write passes', async () => {
      await using server = await RedisServer.start(['--maxmemory', '4mb', '--maxmemory-policy', 'allkeys-random']);
      await using redis = await driver.connect(server.port);
      const fence = redisFence(redis.client);
      await fence.open(lease(6));
      for (let at = 0; (await fence.fence('orders/eu')) !== undefined; at++) {
        await redis.send('SET', `filler:${at}`, 'x'.repeat(200_000));
      }
      expect((await fence.run(lease(5), [['SET', KEY, 'late']])).status).toBe('applied');
    });

    it.each(['noeviction', 'volatile-lru'])(
      'with %s: a full server refuses an operation whole, also one that would need no memory, and keeps the fence',
      async (policy) => {
        await using server = await RedisServer.start(['--maxmemory-policy', policy]);
        await using redis = await driver.connect(server.port);
        const fence = redisFence(redis.client);
        await fence.run(lease(6), [['SET', KEY, 'mine']]);
        await redis.send('CONFIG', 'SET', 'maxmemory', '1');
        const commands = [
          ['DEL', KEY],
          ['SET', 'other', 'x'],
        ] as const;
        for (const token of [6, 7]) await expect(fence.run(lease(token), commands)).rejects.toThrow(/OOM/);
        expect([await redis.send('GET', KEY), (await fence.fence('orders/eu'))?.token]).toEqual(['mine', 6n]);
      },
    );

    it('with a replica: says so at both ends; the replica refuses an operation whole', async () => {
      await using primary = await RedisServer.start();
      await using replica = await RedisServer.start(['--replicaof', `127.0.0.1 ${primary.port}`]);
      await using upper = await driver.connect(primary.port);
      await using lower = await driver.connect(replica.port);
      await until('the replica to be up to date', async () =>
        String(await lower.send('INFO', 'replication')).includes('master_link_status:up'),
      );
      await until('the primary to know it', async () =>
        String(await upper.send('INFO', 'replication')).includes('state=online'),
      );
      expect(await asked(upper)).toEqual([
        'this server has replicas: one that is promoted may not have the last raises. After a failover let each holder ' +
          'acquire anew and open before anything is written; min-replicas-to-write only makes a loss rarer',
      ]);
      expect(await asked(lower)).toEqual([
        'this server is a replica: it may be behind, and takes no writes. Give the guard the primary',
      ]);
      // Not even what would only read: it may be behind.
      const fence = redisFence(lower.client);
      await expect(fence.run(lease(5), [['GET', KEY]])).rejects.toThrow(/read.?only|read-?only replica|READONLY/i);
    });
  });
