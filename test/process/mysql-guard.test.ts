/** The story of `database-guards.ts` on MariaDB. */
import { describe } from 'vitest';
import { FencedDatabase } from '../guard/mysql-database.js';
import { MARIADB } from '../servers/mariadb.js';
import { describeStoppedWorker } from './database-guards.js';

describe.each(MARIADB)('$name', (kind) => {
  describe.skipIf(kind.program === undefined)('mysqlFence, mysqlRows', () => {
    describeStoppedWorker('mysql-worker.mjs', 'ER_LOCK_WAIT_TIMEOUT', async () => {
      const db = await FencedDatabase.start(kind, []);
      return {
        connection: db.server.connection,
        fill: () => {
          db.server.apply(`
            drop table if exists stock;
            create table stock (id int primary key, qty int, changed_by varchar(40), fence_token bigint not null default 0,
              fence_issuer varbinary(512), fence_writes bigint unsigned not null default 0);
            insert into stock (id, qty) values (1, 10)`);
        },
        async read() {
          const [rows] = await db.pool.query('select qty, changed_by as `by` from stock');
          return (rows as { qty: number; by: string | null }[])[0] ?? { qty: 0, by: null };
        },
        [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
      };
    });
  });
});
