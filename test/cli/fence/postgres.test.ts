/** `fencepost fence migrate | show | reset` on real servers, and what it says when something is missing. */
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { postgres } from '../../../src/cli/fence/postgres.js';
import { FencedDatabase } from '../../guard/postgres-database.js';
import { POSTGRES } from '../../servers/postgres.js';
import { run } from '../kit.js';
import { addressOf, doctor, fence } from './support.js';

const { version: VERSION } = postgres.migration();
const TOKEN = '1796000000000041';
const DATE = '2026-11-30T00:53:20.000Z';

describe('without a server', () => {
  const at = 'postgres://ops:secret@127.0.0.1:1/orders';

  it('migrate --print gives the files of the package, that of the fences first, and connects to nothing', async () => {
    const { code, out } = await fence(`migrate --print --at ${at}`);
    expect(code).toBe(0);
    const first = readFileSync('src/guard/postgres/fencing.sql', 'utf8').trimEnd();
    expect(out.slice(0, first.length)).toBe(first);
    for (const name of readdirSync('src/guard/postgres'))
      expect(out).toContain(readFileSync(`src/guard/postgres/${name}`, 'utf8').trimEnd());
    const json: unknown = JSON.parse((await fence('migrate --print --json --at postgres:')).out);
    expect(json).toEqual({ version: VERSION, sql: expect.stringContaining(out) as string });
  });

  it('says where nobody answers, without the password', async () => {
    const { code, out, err } = await fence(`show --at ${at}`);
    expect({ code, out }).toEqual({ code: 3, out: '' });
    expect(err).toMatch(/^NO_CONNECTION: fence: postgres:\/\/127\.0\.0\.1:1\/orders cannot be reached: .*ECONNREFUSED/);
    expect(err).not.toContain('secret');
  });

  it('is a document with --json', async () => {
    const { code, out, err } = await fence(`doctor --json --at ${at}`);
    expect({ code, err }).toEqual({ code: 3, err: '' });
    expect(JSON.parse(out)).toMatchObject({ error: { code: 'NO_CONNECTION', outcome: 'not-done' } });
  });

  it('names the package that is to be installed, and where', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fencepost-no-driver-'));
    const { code, err } = await run(`fence show --at ${at}`, undefined, { folder });
    await rm(folder, { recursive: true });
    expect(code).toBe(3);
    expect(err).toContain(`NO_DRIVER: fence: the package pg is not installed in ${folder}:`);
    expect(err).toContain('npm install pg');
  });
});

describe.each(POSTGRES)('on $name', (kind) => {
  describe.skipIf(kind.bin === undefined)('fence', () => {
    let db: FencedDatabase;
    let at: string;

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
      at = addressOf(db.server);
      await db.pool.query('create role app login');
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(() => db.clear());

    it('migrate makes the schema, and again brings an older one up to date, from which to which version', async () => {
      await db.pool.query('create database bare');
      const bare = at.replace(/postgres$/, 'bare');
      const first = await fence(`migrate --at ${bare}`);
      expect(first.code).toBe(0);
      expect(first.out).toMatch(
        /^resource {8}PostgreSQL 1\d\.\d+, postgres:\/\/127\.0\.0\.1:\d+\/bare\nversion before {2}none\nversion now {5}\d$/,
      );
      const pool = db.server.pool({ database: 'bare' });
      await pool.query("select fencing.advance('orders/eu', 5)");
      expect(JSON.parse((await fence(`migrate --json --at ${bare}`)).out)).toMatchObject({
        before: VERSION,
        after: VERSION,
      });
      await pool.query('update fencing.settings set version = 0; drop function fencing.highest');
      expect(JSON.parse((await fence(`migrate --json --at ${bare}`)).out)).toMatchObject({ before: 0, after: VERSION });
      const { rows } = await pool.query(
        "select fencing.highest('orders/eu')::text as token, version from fencing.settings",
      );
      expect(rows).toEqual([{ token: '5', version: VERSION }]);
      await pool.query('update fencing.settings set version = 9');
      const newer = await fence(`migrate --at ${bare}`);
      expect(newer).toMatchObject({ code: 3, out: '' });
      expect(newer.err).toContain('this database has a newer version of fencing');
      expect((await pool.query('select version from fencing.settings')).rows).toEqual([{ version: 9 }]);
    });

    it('show lists fences with date, issuer, incarnation and time, and what observe counted', async () => {
      expect(await fence(`show --at ${at}`)).toMatchObject({
        code: 0,
        out: '',
        err: 'fence show: there is no fence yet',
      });
      await db.tryAdvance(BigInt(TOKEN), 'fencepost:prod', 'f00');
      await db.advance(2n ** 63n - 1n, 'b');
      await db.pool.query("select fencing.protect('stock', domain => 'orders/eu', mode => 'observe')");
      await db.pool.query('update stock set qty = 1');
      const { code, out } = await fence(`show --at ${at}`);
      expect(code).toBe(0);
      const [head, b, eu, empty, observed, row] = out.split('\n').map((line) => line.split(/ {2,}/));
      expect(head).toEqual(['DOMAIN', 'TOKEN', 'GRANTED AT', 'ISSUER', 'INCARNATION', 'RAISED AT']);
      const time = expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:]+\.\d{3}Z$/) as string;
      expect(b).toEqual(['b', '9223372036854775807', '-', '-', '-', time]);
      expect(eu?.slice(1).join(' ').trim().split(' ')).toEqual([TOKEN, DATE, 'fencepost:prod', 'f00', time]);
      expect(empty).toEqual(['']);
      expect(observed?.slice(0, 4)).toEqual(['OBSERVED AT', 'OPERATION', 'CODE', 'DOMAIN']);
      expect(row?.slice(0, 5)).toEqual(['public.stock', 'UPDATE', 'FT002', 'orders/eu', 'postgres']);
      const one = await fence(`show orders/eu --json --at ${at}`);
      expect(JSON.parse(one.out)).toMatchObject({
        fences: [
          {
            domain: 'orders/eu',
            token: TOKEN,
            date: DATE,
            issuer: 'fencepost:prod',
            incarnation: 'f00',
            raisedAt: time,
          },
        ],
        observed: [{ relation: 'public.stock', operation: 'UPDATE', code: 'FT002', count: '1' }],
      });
      const other = JSON.parse((await fence(`show b --json --at ${at}`)).out) as { readonly observed: unknown };
      expect(other.observed).toEqual([]);
    });

    it('a database with fences and nothing that protects tables is shown and examined', async () => {
      await db.pool.query('create database unprotected');
      const bare = at.replace(/postgres$/, 'unprotected');
      await fence(`migrate --at ${bare}`);
      const pool = db.server.pool({ database: 'unprotected' });
      await pool.query(`select fencing.advance('orders/eu', 5); drop table fencing.observation cascade;
        drop view fencing.protected; drop function fencing.check_statement, fencing.check_row`);
      expect(JSON.parse((await fence(`show --json --at ${bare}`)).out)).toMatchObject({
        fences: [{ domain: 'orders/eu' }],
        observed: [],
      });
      // The server of these tests does not sync.
      expect((await doctor(bare)).faults).toEqual(['not-durable fsync']);
    });

    it('show lists more fences than it reads at once, in order', async () => {
      await db.pool.query("insert into fencing.fence select 'd/' || i, i from generate_series(1, 2500) i");
      const { fences } = JSON.parse((await fence(`show --json --at ${at}`)).out) as {
        readonly fences: readonly { readonly domain: string }[];
      };
      const domains = fences.map(({ domain }) => domain);
      expect(domains).toHaveLength(2_500);
      expect(domains).toEqual(Array.from({ length: 2_500 }, (_, at) => `d/${at + 1}`).sort());
    });

    it('a domain that nobody has advanced is no fence: exit code 1, and reset makes none', async () => {
      for (const line of ['show orders/mars', 'reset orders/mars 5 --note x']) {
        const { code, out, err } = await fence(`${line} --at ${at}`);
        expect({ code, out }).toEqual({ code: 1, out: '' });
        expect(err).toContain('orders/mars has no fence: nobody has advanced it here');
      }
      expect(JSON.parse((await fence(`show orders/mars --json --at ${at}`)).out)).toMatchObject({ fences: [] });
      expect(JSON.parse((await fence(`reset orders/mars 5 --note x --json --at ${at}`)).out)).toMatchObject({
        reset: false,
      });
      expect(await db.one('select count(*)::int from fencing.fence')).toBe(0);
    });

    it('reset shows what was and what is, keeps the note, and lets the holder of that token write again', async () => {
      await db.tryAdvance(2n ** 61n, 'fencepost:prod', 'f00');
      expect(await db.tryAdvance(BigInt(TOKEN), 'fencepost:prod', 'f00')).toMatchObject({ status: 'stale' });
      const done = await fence(`reset orders/eu ${TOKEN} --note poisoned --at ${at}`);
      expect(done).toMatchObject({
        code: 0,
        out: `reset        yes
domain       orders/eu
before       2305843009213693952 (no date)
now          ${TOKEN} (${DATE})
issuer       fencepost:prod
incarnation  f00
note         poisoned`,
        err: `whoever holds a token from ${TOKEN} to 2305843009213693952 can write again`,
      });
      const sql = 'select token_before::text, token_after::text, note from fencing.history';
      expect((await db.pool.query(sql)).rows).toEqual([
        { token_before: '2305843009213693952', token_after: TOKEN, note: 'poisoned' },
      ]);
      // The issuer and the history that stood still stand.
      expect(await db.tryAdvance(BigInt(TOKEN), 'fencepost:test', 'f00')).toMatchObject({ status: 'issuer' });
      expect(await db.tryAdvance(BigInt(TOKEN), 'fencepost:prod', 'f01')).toMatchObject({ status: 'incarnation' });
      expect(await db.tryAdvance(BigInt(TOKEN), 'fencepost:prod', 'f00')).toMatchObject({ status: 'applied' });
    });

    it('reset with another incarnation takes that of the lease', async () => {
      await db.tryAdvance(2n ** 61n, 'fencepost:prod', 'f00');
      const { out } = await fence(`reset orders/eu ${TOKEN} --note poisoned --incarnation f01 --json --at ${at}`);
      expect(JSON.parse(out)).toMatchObject({
        reset: true,
        before: { token: '2305843009213693952', incarnation: 'f00' },
        after: { token: TOKEN, date: DATE, incarnation: 'f01', issuer: 'fencepost:prod', raisedAt: null },
      });
      expect(await db.tryAdvance(BigInt(TOKEN), 'fencepost:prod', 'f01')).toMatchObject({ status: 'applied' });
    });

    it('reset waits for whoever is within its fence no longer than --timeout-ms, and then has done nothing', async () => {
      await db.advance(7);
      const client = await db.pool.connect();
      await client.query("begin; select fencing.advance('orders/eu', 7)");
      const { code, err } = await fence(`reset orders/eu 5 --note x --timeout-ms 300 --at ${at}`);
      await client.query('rollback');
      client.release();
      expect(code).toBe(3);
      expect(err).toMatch(/^REFUSED: fence: .*statement timeout; what holds its lock is in pg_stat_activity/);
      expect(await db.one("select fencing.highest('orders/eu')::int")).toBe(7);
    });

    it('a fence that is raised while it is reset is not reset', async () => {
      await db.advance(7);
      const client = await db.pool.connect();
      await client.query("begin; select fencing.advance('orders/eu', 8)");
      const reset = fence(`reset orders/eu 5 --note x --at ${at}`);
      const waiting =
        "select count(*)::int from pg_stat_activity where application_name = 'fencepost fence' and wait_event_type = 'Lock'";
      while ((await db.one(waiting)) !== 1) continue;
      await client.query('commit');
      client.release();
      expect((await reset).err).toContain('the fence of orders/eu was raised at this very moment');
      expect(await db.one("select fencing.highest('orders/eu')::int")).toBe(8);
      expect(await db.one('select count(*)::int from fencing.history')).toBe(0);
    });

    it('says how to migrate a database that has no schema, and whom to be where a right is missing', async () => {
      const bare = at.replace(/postgres$/, 'template1');
      for (const line of ['show', 'show orders/eu', 'reset orders/eu 5 --note x']) {
        const { code, err } = await fence(`${line} --at ${bare}`);
        expect(code).toBe(3);
        expect(err).toContain('/template1: this database has no schema fencing: run fencepost fence migrate');
      }
      const app = at.replace('postgres@', 'app@');
      for (const line of ['show', 'doctor', 'migrate', 'reset orders/eu 5 --note x']) {
        const { code, err } = await fence(`${line} --at ${app}`);
        expect(code).toBe(3);
        expect(err).toMatch(/^REFUSED: fence: .*permission denied.*; connect as the owner of the schema fencing/);
      }
    });

    it('says what is wrong with role and database', async () => {
      expect((await fence(`show --at ${at.replace('postgres@', 'nobody@')}`)).err).toContain(
        'role "nobody" does not exist',
      );
      expect((await fence(`show --at ${at.replace(/postgres$/, 'nowhere')}`)).err).toContain(
        '"nowhere" does not exist',
      );
    });
  });
});
