/** Each finding of `fencepost fence doctor`: absent from a server that is as it should be, there when the fault is made. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { postgres } from '../../../src/cli/fence/postgres.js';
import { FencedDatabase } from '../../guard/postgres-database.js';
import { newPool, POSTGRES } from '../../servers/postgres.js';
import { addressOf, doctor } from './support.js';

const { version: VERSION } = postgres.migration();
const PROTECT = "select fencing.protect('stock', domain => 'orders/eu', mode => 'enforce')";
const OBSERVE = "select fencing.protect('stock', domain => 'orders/eu', mode => 'observe')";
const TIMEOUT = "alter role app set idle_in_transaction_session_timeout = '10s'";
const SLOT = "select pg_create_physical_replication_slot('standby')";
const NO_SLOT = "select pg_drop_replication_slot('standby')";
const RELOAD = 'select pg_reload_conf()';
/** What a session does in vain as long as no standby answers. */
const NOT_WAITING = 'set synchronous_commit = local';

/** What is made, how it is mended, and what is found as long as it lasts: `code subject`. */
const FAULTS: readonly (readonly [make: string[], mend: string[], found: string[]])[] = [
  [
    ['alter table stock disable trigger fencing_writes'],
    ['alter table stock enable always trigger fencing_writes'],
    ['trigger-disabled public.stock'],
  ],
  [['alter table stock enable replica trigger fencing_truncate'], [PROTECT], ['trigger-disabled public.stock']],
  [['alter table stock enable trigger fencing_writes'], [PROTECT], ['trigger-not-always public.stock']],
  [['drop trigger fencing_writes on stock'], [PROTECT], ['trigger-missing public.stock']],
  [['drop trigger fencing_truncate on stock'], [PROTECT], ['truncate-unprotected public.stock']],
  [
    [
      'create table parts (domain text, id int) partition by list (id)',
      "select fencing.protect('parts', domain_column => 'domain', mode => 'enforce')",
      'create table parts_2 partition of parts for values in (2)',
    ],
    ["select fencing.protect('parts', domain_column => 'domain', mode => 'enforce')"],
    ['truncate-unprotected public.parts_2'],
  ],
  [
    ['create table heir () inherits (stock)'],
    ["select fencing.protect('heir', domain => 'orders/eu', mode => 'enforce')"],
    ['trigger-missing public.heir', 'truncate-unprotected public.heir'],
  ],
  [
    [OBSERVE, 'update stock set qty = 1', 'update stock set qty = 2'],
    ['truncate fencing.observation'],
    ['observed public.stock'],
  ],
  [
    [OBSERVE, 'update stock set qty = 1', "select fencing.unprotect('stock')"],
    ['truncate fencing.observation'],
    ['observed public.stock', 'trigger-missing public.stock'],
  ],
  [
    ["create subscription s connection 'dbname=nowhere' publication p with (connect = false)"],
    ['alter subscription s set (slot_name = none)', 'drop subscription s'],
    ['subscription s'],
  ],
  [['create role boss login superuser'], ['drop role boss'], ['role-superuser boss']],
  [['create role bosses superuser', 'grant bosses to app'], ['drop role bosses'], ['role-superuser app']],
  [['alter table stock owner to app'], ['alter table stock owner to postgres'], ['role-owner app']],
  [
    ['create role keepers', 'grant keepers to app', 'alter table stock owner to keepers'],
    ['alter table stock owner to postgres', 'drop role keepers'],
    ['role-owner app'],
  ],
  [['grant delete on fencing.fence to app'], ['revoke delete on fencing.fence from app'], ['role-writes-fences app']],
  [['grant pg_write_all_data to app'], ['revoke pg_write_all_data from app'], ['role-writes-fences app']],
  [
    ['grant set on parameter session_replication_role to app', 'alter table stock enable trigger fencing_writes'],
    ['revoke set on parameter session_replication_role from app', PROTECT],
    ['role-replica app', 'trigger-not-always public.stock'],
  ],
  [['alter system set fsync = off', RELOAD], ['alter system reset fsync', RELOAD], ['not-durable fsync']],
  [
    ['alter system set full_page_writes = off', RELOAD],
    ['alter system reset full_page_writes', RELOAD],
    ['not-durable full_page_writes'],
  ],
  [[SLOT], [NO_SLOT], ['asynchronous-replication synchronous_standby_names']],
  [
    [SLOT],
    ["alter system set synchronous_standby_names = '*'", RELOAD],
    ['asynchronous-replication synchronous_standby_names'],
  ],
  [
    ['alter role app set synchronous_commit = off'],
    ['alter role app reset synchronous_commit'],
    ['asynchronous-commit role app'],
  ],
  [
    ['alter database postgres set synchronous_commit = false'],
    ['alter database postgres reset synchronous_commit'],
    ['asynchronous-commit database postgres'],
  ],
  [
    ['alter system set synchronous_commit = off', RELOAD],
    ['alter system reset synchronous_commit', RELOAD],
    ['asynchronous-commit server'],
  ],
  [
    ["alter system set synchronous_standby_names = '*'", RELOAD, SLOT, 'alter role app set synchronous_commit = local'],
    ['alter role app reset synchronous_commit'],
    ['asynchronous-commit role app'],
  ],
  [['alter role app reset idle_in_transaction_session_timeout'], [TIMEOUT], ['no-timeout app']],
  [
    ["alter role app in database postgres set idle_in_transaction_session_timeout = '0s'"],
    ['alter role app in database postgres reset idle_in_transaction_session_timeout'],
    ['no-timeout app'],
  ],
  [
    ['alter role app reset idle_in_transaction_session_timeout'],
    ["alter system set idle_in_transaction_session_timeout = '1min'", RELOAD],
    ['no-timeout app'],
  ],
  [
    ['update fencing.settings set version = 0'],
    [`update fencing.settings set version = ${VERSION}`],
    ['version-behind fencing'],
  ],
  [
    ['update fencing.settings set version = 99'],
    [`update fencing.settings set version = ${VERSION}`],
    ['version-ahead fencing'],
  ],
  [
    ["insert into fencing.fence (domain, token) values ('orders/eu', 4611686018427387904)"],
    ["select fencing.reset('orders/eu', 5, 'mended')"],
    ['fence-beyond-floor orders/eu'],
  ],
];

describe.each(POSTGRES)('fence doctor on $name', (kind) => {
  describe.skipIf(kind.bin === undefined)('each fault', () => {
    let db: FencedDatabase;
    let at: string;
    const all = async (statements: readonly string[]): Promise<void> => {
      for (const sql of statements) {
        const before = sql === RELOAD ? await loadedAt() : undefined;
        await db.pool.query(sql);
        // A connection begins with what the server has read: until then it would not see the change.
        while (before !== undefined && (await loadedAt()) === before) await sleep(10);
      }
    };
    /** When the server that a new connection meets has read its configuration. */
    const loadedAt = async (): Promise<string | undefined> => {
      const pool = newPool(db.server.connection);
      const { rows } = await pool.query<{ at: string }>('select pg_conf_load_time()::text as at');
      await pool.end();
      return rows[0]?.at;
    };

    beforeAll(async () => {
      db = await FencedDatabase.start(kind, []);
      at = addressOf(db.server);
      await all(['create role app login', 'grant usage on schema fencing to app']);
      await db.pool.query('grant execute on function fencing.advance, fencing.enter to app');
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());

    beforeEach(async () => {
      await db.pool.query(NOT_WAITING);
      await all(['alter system reset all', RELOAD, TIMEOUT]);
      await db.pool.query('select pg_drop_replication_slot(slot_name) from pg_replication_slots');
      await db.clear();
      await db.pool.query(PROTECT);
    });

    it('a server that is as it should be has none: exit code 0, and what no set-up avoids is a note', async () => {
      const { code, faults, notes } = await doctor(at);
      expect({ code, faults, notes }).toEqual({ code: 0, faults: [], notes: ['role-superuser postgres'] });
    });

    it.each(FAULTS)('%j', async (make, mend, found) => {
      await all(make);
      const with_ = await doctor(at);
      expect(with_).toMatchObject({ code: 1, faults: found });
      await all(mend);
      // Nothing but what was made and is mended was found.
      expect(await doctor(at)).toMatchObject({ code: 0, faults: [] });
    });

    it('a standby that streams and that commits do not wait for; one that they wait for is as it should be', async () => {
      await using standby = await db.server.standby();
      const streams = "select count(*)::int from pg_stat_replication where state = 'streaming'";
      while ((await db.one(streams)) !== 1) await sleep(10);
      expect(await doctor(at)).toMatchObject({
        code: 1,
        faults: ['asynchronous-replication synchronous_standby_names'],
      });
      expect((await doctor(addressOf(standby))).faults).toContain('standby server');
      await all(["alter system set synchronous_standby_names = 'standby'", RELOAD]);
      while ((await db.one('select sync_state from pg_stat_replication')) !== 'sync') await sleep(10);
      expect(await doctor(at)).toMatchObject({ code: 0, faults: [] });
      // With the standby the commits of this session would stand still.
      await all(['alter system reset synchronous_standby_names', RELOAD]);
    });

    it('a database without the schema says so, and nothing else', async () => {
      await db.pool.query('create database bare');
      expect(await doctor(at.replace(/postgres$/, 'bare'))).toMatchObject({
        code: 1,
        faults: ['not-migrated fencing'],
        report: { fences: null, floors: [] },
      });
    });

    it('a role that may choose not to fire triggers is a note as long as all fire always', async () => {
      await db.pool.query('grant set on parameter session_replication_role to app');
      const { code, notes } = await doctor(at);
      await db.pool.query('revoke set on parameter session_replication_role from app');
      expect({ code, notes }).toEqual({ code: 0, notes: ['role-replica app', 'role-superuser postgres'] });
    });

    it('says what observe counted, by whom and how to go on', async () => {
      await all([OBSERVE, 'update stock set qty = 1', 'update stock set qty = 2']);
      const { report } = await doctor(at);
      const seen = report.findings.find(({ code }) => code === 'observed');
      expect(seen?.message).toMatch(/refused 2 × UPDATE by postgres with FT002, domain orders\/eu, last at 20/);
    });

    it('the whole transaction may be limited instead, where the server can', async () => {
      await db.pool.query('alter role app reset idle_in_transaction_session_timeout');
      const can = await db.one("select current_setting('server_version_num')::int >= 170000");
      if (can !== true) return;
      expect(await doctor(at)).toMatchObject({ code: 1, faults: ['no-timeout app'] });
      await db.pool.query("alter role app set transaction_timeout = '30s'");
      const limited = await doctor(at);
      await db.pool.query('alter role app reset transaction_timeout');
      expect(limited).toMatchObject({ code: 0, faults: [] });
    });
  });
});
