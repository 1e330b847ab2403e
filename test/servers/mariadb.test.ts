/** The server that tests of the MariaDB guard run on. */
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { MARIADB, MariadbServer } from './mariadb.js';

describe.each(MARIADB)('$name', (kind) => {
  it.skipIf(kind.program === undefined)(
    'starts on a port of its own, keeps its data when it is killed, and leaves nothing behind',
    async () => {
      const server = await MariadbServer.start(kind);
      const one = async (sql: string) => {
        const [rows] = await server.pool().query(sql);
        return Object.values((rows as object[])[0] ?? {})[0] as unknown;
      };
      const folder = String(await one('select @@datadir'));
      expect(existsSync(folder)).toBe(true);
      await one('create table kept (i int)');
      await server.kill();
      await expect(one('select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
      await server.run();
      expect(await one('select count(*) from kept')).toBe(0);
      expect(() => {
        server.apply('select nothing');
      }).toThrow(/Unknown column/);
      await server[Symbol.asyncDispose]();
      expect(existsSync(folder)).toBe(false);
    },
  );
});
