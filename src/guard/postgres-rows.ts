/** The guard of PostgreSQL that keeps the fence in the row that it guards. */
import { repeated } from './again.js';
import type { Attempt } from './again.js';
import { MAX_JUMP, checkLease, copyOf, issuerOf } from './fence.js';
import { mayRunAgain } from './postgres-transaction.js';
import type { PostgresPool } from './postgres-transaction.js';
import { admitToRow } from './row-fence.js';
import type { RowTable } from './row-fence.js';
import type { FencedLease, Outcome } from './types.js';

/** A row, by the names of its columns, as the driver gives it. */
export type Row = Readonly<Record<string, unknown>>;

export type { RowTable } from './row-fence.js';

/** A change of one row, in SQL. */
export interface RowChange {
  /** What comes after `set`, for example `balance = balance - $1`. Written by you, never by a user. */
  readonly set: string;
  /** A condition of your own, for example `balance >= $1`. When it does not hold the outcome is `missing`. */
  readonly where?: string;
  /** Columns to be given of the changed row, for example `balance` or `*`. By default none. */
  readonly returning?: string;
  /** The values of `$1`, `$2` and so on. */
  readonly values?: readonly unknown[];
}

/** A tenure that has raised the fence of its row. */
export interface RowTenure {
  /** The row as it is under the fence: no lower token changes it any more. */
  readonly row: Row;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link PostgresRows.change} under the lease, and of the row, that was opened. */
  change(change: RowChange): Promise<Outcome<Row>>;
}

/** A guard over the rows of one table. */
export interface PostgresRows {
  /** Begins a tenure: raises the fence of this row and gives the row. Do this first, then decide by what it says. */
  open(lease: FencedLease, key: unknown): Promise<Outcome<RowTenure>>;
  /**
   * One update of one row, in one statement that compares and raises the fence: right at every isolation level, and there is
   * no transaction that a holder who stops could leave open. Gives what `returning` names of the row after it. `missing`
   * when there is no such row, or `where` does not hold. Serialization failures and deadlocks are run again, up to five times; then `retry`. Other errors
   * of the database are thrown.
   */
  change(lease: FencedLease, key: unknown, change: RowChange): Promise<Outcome<Row>>;
}

/**
 * A guard over single rows of a table with `fence_token bigint not null default 0` and `fence_issuer text`. It needs nothing
 * else in the database, and so has its limits: the fence is lost with the row, so a stale holder may insert it again (mark
 * rows as deleted instead, or use {@link postgresFence}); it stores no incarnation, so the equal token of another history
 * passes; only this guard compares, so all writers have to use it. The lease's domain has to stand for the row, always the same.
 */
export function postgresRows(pool: PostgresPool, { table, key: keyColumn }: RowTable): PostgresRows {
  const name = table.split('.').map(identifier).join('.');
  const key = identifier(keyColumn);

  /** Why the update met no row. Nothing was changed, and a fence only rises, so asking afterwards is soon enough. */
  const whyNot = async <T>(lease: FencedLease, id: unknown): Promise<Outcome<T>> => {
    const sql = `select fence_token::text as token, fence_issuer as issuer from ${name} where ${key} = $1`;
    const [row] = (await pool.query(sql, [id])).rows as readonly { token: string | null; issuer: string | null }[];
    if (row === undefined) return { status: 'missing' };
    const verdict = admitToRow(`row ${String(id)} in ${table}`, row, lease);
    return verdict.status === 'admitted' ? { status: 'missing' } : verdict;
  };

  const change = async (
    lease: FencedLease,
    id: unknown,
    { set, where, returning, values = [] }: RowChange,
  ): Promise<Outcome<Row>> => {
    checkLease(lease);
    const [t, i, k] = [1, 2, 3].map((each) => `$${values.length + each}`);
    const sql =
      `update ${name} set ${set === '' ? '' : `${set}, `}fence_token = ${t}::bigint, fence_issuer = ${i}::text where ${key} = ${k} ` +
      `and fence_token between 0 and ${t}::bigint and (fence_token = 0 or ${t}::bigint - fence_token <= ${MAX_JUMP}) ` +
      `and (fence_issuer is null or fence_issuer = ${i}::text)${where === undefined ? '' : ` and (${where})`}${returning === undefined ? '' : ` returning ${returning}`}`;
    const { domain, token, cluster, incarnation } = lease;
    const all = [...values, token.toString(), issuerOf(cluster), id];
    return repeated(async (): Promise<Attempt<Row>> => {
      try {
        const { rows, rowCount } = await pool.query(sql, all);
        if (rowCount !== 0) return { status: 'applied', value: rows[0] ?? {}, earlierIncarnation: undefined };
        return await whyNot({ domain, token, cluster, incarnation }, id);
      } catch (cause) {
        if (mayRunAgain(cause)) return { status: 'again', cause, last: false };
        throw cause;
      }
    });
  };

  return {
    change,
    async open(given, id) {
      const lease = copyOf(given);
      const { token } = lease;
      const raised = await change(lease, id, { set: '', returning: '*' });
      if (raised.status !== 'applied') return raised;
      return { ...raised, value: { row: raised.value, token, change: (next) => change(lease, id, next) } };
    },
  };
}

function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
