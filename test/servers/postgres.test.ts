/** The servers that tests of guards run on. */
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { POSTGRES, PostgresServer } from './postgres.js';

describe.each(POSTGRES)('$name', (kind) => {
  it.skipIf(kind.bin === undefined)('starts on a port of its own, answers, and leaves nothing behind', async () => {
    const server = await PostgresServer.start(kind);
    const pool = server.pool();
    const { rows } = await pool.query<{ folder: string; sum: string }>(
      "select current_setting('data_directory') as folder, (2::bigint ^ 53)::bigint + 1 as sum",
    );
    expect(rows[0]?.sum).toBe('9007199254740993');
    expect(existsSync(rows[0]?.folder ?? '')).toBe(true);
    await server[Symbol.asyncDispose]();
    expect(existsSync(rows[0]?.folder ?? '')).toBe(false);
    await expect(server.pool({ connectionTimeoutMillis: 1_000 }).query('select 1')).rejects.toThrow(/ECONNREFUSED/);
  });
});
