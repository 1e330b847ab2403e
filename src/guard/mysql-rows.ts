/** The guard of MariaDB that keeps the fence in the row that it guards. */
import { repeated } from './again.js';
import type { Attempt } from './again.js';
import { MAX_JUMP, checkLease, copyOf, issuerOf } from './fence.js';
import { literal, mayRunAgain, rowsOf, textOf } from './mysql-transaction.js';
import type { MysqlPool, Row } from './mysql-transaction.js';
import { admitToRow } from './row-fence.js';
import type { RowTable } from './row-fence.js';
import type { FencedLease, Outcome } from './types.js';

export type { RowTable } from './row-fence.js';

/** A change of one row, in SQL. */
export interface RowChange {
  /** What comes after `set`, for example `balance = balance - ?`. Written by you, never by a user. */
  readonly set: string;
  /** A condition of your own, for example `balance >= ?`. When it does not hold the outcome is `missing`. */
  readonly where?: string;
  /** A value for each `?`, those of `set` first. */
  readonly values?: readonly unknown[];
}

/** A tenure that has raised the fence of its row. */
export interface RowTenure {
  /** The row as it is under the fence: no lower token changes it any more. */
  readonly row: Row;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link MysqlRows.change} under the lease, and of the row, that was opened. */
  change(change: RowChange): Promise<Outcome<undefined>>;
}

/** A guard over the rows of one table. */
export interface MysqlRows {
  /** Begins a tenure: raises the fence of this row and gives the row. Do this first, then decide by what it says. */
  open(lease: FencedLease, key: unknown): Promise<Outcome<RowTenure>>;
  /**
   * One update of one row, in one statement that compares and raises the fence: right at every isolation level, and there is
   * no transaction that a holder who stops could leave open. `missing` when there is no such row, or `where` does not hold.
   * Deadlocks, and locks that are not granted in time, are run again, up to five times; then `retry`. Other errors of the
   * database are thrown, and an Error, with nothing changed, when what is stored is no fence; when the connection is lost
   * nobody knows whether the change was made, and you look.
   */
  change(lease: FencedLease, key: unknown, change: RowChange): Promise<Outcome<undefined>>;
}

/**
 * A guard over single rows of an InnoDB table with `fence_token bigint not null default 0`, `fence_issuer varbinary(512)` and
 * `fence_writes bigint unsigned not null default 0`. It needs nothing else in the database, and so has its limits: the fence is
 * lost with the row, so a stale holder may insert it again (mark rows as deleted instead, or use `mysqlFence`); it stores no
 * incarnation, so the equal token of another history passes; only this guard compares, so all writers have to use it. The
 * lease's domain has to stand for the row, always the same. The pool's connections have to be in `autocommit`, as they are
 * unless told otherwise, and lead to the server that takes the writes.
 */
export function mysqlRows(pool: MysqlPool, { table, key: keyColumn }: RowTable): MysqlRows {
  const name = table.split('.').map(identifier).join('.');
  const key = identifier(keyColumn);

  /** The row, and what its fence says of this lease; undefined when there is no row. */
  const read = async (id: unknown, lease: FencedLease) => {
    const columns = `${name}.*, cast(fence_token as char) as fence_token, hex(fence_issuer) as fencing_issuer`;
    const [found] = await rowsOf(pool, `select ${columns} from ${name} where ${key} = ?`, [id]);
    if (found === undefined) return undefined;
    const { fencing_issuer: hex, ...row } = found;
    const stored = { token: row['fence_token'] as string | null, issuer: textOf(hex) };
    return { row, verdict: admitToRow(`row ${String(id)} in ${table}`, stored, lease) };
  };

  /** Why the update met no row. Nothing was changed, and a fence only rises, so asking afterwards is soon enough. */
  const whyNot = async <T>(lease: FencedLease, id: unknown): Promise<Outcome<T>> => {
    const verdict = (await read(id, lease))?.verdict;
    return verdict === undefined || verdict.status === 'admitted' ? { status: 'missing' } : verdict;
  };

  const change = async (
    lease: FencedLease,
    id: unknown,
    { set, where, values = [] }: RowChange,
  ): Promise<Outcome<undefined>> => {
    checkLease(lease);
    const { domain, token, cluster, incarnation } = lease;
    const issuer = literal(issuerOf(cluster));
    // The count of writes makes every update change its row: without it the equal token would seem to meet none, unless
    // the connection asks for found rows.
    const sql =
      `update ${name} set ${set === '' ? '' : `${set}, `}fence_token = ${token}, fence_issuer = ${issuer}, ` +
      `fence_writes = fence_writes + 1 where ${where === undefined ? '' : `(${where}) and `}${key} = ? ` +
      `and fence_token between 0 and ${token} and (fence_token = 0 or ${token} - fence_token <= ${MAX_JUMP}) ` +
      `and (fence_issuer is null or fence_issuer = ${issuer})`;
    return repeated(async (): Promise<Attempt<undefined>> => {
      try {
        const [given] = await pool.query({ sql }, [...values, id]);
        const { affectedRows } = given as { readonly affectedRows: number };
        if (affectedRows !== 0) return { status: 'applied', value: undefined, earlierIncarnation: undefined };
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
      const raised = await change(lease, id, { set: '' });
      if (raised.status !== 'applied') return raised;
      // The fence stands, so what is read now is what no lower token changes; a greater one may have come in between.
      const found = await read(id, lease);
      if (found === undefined) return { status: 'missing' };
      const { row, verdict } = found;
      if (verdict.status !== 'admitted') return verdict;
      return { ...raised, value: { row, token, change: (next) => change(lease, id, next) } };
    },
  };
}

function identifier(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}
