/** Redis Cluster, of one server that has all slots: what lies in another slot is refused there as with many. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fencedScript, RedisCommandError, redisFence } from '../../src/guard/redis.js';
import type { FencedLease, RedisFence } from '../../src/guard/redis.js';
import { until } from '../process/cluster.js';
import { newIoredis, REDIS_DRIVERS, REDIS_MISSING, RedisServer } from '../servers/redis.js';
import type { RedisConnection } from '../servers/redis.js';

const lease = (token: number, domain = 'orders/eu'): FencedLease => ({
  domain,
  token: BigInt(token),
  cluster: 'prod',
  incarnation: 'a'.repeat(32),
});
const SET = fencedScript("return redis.call('SET', KEYS[1], ARGV[1])");

if (REDIS_MISSING !== undefined) describe.skip(`redisFence over Redis Cluster (${REDIS_MISSING})`, () => undefined);
else
  describe.each(REDIS_DRIVERS)('redisFence over Redis Cluster through $name', (driver) => {
    let server: RedisServer;
    let redis: RedisConnection;
    let fence: RedisFence;
    beforeAll(async () => {
      server = await RedisServer.start(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
      const admin = newIoredis(server.port, { enableReadyCheck: false });
      await admin.call('CLUSTER', ['ADDSLOTSRANGE', '0', '16383']);
      await until('the cluster to serve', async () =>
        String(await admin.call('CLUSTER', ['INFO'])).includes('cluster_state:ok'),
      );
      admin.disconnect();
      redis = await driver.connectCluster(server.port);
      fence = redisFence(redis.client);
    });
    afterAll(async () => {
      await redis[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    });

    it('keeps the fence where the keys with the domain in braces are', async () => {
      const opened = await fence.open(lease(6));
      if (opened.status !== 'applied') throw new Error(opened.status);
      const commands = [
        ['SET', '{orders/eu}:a', 'x'],
        ['RENAME', '{orders/eu}:a', '{orders/eu}:b'],
      ] as const;
      expect(await opened.value.run(commands)).toMatchObject({ value: ['OK', 'OK'] });
      expect(await opened.value.run(SET(['{orders/eu}:c'], ['y']))).toMatchObject({ value: 'OK' });
      expect(await fence.run(lease(5), commands)).toEqual({ status: 'stale', fence: 6n });
      expect((await fence.fence('orders/eu'))?.token).toBe(6n);
      expect((await fence.open(lease(3, 'gpu#0'))).status).toBe('applied');
    });

    it('throws for keys of another slot: before anything is done when they are named, else where it comes to them', async () => {
      await expect(fence.run(lease(7), SET(['elsewhere'], ['x']))).rejects.toThrow(/CROSSSLOT|same slot/i);
      await expect(fence.run([lease(7), lease(7, 'parts')], [])).rejects.toThrow(/CROSSSLOT|same slot/i);
      expect((await fence.fence('orders/eu'))?.token).toBe(6n);
      const error: unknown = await fence.run(lease(7), [['SET', 'elsewhere', 'x']]).catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(RedisCommandError);
      expect(String(error)).toMatch(/slot/i);
    });
  });

describe('redisFence of a cluster client', () => {
  it('refuses one of ioredis that would send a lost operation again', () => {
    const client = {
      isCluster: true,
      options: { retryDelayOnFailover: 100 },
      evalsha: () => Promise.resolve(),
      eval: () => Promise.resolve(),
    };
    expect(() => redisFence(client)).toThrow(
      /retryDelayOnFailover of this client is 100: .*new Cluster\(nodes, \{ retry/,
    );
    expect(() => redisFence({ ...client, options: { retryDelayOnFailover: 0 } })).not.toThrow();
  });
});
