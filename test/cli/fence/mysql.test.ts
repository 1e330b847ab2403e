/** `fencepost fence migrate | show | reset` on a real MariaDB server. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mysql } from '../../../src/cli/fence/mysql.js';
import { mysqlFence } from '../../../src/guard/mysql.js';
import type { MysqlFence } from '../../../src/guard/mysql.js';
import { D, FencedDatabase, lease, MIGRATIONS } from '../../guard/mysql-database.js';
import { MARIADB } from '../../servers/mariadb.js';
import { doctor, fence } from './support.js';

const { version: VERSION } = mysql.migration();
const TOKEN = 1_796_000_000_000_041n;
const DATE = '2026-11-30T00:53:20.000Z';
const ISSUER = 'fencepost:prod';
const INCARNATION = 'a'.repeat(32);

describe('without a MariaDB server', () => {
  it('migrate --print gives the files of the package, that of the fences first, and connects to nothing', async () => {
    const { code, out } = await fence('migrate --print --at mysql://ops:secret@127.0.0.1:1/orders');
    expect({ code, out }).toEqual({ code: 0, out: MIGRATIONS.join('\n').trimEnd() });
  });

  it('says where nobody answers, without the password', async () => {
    const { code, err } = await fence('show --at mariadb://ops:secret@127.0.0.1:1/orders');
    expect(code).toBe(3);
    expect(err).toMatch(/^NO_CONNECTION: fence: mariadb:\/\/127\.0\.0\.1:1\/orders cannot be reached: .*ECONNREFUSED/);
    expect(err).not.toContain('secret');
    expect((await fence('show --at mysql://ops@[::1]:1/orders')).err).toMatch(/cannot be reached: connect \w+ ::1:1/);
  });
});

describe.each(MARIADB)('on $name', (kind) => {
  describe.skipIf(kind.program === undefined)('fence', () => {
    let db: FencedDatabase;
    let guard: MysqlFence;
    let at: string;
    const open = async (token: bigint, domain = D): Promise<void> => {
      expect((await guard.open(lease(token, { domain }))).status).toBe('applied');
    };

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
      guard = mysqlFence(db.pool);
      at = `mysql://root@127.0.0.1:${db.server.connection.port}/app`;
      await db.pool.query("create user app identified by 'p@:/ss'");
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(() => db.clear());

    it('migrate makes what a guard needs, and brings an older one up to date; a newer one stays as it is', async () => {
      await db.pool.query('create database bare');
      const bare = at.replace(/app$/, 'bare');
      const first = await fence(`migrate --at ${bare}`);
      expect(first.code).toBe(0);
      expect(first.out).toMatch(
        /^resource {8}MariaDB 1\d\.\d+\.\d+, mysql:\/\/127\.0\.0\.1:\d+\/bare\nversion before {2}none\nversion now {5}\d$/,
      );
      const pool = db.server.pool({ database: 'bare' });
      const bareGuard = mysqlFence(pool);
      expect((await bareGuard.open(lease(TOKEN))).status).toBe('applied');
      await pool.query('create table stock (id int primary key)');
      await pool.query("call fencing_protect('stock', 'orders/eu')");
      await expect(pool.query('insert into stock values (1)')).rejects.toThrow(/protected/);
      const written = bareGuard.run(lease(TOKEN), (tx) => tx.query('insert into stock values (1)'));
      expect((await written).status).toBe('applied');
      await pool.query('update fencing_settings set version = 0');
      await pool.query('drop procedure fencing_show');
      expect(JSON.parse((await fence(`migrate --json --at ${bare}`)).out)).toMatchObject({ before: 0, after: VERSION });
      expect((await bareGuard.fence(D))?.token).toBe(TOKEN);
      await pool.query('update fencing_settings set version = 99');
      await pool.query('drop procedure fencing_show');
      const newer = await fence(`migrate --at ${bare}`);
      expect(newer).toMatchObject({ code: 3, out: '' });
      expect(newer.err).toContain('the schema has version 99');
      await expect(bareGuard.fence(D)).rejects.toThrow(/no procedures of fencing/);
    });

    it('the procedures that it makes are those that the client mariadb makes', async () => {
      const made = async (database: string): Promise<unknown> => {
        const sql = `select routine_name, routine_definition, sql_mode, security_type from information_schema.routines
          where routine_schema = ? order by 1`;
        const [rows] = await db.pool.query(sql, [database]);
        expect(rows).not.toHaveLength(0);
        // The client leaves comments out.
        return JSON.parse(
          JSON.stringify(rows)
            .replaceAll(/--(?: .*?)?(?=\\n)/g, '')
            .replaceAll(/(?:\\n|\s)+/g, ' '),
        );
      };
      await db.pool.query('create database same');
      await fence(`migrate --at ${at.replace(/app$/, 'same')}`);
      expect(await made('same')).toEqual(await made('app'));
    });

    it('show lists fences by domain with all bits, date, issuer, incarnation and time', async () => {
      expect(await fence(`show --at ${at}`)).toMatchObject({ code: 0, err: 'fence show: there is no fence yet' });
      await open(TOKEN);
      await db.pool.query("insert into fencing_fence (domain, token) values ('b', 9223372036854775807), ('c', 0)");
      await db.pool.query("update fencing_fence set raised_at = '2026-12-01 10:00:00.123456' where domain = 'b'");
      const { out } = await fence(`show --json --at ${at}`);
      const [zone] = (
        await db.pool.query('select @@time_zone, timestampdiff(second, utc_timestamp(), now()) as ahead')
      )[0] as [{ readonly ahead: number }];
      const raisedAt = new Date(Date.UTC(2026, 11, 1, 10, 0, 0, 123) - zone.ahead * 1_000).toISOString();
      expect(JSON.parse(out)).toEqual({
        resource: expect.stringContaining('MariaDB') as string,
        fences: [
          { domain: 'b', token: '9223372036854775807', date: null, issuer: null, incarnation: null, raisedAt },
          {
            domain: D,
            token: String(TOKEN),
            date: DATE,
            issuer: ISSUER,
            incarnation: INCARNATION,
            raisedAt: expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:]+\.\d{3}Z$/) as string,
          },
        ],
        observed: [],
      });
      expect(JSON.parse((await fence(`show ${D} --json --at ${at}`)).out)).toMatchObject({ fences: [{ domain: D }] });
    });

    it('show lists more fences than it reads at once, in order', async () => {
      await db.pool.query("insert into fencing_fence (domain, token) select concat('d/', seq), seq from seq_1_to_2500");
      const { fences } = JSON.parse((await fence(`show --json --at ${at}`)).out) as {
        readonly fences: readonly { readonly domain: string }[];
      };
      const expected = Array.from({ length: 2_500 }, (_, index) => `d/${index + 1}`).sort();
      expect(fences.map(({ domain }) => domain)).toEqual(expected);
    });

    it('a domain that nobody has advanced is no fence: exit code 1, and reset makes none', async () => {
      for (const line of ['show orders/mars', 'reset orders/mars 5 --note x']) {
        const { code, out, err } = await fence(`${line} --at ${at}`);
        expect({ code, out }).toEqual({ code: 1, out: '' });
        expect(err).toContain('orders/mars has no fence: nobody has advanced it here');
      }
      expect(Number(await db.one('select count(*) from fencing_fence'))).toBe(0);
    });

    it('reset: the note is kept, issuer and history stay unless said, and the holder of that token writes again', async () => {
      await open(2n ** 62n + 1n);
      expect((await guard.open(lease(TOKEN))).status).toBe('stale');
      const done = await fence(`reset ${D} ${TOKEN} --note poison'd --at ${at}`);
      expect(done.code).toBe(0);
      expect(done.out).toContain(`before       4611686018427387905 (no date)\nnow          ${TOKEN} (${DATE})`);
      const sql = 'select cast(token_before as char) as t, note from fencing_history';
      expect((await db.pool.query(sql))[0]).toEqual([{ t: '4611686018427387905', note: "poison'd" }]);
      expect(await guard.fence(D)).toEqual({ token: TOKEN, issuer: ISSUER, incarnation: INCARNATION });
      expect((await guard.open(lease(TOKEN - 1n))).status).toBe('stale');
      expect((await guard.open(lease(TOKEN))).status).toBe('applied');
      await fence(`reset ${D} ${TOKEN} --note restored --incarnation f01 --at ${at}`);
      expect((await guard.open(lease(TOKEN, { incarnation: 'f01' }))).status).toBe('applied');
    });

    it('reset of a fence that is raised while it waits shows what really stood', async () => {
      await open(7n);
      const connection = await db.pool.getConnection();
      await connection.query('start transaction');
      await connection.query(`call fencing_advance('${D}', 8, null, null)`);
      const reset = fence(`reset ${D} 5 --note x --json --at ${at}`);
      while ((await db.waiting()) !== 1) continue;
      await connection.query('commit');
      connection.release();
      expect(JSON.parse((await reset).out)).toMatchObject({ before: { token: '8' }, after: { token: '5' } });
    });

    it('of several resets at once each shows what it found itself', async () => {
      await open(1n);
      const resets = Array.from({ length: 12 }, (_, number) =>
        fence(`reset ${D} ${10 + number} --note x --json --at ${at}`),
      );
      interface Moved {
        readonly before: { readonly token: string };
        readonly after: { readonly token: string };
      }
      const moves = (await Promise.all(resets)).map(({ out }) => JSON.parse(out) as Moved);
      const next = new Map(moves.map(({ before, after }) => [before.token, after.token]));
      const order = ['1'];
      for (let token = next.get('1'); token !== undefined; token = next.get(token)) order.push(token);
      expect(order).toHaveLength(1 + resets.length);
      expect(await guard.fence(D)).toMatchObject({ token: BigInt(order.at(-1) ?? 0) });
    });

    it('reset waits for whoever is within its fence no longer than --timeout-ms, and then has done nothing', async () => {
      await open(7n);
      const connection = await db.pool.getConnection();
      await connection.query('start transaction');
      await connection.query(`call fencing_advance('${D}', 7, null, null)`);
      const { code, out } = await fence(`reset ${D} 5 --note x --timeout-ms 300 --json --at ${at}`);
      await connection.query('rollback');
      connection.release();
      expect(code).toBe(3);
      expect(JSON.parse(out)).toMatchObject({ error: { code: 'REFUSED', outcome: 'not-done' } });
      expect(out).toMatch(/max_statement_time exceeded.*; what holds its lock is in information_schema\.innodb_trx/);
      expect((await guard.fence(D))?.token).toBe(7n);
    });

    it('a reset whose connection is lost may have been done', async () => {
      await open(7n);
      const connection = await db.pool.getConnection();
      await connection.query('start transaction');
      await connection.query(`call fencing_advance('${D}', 7, null, null)`);
      const reset = fence(`reset ${D} 5 --note x --json --at ${at}`);
      while ((await db.waiting()) !== 1) continue;
      const sql =
        "select id from information_schema.processlist where info like 'update fencing%' or info like 'insert into fencing%'";
      await db.pool.query(`kill connection ${String(await db.one(sql))}`);
      await connection.query('rollback');
      connection.release();
      expect(JSON.parse((await reset).out)).toMatchObject({ error: { code: 'REFUSED', outcome: 'unknown' } });
    });

    it('says how to migrate a database that has no fences, and whom to be where a right is missing', async () => {
      await db.pool.query('create database empty');
      const empty = at.replace(/app$/, 'empty');
      for (const line of ['show', 'show orders/eu', 'reset orders/eu 5 --note x']) {
        const { code, err } = await fence(`${line} --at ${empty}`);
        expect(code).toBe(3);
        expect(err).toContain('/empty: this database has no table fencing_settings that this account may see: run');
      }
      expect(await doctor(empty)).toMatchObject({
        code: 1,
        faults: ['not-migrated fencing_settings'],
        report: { fences: null, floors: [] },
      });
      await db.pool.query('grant select on app.* to app');
      const app = at.replace('root@', 'app:p%40%3A%2Fss@');
      expect((await fence(`show --at ${app}`)).code).toBe(0);
      await open(5n);
      for (const line of ['doctor', 'migrate', 'reset orders/eu 5 --note x']) {
        const { code, err } = await fence(`${line} --at ${app}`);
        expect(code).toBe(3);
        expect(err).toMatch(/^REFUSED: fence: .*denied.*; connect as the owner of the procedures of fencing/);
      }
      expect((await fence(`show --at ${at.replace('root@', 'nobody:secret@')}`)).err).toMatch(
        /cannot be reached: Access denied/,
      );
    });
  });
});
