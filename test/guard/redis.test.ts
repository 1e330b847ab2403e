import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createRandom, nextInt } from '../../src/base/random.js';
import { admit, fenceOf, MAX_JUMP } from '../../src/guard/fence.js';
import { fencedScript, RedisCommandError, redisFence } from '../../src/guard/redis.js';
import type { FencedLease, RedisClient, RedisCommand, RedisFence } from '../../src/guard/redis.js';
import { until } from '../process/cluster.js';
import { newIoredis, REDIS_DRIVERS, REDIS_MISSING, RedisServer } from '../servers/redis.js';
import type { RedisConnection } from '../servers/redis.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const D = 'orders/eu';
const KEY = '{orders/eu}:stock';
const FENCE = 'fencepost:fence:{orders/eu}';
const A = 'a'.repeat(32);
const B = 'b'.repeat(32);

const lease = (token: number | bigint, more: Partial<FencedLease> = {}): FencedLease => ({
  domain: D,
  token: BigInt(token),
  cluster: 'prod',
  incarnation: A,
  ...more,
});

if (REDIS_MISSING !== undefined) describe.skip(`redisFence (${REDIS_MISSING})`, () => undefined);
else
  describe.each(REDIS_DRIVERS)('redisFence over $name', (driver) => {
    let server: RedisServer;
    let redis: RedisConnection;
    let fence: RedisFence;
    beforeAll(async () => {
      server = await RedisServer.start();
    });
    afterAll(() => server[Symbol.asyncDispose]());
    beforeEach(async () => {
      redis = await driver.connect(server.port);
      fence = redisFence(redis.client);
      await redis.send('FLUSHALL');
    });
    afterEach(async () => {
      await redis[Symbol.asyncDispose]();
    });
    const set = (value: string | number, key = KEY): RedisCommand => ['SET', key, value];
    const stored = (key = KEY) => redis.send('GET', key);

    describe('commands', () => {
      it('gives the replies to all, in their order, behind the raise', async () => {
        const commands: RedisCommand[] = [set(9), ['INCRBY', KEY, 2], ['GET', 'nothing'], ['LRANGE', 'none', 0, -1]];
        expect(await fence.run(lease(5), commands)).toEqual({
          status: 'applied',
          value: ['OK', 11, null, []],
          earlierIncarnation: undefined,
        });
        expect(await fence.fence(D)).toEqual({ token: 5n, issuer: 'fencepost:prod', incarnation: A });
        expect(await redis.send('PTTL', FENCE)).toBe(-1);
      });

      it('carries bytes and long texts as they are', async () => {
        const bytes = Buffer.from([0, 255, 13, 10, 128]);
        const long = 'ä€'.repeat(100_000);
        await fence.run(lease(5), [
          ['SET', KEY, bytes],
          ['SET', 'long', long],
        ]);
        expect(await redis.send('STRLEN', KEY)).toBe(5);
        expect(await stored('long')).toBe(long);
      });

      it('tells the first that fails; those before it stay, those after it are not tried, and the fence stands', async () => {
        const commands: RedisCommand[] = [set('text'), ['INCR', KEY], ['SET', 'other', 'x']];
        const error: unknown = await fence.run(lease(6), commands).catch((cause: unknown) => cause);
        expect(error).toBeInstanceOf(RedisCommandError);
        expect(error).toMatchObject({ at: 1, replies: ['OK'] });
        expect(String(error)).toMatch(/command 2 of 3 \(INCR\) failed: ERR value is not an integer.*The 1 before it/);
        expect([await stored(), await stored('other')]).toEqual(['text', null]);
        expect(await fence.run(lease(5), [])).toEqual({ status: 'stale', fence: 6n });
        await expect(fence.run(lease(6), [['NOSUCH', KEY]])).rejects.toThrow(/command 1 of 1 \(NOSUCH\)/);
      });

      it('sends nothing, and says all that is wrong, when one is none', async () => {
        const wrong = [
          [''],
          ['SET', KEY, undefined],
          ['flushall'],
          ['INCRBY', KEY, NaN],
          ['DEL', ...Array<string>(7_000).fill('k')],
        ];
        await expect(fence.run(lease(5), wrong as unknown as RedisCommand[])).rejects.toThrow(
          new TypeError(
            'not commands of Redis: command 1 of 5 has no name; ' +
              'command 2 of 5 (SET): value 3 must be text, a finite number or a Buffer, not undefined; ' +
              'command 3 of 5 (flushall) would delete or move the fences; ' +
              'command 4 of 5 (INCRBY): value 3 must be text, a finite number or a Buffer, not NaN; ' +
              'command 5 of 5 (DEL) has 7001 parts; at most 7000 are allowed',
          ),
        );
        expect(await fence.fence(D)).toBeUndefined();
      });

      it('takes as many parts as it says, and an operation of many commands', async () => {
        const keys = Array.from({ length: 6_999 }, (_, at) => `k${at}`);
        const many = Array.from({ length: 7_500 }, (_, at) => set(at));
        expect((await fence.run(lease(5), [['DEL', ...keys]])).status).toBe('applied');
        expect((await fence.run(lease(5), many)).status).toBe('applied');
        expect(await stored()).toBe('7499');
        const tooMany = 'an operation of 30004 values; at most 30000 are allowed: split it';
        await expect(fence.run(lease(5), [...many, set(1)])).rejects.toThrow(`not commands of Redis: ${tooMany}`);
        const call = fencedScript('return 1')(['k'], Array<string>(30_003).fill('x'));
        await expect(fence.run(lease(5), call)).rejects.toThrow(`not a call of a script: ${tooMany}`);
      });
    });

    describe('a script', () => {
      const take = fencedScript(`
        local left = tonumber(redis.call('GET', KEYS[1]) or '0') - tonumber(ARGV[1])
        if left < 0 then return nil end
        redis.call('SET', KEYS[1], left)
        return {left, KEYS[2] or 'no second key', #ARGV}`);

      it('has its own keys and arguments, and gives what it returns', async () => {
        await fence.run(lease(5), [set(10)]);
        const opened = await fence.open(lease(6));
        if (opened.status !== 'applied') throw new Error(opened.status);
        const tenure = opened.value;
        expect([tenure.domain, tenure.token]).toEqual([D, 6n]);
        expect(await tenure.run(take([KEY], [3]))).toMatchObject({ value: [7, 'no second key', 1] });
        expect(await tenure.run(take([KEY, 'b'], [3, 'x']))).toMatchObject({ value: [4, 'b', 2] });
        expect((await tenure.run(take([KEY], [30]))).status).toBe('applied');
        expect(await fence.run(lease(5), take([KEY], [1]))).toEqual({ status: 'stale', fence: 6n });
        expect(await stored()).toBe('4');
      });

      it('that fails throws what the server says, and what it had written stays', async () => {
        const failing = fencedScript("redis.call('SET', KEYS[1], 'half') redis.call('INCR', KEYS[1])");
        await expect(fence.run(lease(6), failing([KEY]))).rejects.toThrow(/value is not an integer/);
        expect(await stored()).toBe('half');
        expect(await fence.run(lease(5), [])).toEqual({ status: 'stale', fence: 6n });
        for (const failed of ["redis.error_reply('NO stock')", "redis.pcall('INCR', KEYS[1])"])
          await expect(fence.run(lease(6), fencedScript(`return ${failed}`)([KEY]))).rejects.toThrow(
            /NO stock|integer/,
          );
        await expect(fence.run(lease(6), fencedScript('this is no Lua')([]))).rejects.toThrow(/compiling script/);
      });

      it('says all that is wrong with a call', async () => {
        const call = take([7 as unknown as string], [Infinity, {} as string]);
        await expect(fence.run(lease(5), call)).rejects.toThrow(
          'not a call of a script: ARGV: value 1 must be text, a finite number or a Buffer, not Infinity; ' +
            'ARGV: value 2 must be text, a finite number or a Buffer, not [object Object]; KEYS[1] must be text',
        );
      });

      it('is sent whole again when the server has forgotten it', async () => {
        await fence.run(lease(5), [set(1)]);
        await redis.send('SCRIPT', 'FLUSH');
        expect((await fence.run(lease(5), [set(2)])).status).toBe('applied');
        expect(await stored()).toBe('2');
      });
    });

    it('compares at the server as `admit` does, to the last digit', async () => {
      const random = createRandom(7);
      const edges = [1n, 9n, 10n, 10n ** 10n, 2n ** 53n, MAX_JUMP, 10n ** 18n, 2n ** 62n, 2n ** 63n - 3n];
      const seen = new Set<string>();
      for (let round = 0; round < 400; round++) {
        const pick = (): bigint => edges[nextInt(random, 0, edges.length - 1)] ?? 1n;
        const near = (token: bigint): bigint => {
          const moved = token + BigInt(nextInt(random, -2, 2));
          return moved < 1n ? 1n : moved > 2n ** 63n - 1n ? 2n ** 63n - 1n : moved;
        };
        const before = lease(near(pick()));
        const step = [0n, MAX_JUMP, -MAX_JUMP, 10n ** 10n, pick()][nextInt(random, 0, 4)] ?? 0n;
        const next = lease(near(before.token + step), {
          incarnation: nextInt(random, 0, 3) === 0 ? B : A,
          cluster: nextInt(random, 0, 9) === 0 ? 'other' : 'prod',
        });
        const verdict = admit(fenceOf(before), next);
        await fence.reset(before);
        const outcome = await fence.run(next, [set(round)]);
        const admitted = verdict.status === 'admitted';
        seen.add(verdict.status === 'rejected' ? verdict.reason : verdict.status);
        if (!admitted) expect(outcome).toEqual(verdict);
        else {
          expect(outcome).toEqual({
            status: 'applied',
            value: ['OK'],
            earlierIncarnation: verdict.earlierIncarnation,
          });
        }
        expect(await fence.fence(D)).toEqual(admitted ? fenceOf(next) : fenceOf(before));
        expect((await stored()) === String(round)).toBe(admitted);
      }
      expect([...seen].sort()).toEqual(['admitted', 'incarnation', 'issuer', 'jump', 'stale']);
    });

    it('checks all domains of an operation before it raises one', async () => {
      const other = (token: number, more: Partial<FencedLease> = {}) => lease(token, { domain: 'parts', ...more });
      await fence.run([lease(5), other(7)], [set(1)]);
      expect(await fence.run([lease(9), other(6)], [set(2)])).toEqual({ status: 'stale', fence: 7n });
      expect((await fence.fence(D))?.token).toBe(5n);
      const restored = await fence.run([other(8, { incarnation: B }), lease(9)], [set(3)]);
      expect(restored).toMatchObject({ status: 'applied', earlierIncarnation: A });
      expect([(await fence.fence(D))?.token, (await fence.fence('parts'))?.token]).toEqual([9n, 8n]);
      await expect(fence.run([lease(9), lease(9)], [])).rejects.toThrow(/one of each domain/);
    });

    it.each([
      ['a text', [['SET', FENCE, '5']], /WRONGTYPE/],
      ['no incarnation', [['HSET', FENCE, 'token', '5', 'issuer', 'i']], /is not there/],
      [
        'a token of other letters',
        [['HSET', FENCE, 'token', '5e3', 'issuer', 'i', 'incarnation', A]],
        /its token is 5e3/,
      ],
      ['leading zeros', [['HSET', FENCE, 'token', '05', 'issuer', 'i', 'incarnation', A]], /its token is 05/],
      [
        'a token that none is as great as',
        [['HSET', FENCE, 'token', String(2n ** 63n), 'issuer', 'fencepost:prod', 'incarnation', A]],
        /its token is 9223372036854775808/,
      ],
      ['20 digits', [['HSET', FENCE, 'token', '1'.repeat(20), 'issuer', 'i', 'incarnation', A]], /its token is 1{20}/],
      [
        'a time to live',
        [
          ['HSET', FENCE, 'token', '5', 'issuer', 'fencepost:prod', 'incarnation', A],
          ['EXPIRE', FENCE, '100000'],
        ],
        /it has a time to live/,
      ],
    ])('refuses a stored fence with %s, until it is reset', async (_, commands, message) => {
      for (const [name = '', ...args] of commands) await redis.send(name, ...args);
      await expect(fence.run(lease(6), [set('x')])).rejects.toThrow(message);
      await expect(fence.open(lease(6))).rejects.toThrow(`the fence of ${D}, in ${FENCE}, is damaged`);
      // Nor is it shown as if it were one, or mended by the way.
      await expect(fence.fence(D)).rejects.toThrow(message);
      await expect(fence.allowIssuer(D, 'next')).rejects.toThrow(message);
      expect(await stored()).toBeNull();
      await fence.reset(lease(6));
      expect((await fence.run(lease(6), [set('x')])).status).toBe('applied');
      expect(await fence.run(lease(5), [])).toEqual({ status: 'stale', fence: 6n });
    });

    it('gives a domain to another cluster, where there is a fence', async () => {
      expect(await fence.allowIssuer(D, 'next')).toBe(false);
      await fence.run(lease(5), []);
      expect(await fence.allowIssuer(D, 'next')).toBe(true);
      expect(await fence.run(lease(6), [])).toMatchObject({ status: 'rejected', reason: 'issuer' });
      expect((await fence.run(lease(6, { cluster: 'next', incarnation: B }), [])).status).toBe('applied');
    });

    it('throws when the answer is lost, and carries the operation out once', async () => {
      const proxy = await TcpProxy.start(server.port);
      const lossy = await driver.connect(proxy.port);
      try {
        const through = redisFence(lossy.client);
        await through.run(lease(5), []);
        proxy.block('toClient');
        const lost = expect(through.run(lease(5), [['INCR', KEY]])).rejects.toThrow(/retries|closed|reset/i);
        await until('the increment', async () => (await stored()) === '1');
        proxy.reset();
        proxy.heal();
        await lost;
        // Whatever the driver still has to send comes before this.
        await until('a new connection', () =>
          lossy.send('SET', 'marker', '1').then(
            () => true,
            () => false,
          ),
        );
        expect(await stored()).toBe('1');
      } finally {
        await lossy[Symbol.asyncDispose]();
        await proxy.close();
      }
    });

    it('refuses a connection that writes a prefix before keys', async () => {
      await using prefixed = await driver.connect(server.port, 'app:');
      const through = redisFence(prefixed.client);
      await expect(through.run(lease(5), [set('x')])).rejects.toThrow(
        /writes app:fencepost:fence:.*without a keyPrefix/,
      );
      // An operator would look at, and reset, what no run ever compares with.
      for (const act of [through.fence(D), through.allowIssuer(D, 'next'), through.reset(lease(5))])
        await expect(act).rejects.toThrow(/without a keyPrefix/);
      expect(await redis.send('DBSIZE')).toBe(0);
    });
  });

describe('redisFence of a client', () => {
  it('refuses what is none', () => {
    expect(() => redisFence({} as RedisClient)).toThrow(/not a client of Redis/);
  });

  it.skipIf(REDIS_MISSING !== undefined)('refuses one of ioredis that would send a lost operation again', () => {
    expect(() => redisFence(newIoredis(1, { maxRetriesPerRequest: 20 }))).toThrow(
      'maxRetriesPerRequest of this client is 20: it would send an operation again whose answer was lost, which may carry ' +
        'it out twice. It has to be 0: client.duplicate({ maxRetriesPerRequest: 0 })',
    );
  });

  it.skipIf(REDIS_MISSING !== undefined)(
    '… because it does: an increment whose answer was lost counts twice',
    async () => {
      await using server = await RedisServer.start();
      const proxy = await TcpProxy.start(server.port);
      const client = newIoredis(proxy.port, { maxRetriesPerRequest: 20 });
      const other = newIoredis(server.port);
      try {
        await client.connect();
        proxy.block('toClient');
        const counted = client.incr('n');
        await until('the increment', async () => (await other.get('n')) === '1');
        proxy.reset();
        proxy.heal();
        expect(await counted).toBe(2);
      } finally {
        client.disconnect();
        other.disconnect();
        await proxy.close();
      }
    },
  );
});
