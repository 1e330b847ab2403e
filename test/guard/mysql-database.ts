/** A server of MariaDB with the procedures of fencing and a small table, as a client in any language would use it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FencedLease } from '../../src/guard/types.js';
import { MariadbServer } from '../servers/mariadb.js';
import type { MariadbKind, Pool } from '../servers/mariadb.js';

/** The files of the package, as the client `mariadb` applies them one behind the other. */
export const MIGRATIONS = [read('fencing.sql'), read('protect.sql')] as const;
export const MIGRATION = MIGRATIONS.join('');
/** The domain of most tests. */
export const D = 'orders/eu';

export const lease = (token: number | bigint, more: Partial<FencedLease> = {}): FencedLease => ({
  domain: D,
  token: BigInt(token),
  cluster: 'prod',
  incarnation: 'a'.repeat(32),
  ...more,
});

export class FencedDatabase implements AsyncDisposable {
  readonly server: MariadbServer;
  readonly pool: Pool;

  private constructor(server: MariadbServer) {
    this.server = server;
    this.pool = server.pool();
  }

  static async start(kind: MariadbKind, settings?: readonly string[]): Promise<FencedDatabase> {
    const server = await MariadbServer.start(kind, settings);
    server.apply(MIGRATION);
    return new FencedDatabase(server);
  }

  /** No fence, and `stock` as new. */
  async clear(): Promise<void> {
    for (const sql of [
      'delete from fencing_fence',
      'delete from fencing_history',
      'drop table if exists stock',
      'create table stock (id int primary key, domain varchar(255), qty int)',
      "insert into stock values (1, 'orders/eu', 10), (2, 'orders/us', 20)",
    ])
      await this.pool.query(sql);
  }

  /** The first column of the first row. */
  async one(sql: string, values: unknown[] = []): Promise<unknown> {
    const [rows] = await this.pool.query(sql, values);
    return Object.values((rows as object[])[0] ?? {})[0];
  }

  /** How many transactions wait for a lock. */
  async waiting(): Promise<number> {
    const sql = 'select variable_value from information_schema.global_status where variable_name = ?';
    return Number(await this.one(sql, ['INNODB_ROW_LOCK_CURRENT_WAITS']));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server[Symbol.asyncDispose]();
  }
}

function read(name: string): string {
  return readFileSync(join('src/guard/mysql', name), 'utf8');
}
