/** Against Debian's server with every write synced, through both drivers. */
import { afterAll, beforeAll, describe } from 'vitest';
import { fencedScript, redisFence } from '../../src/guard/redis.js';
import type { FencedLease, RedisCommand } from '../../src/guard/redis.js';
import type { GuardedStore, GuardSubject } from '../../src/guard/conformance/index.js';
import { until } from '../process/cluster.js';
import { REDIS_DRIVERS, REDIS_MISSING, RedisServer } from '../servers/redis.js';
import type { RedisConnection, RedisDriver } from '../servers/redis.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { describeConformance } from './suite.js';

const NO_WORK = 'an operation runs at the server as a whole: no work of the caller is within it';

const keyOf = (domain: string, item: string): string => `{${domain}}:${item}`;

function put(leases: readonly FencedLease[], item: string, value: string): readonly RedisCommand[] {
  return leases.map(({ domain }) => ['SET', keyOf(domain, item), value]);
}

/** Writes, and has no end. */
const HANG = fencedScript("redis.call('SET', KEYS[1], ARGV[1]) while true do end");

async function create(server: RedisServer, driver: RedisDriver): Promise<GuardedStore> {
  let connection = await driver.connect(server.port);
  let fence = redisFence(connection.client);
  await connection.send('FLUSHALL');

  const read = async (domain: string, item: string): Promise<string | undefined> =>
    ((await connection.send('GET', keyOf(domain, item))) ?? undefined) as string | undefined;
  const again = async (): Promise<void> => {
    await connection[Symbol.asyncDispose]();
    connection = await driver.connect(server.port);
    fence = redisFence(connection.client);
  };
  return {
    async open(lease) {
      const opened = await fence.open(lease);
      if (opened.status !== 'applied') return opened;
      return {
        ...opened,
        value: {
          async write(item, value, between) {
            await between();
            return opened.value.run(put([lease], item, value));
          },
        },
      };
    },
    async write(lease, item, value, between) {
      await between();
      return fence.run(lease, put([lease], item, value));
    },
    read,
    async close() {
      await connection[Symbol.asyncDispose]();
    },
    remove: (lease, item) => fence.run(lease, [['DEL', keyOf(lease.domain, item)]]),
    writeAll: (leases, item, value) => fence.run(leases, put(leases, item, value)),
    async writeAndCrash(lease, item, value) {
      // Before: a server that is busy takes no new connection.
      await using other = await driver.connect(server.port);
      const hanging = fence.run(lease, HANG([keyOf(lease.domain, item)], [value])).then(
        () => 'came through',
        () => 'failed',
      );
      await untilBusy(other);
      await server.kill();
      if ((await hanging) !== 'failed') throw new Error('the operation came through without its server');
      await server.run();
      await again();
    },
    async writeLosingResponse(lease, item, value) {
      const proxy = await TcpProxy.start(server.port);
      const lossy = await driver.connect(proxy.port);
      try {
        const through = redisFence(lossy.client);
        // The server knows the script then.
        await through.run(lease, []);
        proxy.block('toClient');
        const writing = through.run(lease, put([lease], item, value));
        writing.catch(() => undefined);
        await until('the write to be carried out', async () => (await read(lease.domain, item)) === value);
        proxy.reset();
        proxy.heal();
        return await writing;
      } finally {
        await lossy[Symbol.asyncDispose]();
        await proxy.close();
      }
    },
    async restart() {
      await server.kill();
      await server.run();
      await again();
    },
    age: () => evictWhatMayGo(connection),
    maxJump: 631_152_000_000_000n,
    reset: (lease) => fence.reset(lease),
    async allowIssuer(domain, cluster) {
      await fence.allowIssuer(domain, cluster);
    },
  };
}

/** Until a script keeps the server from everything else: it says BUSY after `busy-reply-threshold`. */
async function untilBusy(other: RedisConnection): Promise<void> {
  await until('the script to run', () =>
    other.send('PING').then(
      () => false,
      (error: unknown) => String(error).includes('BUSY'),
    ),
  );
}

/** Until the server has thrown something out for want of memory; what has no time to live is not for it to throw out. */
async function evictWhatMayGo(connection: RedisConnection): Promise<void> {
  await connection.send('CONFIG', 'SET', 'maxmemory-policy', 'volatile-random');
  await connection.send('CONFIG', 'SET', 'maxmemory', '4mb');
  for (let at = 0; !/evicted_keys:[1-9]/.test(String(await connection.send('INFO', 'stats'))); at++) {
    await connection.send('SET', `filler:${at}`, 'x'.repeat(200_000), 'EX', '1000000');
  }
  await connection.send('CONFIG', 'SET', 'maxmemory', '0');
}

if (REDIS_MISSING !== undefined) describe.skip(`Redis (${REDIS_MISSING})`, () => undefined);
else
  describe.each(REDIS_DRIVERS)('$name', (driver) => {
    let server: RedisServer;
    beforeAll(async () => {
      server = await RedisServer.start(['--busy-reply-threshold', '50']);
    });
    afterAll(() => server[Symbol.asyncDispose]());
    const subject: GuardSubject = {
      name: 'Redis',
      create: () => create(server, driver),
      skips: {
        'stale behind a raise': NO_WORK,
        'raise during a stale write': NO_WORK,
        'raise during the first write': NO_WORK,
        'failed work': NO_WORK,
        'write without a lease': 'the guard sees only what passes through it',
      },
    };
    describeConformance(subject);
  });
