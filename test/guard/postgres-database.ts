/** A server of PostgreSQL with the functions of fencing and a small table, as a client in any language would use it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { PostgresServer } from '../servers/postgres.js';
import type { Pool, PostgresKind } from '../servers/postgres.js';

/** The files of the package, as `psql` applies them one behind the other. */
export const MIGRATIONS = [read('fencing.sql'), read('protect.sql')] as const;
export const MIGRATION = MIGRATIONS.join('');
/** The domain of most tests. */
export const D = 'orders/eu';

export class FencedDatabase implements AsyncDisposable {
  readonly server: PostgresServer;
  readonly pool: Pool;

  private constructor(server: PostgresServer) {
    this.server = server;
    this.pool = server.pool();
  }

  static async start(kind: PostgresKind, settings?: readonly string[]): Promise<FencedDatabase> {
    const database = new FencedDatabase(await PostgresServer.start(kind, settings));
    await database.pool.query(MIGRATION);
    return database;
  }

  /** No fence, nothing observed, and `stock` as new. */
  async clear(): Promise<void> {
    await this.pool.query(`
      truncate fencing.fence, fencing.history, fencing.observation;
      drop table if exists stock, parts cascade;
      create table stock (id int, domain text, qty int);
      insert into stock values (1, 'orders/eu', 10), (2, 'orders/us', 20)`);
  }

  /** The first column of the first row. */
  async one(sql: string, values: unknown[] = []): Promise<unknown> {
    const { rows } = await this.pool.query<Record<string, unknown>>(sql, values);
    return Object.values(rows[0] ?? {})[0];
  }

  advance(token: number | bigint, domain = D): Promise<unknown> {
    return this.one('select fencing.advance($1, $2)', [domain, token.toString()]);
  }

  async tryAdvance(token: number | bigint, issuer?: string, incarnation?: string): Promise<unknown> {
    const sql = 'select * from fencing.try_advance($1, $2, $3, $4)';
    return (await this.pool.query(sql, [D, token.toString(), issuer, incarnation])).rows[0];
  }

  /** One statement in a transaction of its own, advanced to this token if one is given. */
  async write(sql: string, token?: number, domain = D): Promise<number | null> {
    const client = await this.pool.connect();
    try {
      await client.query('begin');
      if (token !== undefined) await client.query('select fencing.advance($1, $2)', [domain, token]);
      const { rowCount } = await client.query(sql);
      await client.query('commit');
      return rowCount;
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server[Symbol.asyncDispose]();
  }
}

/** Expects this failure, and gives what its DETAIL says. */
export async function refused(work: Promise<unknown>, code: string): Promise<unknown> {
  const error: unknown = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  expect(error).toMatchObject({ code });
  return JSON.parse((error as { detail?: string }).detail ?? '{}');
}

function read(name: string): string {
  return readFileSync(join('src/guard/postgres', name), 'utf8');
}
