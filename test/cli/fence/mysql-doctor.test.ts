/** Each finding of `fencepost fence doctor` on MariaDB: absent from a server that is as it should be, there when the fault is made. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FencedDatabase, MIGRATIONS } from '../../guard/mysql-database.js';
import { until } from '../../process/cluster.js';
import { MARIADB, MariadbServer } from '../../servers/mariadb.js';
import { doctor, fence } from './support.js';

const PROTECT = "call fencing_protect('stock', 'orders/eu')";
/** What triggers are called: the name of their table is hashed. */
const TRIGGER = 'fencing_908880209a64ea539ae8dc5fdb7e0a91';
/** As the server of these tests should be. */
const SETTINGS = [
  'log-bin=binlog',
  'server-id=1',
  'binlog-format=ROW',
  'sync-binlog=1',
  'innodb-flush-log-at-trx-commit=1',
];

/** What is made, how it is mended, and what is found as long as it lasts: `code subject`. */
const FAULTS: readonly (readonly [make: string[], mend: string[], found: string[]])[] = [
  [[`drop trigger ${TRIGGER}_insert`], [PROTECT], ['trigger-missing stock']],
  [[`drop trigger ${TRIGGER}_update`, `drop trigger ${TRIGGER}_delete`], [PROTECT], ['trigger-missing stock']],
  [['alter table stock engine = MyISAM'], ['alter table stock engine = InnoDB'], ['other-engine stock']],
  [
    ['alter table fencing_history engine = Aria'],
    ['alter table fencing_history engine = InnoDB'],
    ['other-engine fencing_history'],
  ],
  [
    [
      'create table parent (id int primary key)',
      'alter table stock add parent int, add constraint of foreign key (parent) references parent (id) on delete cascade',
    ],
    ['alter table stock drop foreign key of', 'drop table parent'],
    ['cascade-unprotected stock'],
  ],
  [
    [
      'create table parent (id int primary key)',
      'alter table stock add parent int, add constraint of foreign key (parent) references parent (id) on update set null',
    ],
    ['alter table stock drop foreign key of', 'drop table parent'],
    ['cascade-unprotected stock'],
  ],
  [['grant super on *.* to app'], ['revoke super on *.* from app'], ["account-superuser 'app'@'%'"]],
  [['grant set user on *.* to app'], ['revoke set user on *.* from app'], ["account-superuser 'app'@'%'"]],
  [['grant all on *.* to app'], ['revoke all, grant option from app'], ["account-superuser 'app'@'%'"]],
  [
    ['grant all on app.* to app'],
    ['revoke all on app.* from app'],
    ["account-trigger 'app'@'%'", "account-truncate 'app'@'%'", "account-writes-fences 'app'@'%'"],
  ],
  [
    ['grant all on app.* to app'],
    ['alter user app account lock'],
    ["account-trigger 'app'@'%'", "account-truncate 'app'@'%'", "account-writes-fences 'app'@'%'"],
  ],
  [['grant trigger on stock to app'], ['revoke trigger on stock from app'], ["account-trigger 'app'@'%'"]],
  [['grant drop on stock to app'], ['revoke drop on stock from app'], ["account-truncate 'app'@'%'"]],
  [
    ['grant insert, update on `a%`.* to app'],
    ['revoke insert, update on `a%`.* from app', 'grant insert, update on stock to app'],
    ["account-writes-fences 'app'@'%'"],
  ],
  [
    ['grant update (token) on fencing_fence to app'],
    ['revoke update (token) on fencing_fence from app'],
    ["account-writes-fences 'app'@'%'"],
  ],
  [
    ['create role keepers', 'grant delete on fencing_fence to keepers', 'grant keepers to app'],
    ['drop role keepers'],
    ["account-writes-fences 'keepers'@''"],
  ],
  [
    ['set global innodb_flush_log_at_trx_commit = 2'],
    ['set global innodb_flush_log_at_trx_commit = 3'],
    ['not-durable innodb_flush_log_at_trx_commit'],
  ],
  [['set global sync_binlog = 0'], ['set global sync_binlog = 1'], ['not-durable sync_binlog']],
  [
    ["set global binlog_format = 'STATEMENT'"],
    ["set global binlog_format = 'ROW'"],
    ['statement-replication binlog_format'],
  ],
  [
    ["set global binlog_format = 'MIXED'"],
    ["set global binlog_format = 'ROW'"],
    ['statement-replication binlog_format'],
  ],
  [
    ['update fencing_settings set version = 0'],
    ['update fencing_settings set version = 1'],
    ['version-behind fencing_settings'],
  ],
  [
    ['update fencing_settings set version = 99'],
    ['update fencing_settings set version = 1'],
    ['version-ahead fencing_settings'],
  ],
  [
    ["insert into fencing_fence (domain, token) values ('orders/eu', 4611686018427387904)"],
    ["call fencing_reset('orders/eu', 5, 'mended', null, null)"],
    ['fence-beyond-floor orders/eu'],
  ],
];

describe.each(MARIADB)('fence doctor on $name', (kind) => {
  describe.skipIf(kind.program === undefined)('each fault', () => {
    let db: FencedDatabase;
    let at: string;
    const all = async (statements: readonly string[]): Promise<void> => {
      for (const sql of statements) await db.pool.query(sql);
    };

    beforeAll(async () => {
      db = await FencedDatabase.start(kind, SETTINGS);
      at = `mysql://root@127.0.0.1:${db.server.connection.port}/app`;
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());

    beforeEach(async () => {
      await db.clear();
      await all(['create or replace user app', 'grant select on app.* to app', PROTECT]);
      await db.pool.query('grant execute on procedure fencing_enter to app');
    });

    it('a server that is as it should be has none: exit code 0, and what no set-up avoids is a note', async () => {
      const { code, faults, notes } = await doctor(at);
      expect({ code, faults }).toEqual({ code: 0, faults: [] });
      expect(notes).toContain("account-superuser 'root'@'localhost'");
      expect(notes.filter((each) => !each.startsWith('account-superuser '))).toEqual(['truncate-unprotected TRUNCATE']);
    });

    it.each(FAULTS)('%j', async (make, mend, found) => {
      await all(make);
      expect(await doctor(at)).toMatchObject({ code: 1, faults: found });
      await all(mend);
      // Nothing but what was made and is mended was found.
      expect(await doctor(at)).toMatchObject({ code: 0, faults: [] });
    });

    it('what a migration that was interrupted has not made', async () => {
      await all(['drop procedure fencing_leave', 'drop view fencing_fences']);
      expect(await doctor(at)).toMatchObject({
        code: 1,
        faults: ['procedure-missing fencing_fences', 'procedure-missing fencing_leave'],
        report: { fences: null },
      });
      await fence(`migrate --at ${at}`);
      expect(await doctor(at)).toMatchObject({ code: 0, faults: [] });
    });

    it('protecting tables is optional: nothing is found where it was left out, what is missing where it was not', async () => {
      const [fences, protect] = MIGRATIONS;
      const optional = at.replace(/app$/, 'optional');
      db.server.apply(`create database optional;\nuse optional\n${fences}`);
      expect(await doctor(optional)).toMatchObject({ code: 0, faults: [] });
      db.server.apply(`use optional\n${protect}`);
      await all(['drop procedure optional.fencing_judge']);
      expect(await doctor(optional)).toMatchObject({ code: 1, faults: ['procedure-missing fencing_judge'] });
      await all(['drop database optional']);
    });

    it('another engine where nothing is protected is a note, and so is an account that is not protected from', async () => {
      await all([
        'create table log (id int) engine = Aria',
        "call fencing_unprotect('stock')",
        'grant trigger, drop on stock to app',
      ]);
      const { code, notes } = await doctor(at);
      await db.pool.query('drop table log');
      expect(code).toBe(0);
      expect(notes.filter((each) => !each.startsWith('account-superuser '))).toEqual(['other-engine log']);
    });

    it('a replica, at both ends, with and without semi-synchronous replication, and not when it has been let go', async () => {
      await using replica = await MariadbServer.start(kind, [...SETTINGS, 'server-id=2', 'relay-log=relay']);
      const lower = replica.pool();
      const below = `mysql://root@127.0.0.1:${replica.connection.port}/app`;
      await lower.query(
        `change master to master_host = '127.0.0.1', master_port = ${db.server.connection.port}, master_user = 'root', master_connect_retry = 1`,
      );
      // What every server of these tests has of its own.
      await lower.query('drop database app');
      await lower.query('start slave');
      const replicas = async () =>
        Number(await db.one("select count(*) from information_schema.processlist where command like 'Binlog Dump%'"));
      await until('the primary to know it', async () => (await replicas()) === 1);
      expect(await doctor(at)).toMatchObject({
        code: 1,
        faults: ['asynchronous-replication rpl_semi_sync_master_enabled'],
      });
      await db.pool.query('set global rpl_semi_sync_master_enabled = on');
      const semi = await doctor(at);
      await db.pool.query('set global rpl_semi_sync_master_enabled = off');
      expect(semi).toMatchObject({ code: 0, faults: [] });
      expect(semi.notes).toContain('semi-synchronous-replication rpl_semi_sync_master_enabled');
      await until('the replica to have the fences', async () => {
        const [rows] = await lower.query(
          "select 1 from information_schema.views where table_name = 'fencing_protected'",
        );
        return (rows as unknown[]).length === 1;
      });
      await until('the replica to be up to date', async () => {
        const gtid = await db.one('select @@gtid_binlog_pos');
        const [[row]] = (await lower.query('select @@gtid_slave_pos as pos')) as unknown as [
          [{ readonly pos: unknown }],
        ];
        return row.pos === gtid;
      });
      expect(await doctor(below)).toMatchObject({ code: 1, faults: ['standby server'] });
      await lower.query('stop slave');
      await lower.query('reset slave all');
      expect(await doctor(below)).toMatchObject({ code: 0, faults: [] });
      await until('the primary to forget it', async () => {
        await db.pool.query('create or replace table tick (id int)');
        return (await replicas()) === 0;
      });
      await db.pool.query('drop table tick');
      expect(await doctor(at)).toMatchObject({ code: 0, faults: [] });
    });
  });
});
