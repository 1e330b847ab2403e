/** The story of `database-guards.ts` on PostgreSQL. */
import { describe } from 'vitest';
import { FencedDatabase } from '../guard/postgres-database.js';
import { POSTGRES } from '../servers/postgres.js';
import { describeStoppedWorker } from './database-guards.js';

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('postgresFence, postgresRows', () => {
    describeStoppedWorker('postgres-worker.mjs', '55P03', async () => {
      const db = await FencedDatabase.start(kind, []);
      return {
        connection: db.server.connection,
        fill: () =>
          db.pool.query(`
            drop table if exists stock;
            create table stock (id int primary key, qty int, by text, fence_token bigint not null default 0, fence_issuer text);
            insert into stock values (1, 10)`),
        async read() {
          const { rows } = await db.pool.query<{ qty: number; by: string | null }>('select qty, by from stock');
          if (rows[0] === undefined) throw new Error('stock is empty');
          return rows[0];
        },
        [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
      };
    });
  });
});
