/** The guard of MariaDB on a server that may have others beside it which take writes too (Galera). */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mysqlFence } from '../../src/guard/mysql.js';
import { freePorts } from '../process/cluster.js';
import { MARIADB } from '../servers/mariadb.js';
import { D, FencedDatabase, lease } from './mysql-database.js';

const PROVIDER = '/usr/lib/galera/libgalera_smm.so';
const here = existsSync(PROVIDER);

describe.each(MARIADB)(`$name with Galera${here ? '' : ' (missing: apt-get install galera-4)'}`, (kind) => {
  describe.skipIf(kind.program === undefined || !here)('mysqlFence', () => {
    let db: FencedDatabase;

    beforeAll(async () => {
      const [group = 0, state = 0] = await freePorts(2);
      db = await FencedDatabase.start(kind, [
        'wsrep-on=ON',
        `wsrep-provider=${PROVIDER}`,
        `wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:${group};ist.recv_addr=127.0.0.1:${state}`,
        'wsrep-node-address=127.0.0.1',
        'wsrep-cluster-address=gcomm://',
        'wsrep-new-cluster',
        'binlog-format=row',
        'innodb-autoinc-lock-mode=2',
      ]);
      await db.clear();
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());

    it('writes the row of its fence under the equal token too: a lock alone would be of one server', async () => {
      expect(
        await db.one("select variable_value from information_schema.global_status where variable_name = 'WSREP_READY'"),
      ).toBe('ON');
      const fence = mysqlFence(db.pool, { limitMs: 60_000 });
      const writes = async () => Number(await db.one('select writes from fencing_fence where domain = ?', [D]));
      await fence.open(lease(5));
      const before = await writes();
      for (let times = 0; times < 3; times++)
        expect((await fence.run(lease(5), (tx) => tx.query('select 1'))).status).toBe('applied');
      expect(await writes()).toBe(before + 3);
      expect(await fence.run(lease(4), () => undefined)).toEqual({ status: 'stale', fence: 5n });
    });
  });

  describe.skipIf(kind.program === undefined)('mysqlFence, where there is none', () => {
    it('writes nothing under the equal token', async () => {
      await using db = await FencedDatabase.start(kind);
      const fence = mysqlFence(db.pool, { limitMs: 60_000 });
      const writes = () => db.one('select writes from fencing_fence where domain = ?', [D]);
      await fence.open(lease(5));
      const before = await writes();
      await fence.run(lease(5), (tx) => tx.query('select 1'));
      expect(await writes()).toBe(before);
    });
  });
});
