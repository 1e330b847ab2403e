/** `fencepost fence` on Redis servers that the guard writes to, through either driver. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fenceKey } from '../../../src/guard/redis-script.js';
import { redisFence } from '../../../src/guard/redis.js';
import type { RedisFence } from '../../../src/guard/redis.js';
import { until } from '../../process/cluster.js';
import { REDIS_DRIVERS, REDIS_MISSING, RedisServer } from '../../servers/redis.js';
import type { RedisConnection } from '../../servers/redis.js';
import { HEADER } from '../kit.js';
import { doctor as doctorIn, fence as fenceIn, FOLDER } from './support.js';

const TOKEN = 1_796_000_000_000_041n;
const DATE = '2026-11-30T00:53:20.000Z';
const lease = (token: bigint, domain = 'orders/eu', incarnation = 'f00') => ({
  domain,
  token,
  cluster: 'prod',
  incarnation,
});

describe('without a Redis server', () => {
  it('migrate --print has nothing to apply, and connects to nothing', async () => {
    const people = await fenceIn('migrate --print --at redis://127.0.0.1:1');
    expect(people).toMatchObject({
      code: 0,
      out: '',
      err: 'fence migrate: nothing to apply: the first lease makes its fence',
    });
    const json = await fenceIn('migrate --print --json --at redis://127.0.0.1:1');
    expect(JSON.parse(json.out)).toEqual({ version: null, sql: '' });
  });

  it('names both packages when neither is there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fencepost-no-driver-'));
    const { code, err } = await fenceIn('show --at redis://127.0.0.1:1', undefined, folder);
    await rm(folder, { recursive: true });
    expect(code).toBe(3);
    expect(err).toContain(`NO_DRIVER: fence: the package ioredis or redis is not installed in ${folder}:`);
  });
});

if (REDIS_MISSING !== undefined) describe.skip(`fence on Redis (${REDIS_MISSING})`, () => undefined);
else
  describe.each(REDIS_DRIVERS)('fence on Redis through $name', (driver) => {
    let server: RedisServer;
    let redis: RedisConnection;
    let guard: RedisFence;
    let at: string;
    /** A project that has this driver only. */
    let folder: string;
    const fence = (line: string) => fenceIn(line, undefined, folder);
    const doctor = (address = at) => doctorIn(address, '', undefined, folder);
    const open = async (token: bigint, domain?: string): Promise<void> => {
      expect((await guard.open(lease(token, domain))).status).toBe('applied');
    };

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'fencepost-driver-'));
      mkdirSync(join(folder, 'node_modules'));
      const name = driver.name === 'ioredis' ? 'ioredis' : 'redis';
      symlinkSync(join(FOLDER, 'node_modules', name), join(folder, 'node_modules', name));
      server = await RedisServer.start();
      redis = await driver.connect(server.port);
      guard = redisFence(redis.client);
      at = `redis://127.0.0.1:${server.port}`;
    });
    afterAll(async () => {
      await redis[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    });
    beforeEach(() => redis.send('FLUSHALL'));

    it('migrate says that there is nothing to apply', async () => {
      const { code, out } = await fence(`migrate --at ${at}`);
      expect(code).toBe(0);
      expect(out).toMatch(
        /^resource {2}Redis \d+\.\d+\.\d+, redis:\/\/127\.0\.0\.1:\d+\nmigrated {2}nothing to apply: the first lease makes its fence$/,
      );
      expect(JSON.parse((await fence(`migrate --json --at ${at}`)).out)).toMatchObject({ before: null, after: null });
      expect(await redis.send('DBSIZE')).toBe(0);
    });

    it('show lists fences by domain, with all bits, date, issuer and incarnation; other keys are none', async () => {
      expect(await fence(`show --at ${at}`)).toMatchObject({ code: 0, err: 'fence show: there is no fence yet' });
      await open(TOKEN);
      await open(2n ** 63n - 1n, 'gpu#0');
      await redis.send('SET', '{orders/eu}:stock', '1');
      const { out } = await fence(`show --json --at ${at}`);
      const more = { issuer: 'fencepost:prod', incarnation: 'f00', raisedAt: null };
      expect(JSON.parse(out)).toMatchObject({
        fences: [
          { domain: 'gpu#0', token: '9223372036854775807', date: null, ...more },
          { domain: 'orders/eu', token: String(TOKEN), date: DATE, ...more },
        ],
        observed: [],
      });
      expect(JSON.parse((await fence(`show gpu#0 --json --at ${at}`)).out)).toMatchObject({
        fences: [{ domain: 'gpu#0' }],
      });
    });

    it('show lists more fences than it reads at once', async () => {
      const lua = `for i = 1, 2500 do
        redis.call('HSET', 'fencepost:fence:{d/' .. i .. '}', 'token', i, 'issuer', 'x', 'incarnation', 'y') end`;
      await redis.send('EVAL', lua, '0');
      const { fences } = JSON.parse((await fence(`show --json --at ${at}`)).out) as {
        readonly fences: readonly { readonly domain: string }[];
      };
      const expected = Array.from({ length: 2_500 }, (_, index) => `d/${index + 1}`).sort();
      expect(fences.map(({ domain }) => domain)).toEqual(expected);
    });

    it('reset: the note is kept, issuer and history stay unless said, and the holder of that token writes again', async () => {
      await open(2n ** 62n + 1n);
      expect((await guard.open(lease(TOKEN))).status).toBe('stale');
      const done = await fence(`reset orders/eu ${TOKEN} --note poisoned --at ${at}`);
      expect(done.code).toBe(0);
      expect(done.out).toContain(`before       4611686018427387905 (no date)\nnow          ${TOKEN} (${DATE})`);
      expect(await guard.fence('orders/eu')).toEqual({ token: TOKEN, issuer: 'fencepost:prod', incarnation: 'f00' });
      expect((await guard.open(lease(TOKEN - 1n))).status).toBe('stale');
      expect((await guard.open(lease(TOKEN))).status).toBe('applied');
      await fence(`reset orders/eu ${TOKEN} --note restored --incarnation f01 --at ${at}`);
      expect((await guard.open(lease(TOKEN, 'orders/eu', 'f01'))).status).toBe('applied');
      const history = (await redis.send('LRANGE', 'fencepost:history:{orders/eu}', '0', '-1')) as string[];
      expect(history.map((text): unknown => JSON.parse(text))).toEqual([
        {
          at: expect.stringMatching(/^1\d{15}$/) as string,
          token_before: '4611686018427387905',
          token_after: String(TOKEN),
          note: 'poisoned',
        },
        expect.objectContaining({ token_before: String(TOKEN), note: 'restored' }),
      ]);
      expect(JSON.parse((await fence(`show --json --at ${at}`)).out)).toMatchObject({ fences: [{}] });
    });

    it('a domain without a fence: exit code 1, and reset makes none', async () => {
      for (const line of ['show orders/mars', 'reset orders/mars 5 --note x']) {
        const { code, err } = await fence(`${line} --at ${at}`);
        expect(code).toBe(1);
        expect(err).toContain('orders/mars has no fence');
      }
      expect(await redis.send('DBSIZE')).toBe(0);
    });

    it('takes the database that the address names, and no other', async () => {
      await open(TOKEN);
      expect(JSON.parse((await fence(`show --json --at ${at}/0`)).out)).toMatchObject({ fences: [{}] });
      expect(JSON.parse((await fence(`show --json --at ${at}/3`)).out)).toMatchObject({ fences: [] });
      const { code, err } = await fence(`show --at ${at}/99`);
      expect(code).toBe(3);
      expect(err).toContain(`REFUSED: fence: ${at}/99 refused: ERR DB index is out of range`);
    });

    it('doctor: nothing at a server that keeps everything; above the revision of the cluster', async () => {
      await open(BigInt(HEADER.revision));
      const compared = () => doctorIn(at, '--endpoints a:1', () => ({ type: 'list', domains: [], next: '' }), folder);
      const good = await compared();
      expect(good).toMatchObject({ code: 0, faults: [], notes: [], report: { fences: 1 } });
      expect(good.report.floors).toMatchObject([{ issuer: 'fencepost:prod', floor: String(HEADER.revision) }]);
      const above = { ...lease(BigInt(HEADER.revision) + 1n, 'b'), cluster: HEADER.cluster };
      expect((await guard.open(above)).status).toBe('applied');
      expect(await compared()).toMatchObject({ code: 1, faults: ['fence-above-cluster b'] });
      await fence(`reset b ${HEADER.revision} --note undone --at ${at}`);
      expect(await compared()).toMatchObject({ code: 0, faults: [] });
    });

    it.each([
      ['maxmemory-policy', 'allkeys-lru', 'noeviction', 'evicts-fences'],
      ['appendonly', 'no', 'yes', 'not-durable'],
      ['appendfsync', 'everysec', 'always', 'not-durable'],
      ['no-appendfsync-on-rewrite', 'yes', 'no', 'not-durable'],
    ])('doctor: %s %s, and not with %s', async (setting, bad, good, code) => {
      await redis.send('CONFIG', 'SET', setting, bad);
      const found = await doctor();
      await redis.send('CONFIG', 'SET', setting, good);
      expect(found).toMatchObject({ code: 1, faults: [`${code} ${setting}`] });
      expect(found.report.findings[0]?.message).toMatch(new RegExp(`^is ${bad}: .*Set it to ${good}$`));
      expect(await doctor()).toMatchObject({ code: 0, faults: [] });
    });

    it('doctor: a replica, at both ends, and not when it has been let go', async () => {
      await using replica = await RedisServer.start(['--replicaof', `127.0.0.1 ${server.port}`]);
      await using lower = await driver.connect(replica.port);
      const below = `redis://127.0.0.1:${replica.port}`;
      const online = async () => String(await redis.send('INFO', 'replication')).includes('state=online');
      await open(TOKEN);
      await until('the primary to know it', online);
      await until(
        'the replica to have the fence',
        async () => (await lower.send('EXISTS', fenceKey('orders/eu'))) === 1,
      );
      expect(await doctor()).toMatchObject({ code: 1, faults: ['asynchronous-replication this server'] });
      expect(await doctor(below)).toMatchObject({ code: 1, faults: ['standby this server'], report: { fences: 1 } });
      const { code, err } = await fence(`reset orders/eu 5 --note x --at ${below}`);
      expect(code).toBe(3);
      expect(err).toMatch(/REFUSED.*READONLY.*; this is a replica: connect to the primary/);
      await lower.send('REPLICAOF', 'NO', 'ONE');
      await until('the primary to forget it', async () => !(await online()));
      expect(await doctor()).toMatchObject({ code: 0, faults: [] });
      expect(await doctor(below)).toMatchObject({ code: 0, faults: [] });
    });

    it.each([
      ['a time to live', (key: string) => [['EXPIRE', key, '1000']]],
      ['no issuer', (key: string) => [['HDEL', key, 'issuer']]],
      ['a token that is none', (key: string) => [['HSET', key, 'token', '1e15']]],
      ['another type', (key: string) => [['SET', key, 'x']]],
    ])('doctor: a fence with %s; it is neither shown nor set', async (_, damage) => {
      await open(TOKEN);
      for (const [command = '', ...args] of damage(fenceKey('orders/eu'))) await redis.send(command, ...args);
      expect(await doctor()).toMatchObject({ code: 1, faults: ['damaged orders/eu'], report: { fences: null } });
      for (const line of ['show', 'show orders/eu', 'reset orders/eu 5 --note x']) {
        const { code, err } = await fence(`${line} --at ${at}`);
        expect(code).toBe(3);
        expect(err).toContain('REFUSED: fence: the fence of orders/eu is damaged, in fencepost:fence:{orders/eu}: ');
      }
      expect(await redis.send('EXISTS', 'fencepost:history:{orders/eu}')).toBe(0);
      await guard.reset(lease(TOKEN));
      expect(await doctor()).toMatchObject({ code: 0, faults: [], report: { fences: 1 } });
    });

    it('doctor: settings that are hidden, for this user, are not taken for good ones', async () => {
      await open(2n ** 62n);
      await redis.send('ACL', 'SETUSER', 'ops', 'on', '>secret', '~*', '+@all', '-config');
      const found = await doctor(at.replace('//', '//ops:secret@'));
      expect(found).toMatchObject({ code: 1, faults: ['fence-beyond-floor orders/eu', 'settings-hidden CONFIG'] });
      expect(JSON.stringify(found.report)).not.toContain('secret@');
      await redis.send('ACL', 'SETUSER', 'ops', '+config');
      expect((await doctor(at.replace('//', '//ops:secret@'))).faults).toEqual(['fence-beyond-floor orders/eu']);
      await redis.send('ACL', 'DELUSER', 'ops');
    });

    it('doctor: a node of a Redis Cluster, which says where other fences are', async () => {
      await using node = await RedisServer.start(['--cluster-enabled', 'yes']);
      await using connection = await driver.connect(node.port);
      await connection.send('CLUSTER', 'ADDSLOTSRANGE', '0', '100');
      const address = `redis://127.0.0.1:${node.port}`;
      expect(await doctor(address)).toMatchObject({ code: 1, faults: ['cluster-node this server'] });
      expect((await fence(`show orders/eu --at ${address}`)).err).toMatch(/refused: CLUSTERDOWN/);
    });

    it('says what is wrong with name and address, without the password', async () => {
      for (const [address, said] of [
        [at.replace('//', '//nobody:secret@'), /^REFUSED: fence: redis:\/\/127\.0\.0\.1:\d+ refused: WRONGPASS/],
        [
          'redis://ops:secret@127.0.0.1:1/0',
          /^NO_CONNECTION: fence: redis:\/\/127\.0\.0\.1:1\/0 cannot be reached: .*ECONNREFUSED/,
        ],
      ] as const) {
        const { code, err } = await fence(`show --at ${address}`);
        expect(code).toBe(3);
        expect(err).toMatch(said);
        expect(err).not.toContain('secret');
      }
    });

    it('waits no longer than --timeout-ms, and says that a reset may have been done', async () => {
      await open(TOKEN);
      await redis.send('CLIENT', 'PAUSE', '60000', 'WRITE');
      const { code, out } = await fence(`reset orders/eu 5 --note x --timeout-ms 300 --json --at ${at}`);
      await redis.send('CLIENT', 'UNPAUSE');
      expect(code).toBe(3);
      expect(JSON.parse(out)).toMatchObject({ error: { code: 'NO_CONNECTION', outcome: 'unknown' } });
      expect(out).toContain('no answer within 300 ms; look whether it was done');
    });
  });
