/**
 * Guards for MariaDB 10.6 and later, through `mysql2/promise`, for InnoDB tables. {@link mysqlFence} keeps one fence for each
 * domain, beside the data: for inserts, deletes, many rows, many tables. It needs the procedures of `fencing.sql`, which lies
 * in this package, in the same database. {@link mysqlRows} keeps the fence in the row: cheaper, and for updates of single rows
 * only.
 *
 * Not protected: what goes past the guard; reads outside of a run; tables of engines without transactions; effects outside
 * of the database; two processes under one token, which nothing orders; a raise that a promoted replica never got (asynchronous
 * and semi-synchronous replication) or that a restored backup has not: raise the fences of all live leases anew then.
 *
 * @packageDocumentation
 */
import { repeated } from './again.js';
import type { Attempt } from './again.js';
import { admit, checkLease, copyOf, issuerOf, leasesOf } from './fence.js';
import type { Fence } from './fence.js';
import {
  DOES_NOT_EXIST,
  errnoOf,
  isTimeout,
  literal,
  mayRunAgain,
  MetNoRow,
  rowsOf,
  textOf,
  TransactionHandle,
} from './mysql-transaction.js';
import type { MysqlPool, MysqlWork } from './mysql-transaction.js';
import type { FencedLease, Outcome, Rejected, Stale } from './types.js';
import { inTime } from './work-time.js';

export type { Fence } from './fence.js';
export type {
  FencedTransaction,
  MysqlConnection,
  MysqlPool,
  MysqlResult,
  MysqlStatement,
  MysqlWork,
  Row,
} from './mysql-transaction.js';
export { mysqlRows } from './mysql-rows.js';
export type { MysqlRows, RowChange, RowTable, RowTenure } from './mysql-rows.js';
export type { Applied, FencedLease, Missing, Outcome, Rejected, Retry, Stale } from './types.js';

/** For {@link mysqlFence}. */
export interface MysqlFenceOptions {
  /**
   * How long a run may keep its successor out once its fence stands, in milliseconds; 2 000 to 3 600 000. Default: 3 000,
   * the least TTL of a lease. Set it as far as your TTL, not further. The server ends a connection that idles within the
   * transaction for a third of it, in whole seconds and one at least, also when this process stands still
   * (`idle_transaction_timeout`); the work, and each statement (`max_statement_time`), get half of the rest.
   */
  readonly limitMs?: number;
  /**
   * Of the transactions. Default: `repeatable read`, as the server's. Any is right for the fence: it is the first statement
   * and locks, so what the work reads is not older.
   */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable';
}

/** A tenure that has raised its fence: from here on no lower token is accepted, so what it reads stays true. */
export interface MysqlTenure {
  /** Whose fence it raised. */
  readonly domain: string;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link MysqlFence.run} under the lease that was opened. */
  run<T>(work: MysqlWork<T>): Promise<Outcome<T>>;
}

/** A guard over one database. */
export interface MysqlFence {
  /**
   * Begins a tenure: raises the fence to the lease's token before anything is read. Do this first; without it a
   * predecessor may still write between your first read and your first write.
   */
  open(lease: FencedLease): Promise<Outcome<MysqlTenure>>;
  /**
   * One transaction: checks and raises the fence, runs `work`, commits. When the lease is stale or rejected, `work` is not
   * called. When `work` throws, everything is rolled back, and `run` throws the same. Deadlocks (1213), locks not granted in
   * time (1205) and rows changed since the snapshot (1020) run the whole again, `work` included, up to five times; then the
   * outcome is `retry`, as it is when predecessors keep their locks for longer than `limitMs`. An operation on several
   * domains takes a lease of each: all are checked and raised, or none.
   *
   * Throws, with nothing applied, what the database says otherwise, and when `work` takes longer than it may. When the
   * connection is lost, or `max_statement_time` is over, while it commits, nobody knows: it throws, and you look. It throws
   * too when `work` got past the guard with a statement that commits (in a procedure, for example): what was before that is
   * kept, under the fence; what such a procedure commits after it is kept too, behind no fence.
   */
  run<T>(lease: FencedLease | readonly FencedLease[], work: MysqlWork<T>): Promise<Outcome<T>>;
  /** The fence of a domain, undefined when nobody has written under it. For operators. */
  fence(domain: string): Promise<Partial<Fence> | undefined>;
  /**
   * For operators (it needs the right to call `fencing_allow_issuer`): from now on the fence of this domain takes tokens of
   * the cluster `cluster`, and no others. It stays where it is, so the new cluster's tokens have to be greater (form it with
   * a floor). `note` says why. False when there is no fence.
   */
  allowIssuer(domain: string, cluster: string, note: string): Promise<boolean>;
  /**
   * For operators (`fencing_reset`): sets the fence to what this lease says, also lower than it stands. For one case: somebody
   * presented a token that the cluster never granted. It has to be the lease that was granted last; after an older one
   * stale holders pass. `note` says why.
   */
  reset(lease: FencedLease, note: string): Promise<void>;
}

const DEFAULT_LIMIT_MS = 3_000;
const MIN_LIMIT_MS = 2_000;
const MAX_LIMIT_MS = 3_600_000;
const ISOLATIONS = ['read committed', 'repeatable read', 'serializable'];

/** A guard over the database of this pool, one fence for each domain. */
export function mysqlFence(pool: MysqlPool, options: MysqlFenceOptions = {}): MysqlFence {
  const { limitMs = DEFAULT_LIMIT_MS, isolation = 'repeatable read' } = options;
  const faults: string[] = [];
  if (!Number.isInteger(limitMs) || limitMs < MIN_LIMIT_MS || limitMs > MAX_LIMIT_MS) {
    faults.push(`limitMs must be an integer from ${MIN_LIMIT_MS} to ${MAX_LIMIT_MS}, not ${limitMs}`);
  }
  if (!ISOLATIONS.includes(isolation))
    faults.push(`isolation must be one of ${ISOLATIONS.join(', ')}, not ${isolation}`);
  if (faults.length > 0) throw new TypeError(faults.join('; '));

  const run = async <T>(given: FencedLease | readonly FencedLease[], work: MysqlWork<T>): Promise<Outcome<T>> => {
    const leases = leasesOf(given);
    const begin = beginning(leases, limitMs, isolation);
    return repeated(() => attemptOf(pool, leases, begin, work, limitMs));
  };

  return {
    run,
    async open(lease) {
      const opened = copyOf(lease);
      const { domain, token } = opened;
      const raised = await run(opened, () => undefined);
      if (raised.status !== 'applied') return raised;
      return { ...raised, value: { domain, token, run: (work) => run(opened, work) } };
    },
    async fence(domain) {
      const [row] = await rowsOf(pool, `call fencing_show(${literal(domain)})`);
      if (row === undefined) return undefined;
      const [issuer, incarnation] = [textOf(row['issuer']), textOf(row['incarnation'])];
      return {
        token: BigInt(row['token'] as string),
        ...(issuer === null ? {} : { issuer }),
        ...(incarnation === null ? {} : { incarnation }),
      };
    },
    async allowIssuer(domain, cluster, note) {
      const values = [domain, issuerOf(cluster), note].map(literal).join(', ');
      const [row] = await rowsOf(pool, `call fencing_allow_issuer(${values})`);
      return Number(row?.['done']) === 1;
    },
    async reset(lease, note) {
      checkLease(lease);
      const { domain, token, cluster, incarnation } = lease;
      const [of, why, issuer, history] = [domain, note, issuerOf(cluster), incarnation].map(literal);
      await rowsOf(pool, `call fencing_reset(${of}, ${token}, ${why}, ${issuer}, ${history})`);
    },
  };
}

/**
 * One call, so that the client cannot stop between its parts: nobody holds a fence without a limit. The wait for the fence
 * itself may take as long as the predecessors may need.
 */
function beginning(leases: readonly FencedLease[], limitMs: number, isolation: string): string {
  const list = leases.map(({ domain, token, cluster, incarnation }) => ({
    domain,
    token: token.toString(),
    issuer: issuerOf(cluster),
    incarnation,
  }));
  return `call fencing_enter(${limitMs}, '${isolation}', ${literal(JSON.stringify(list))})`;
}

/** What `fencing_enter` says; names as hexadecimal digits. */
interface Entered {
  readonly status: 'applied' | 'stale' | Rejected['reason'];
  /** Of the lease that was refused. */
  readonly at: number | string;
  readonly fence: string;
  readonly issuer: string | null;
  readonly incarnation: string | null;
  readonly earlier: string | null;
  readonly work_ms: number | string;
}

async function attemptOf<T>(
  pool: MysqlPool,
  leases: readonly FencedLease[],
  begin: string,
  work: MysqlWork<T>,
  limitMs: number,
): Promise<Attempt<T>> {
  const connection = await pool.getConnection();
  const handle = new TransactionHandle(connection);
  const leave = (commit: boolean) => rowsOf(connection, `call fencing_leave(${commit})`);
  // Closing a connection rolls back, whatever it is doing: that is its end unless all is known to be well.
  let reusable = false;
  let begun = false;
  try {
    const [row] = await rowsOf(connection, begin);
    begun = true;
    const entered = row as unknown as Entered;
    if (entered.status !== 'applied') {
      reusable = true;
      return refusal(entered, leases);
    }
    const workMs = Number(entered.work_ms);
    const call = async (): Promise<T> => work(handle.tx);
    const value = await inTime(call(), workMs, () => {
      const message = `the guarded work was not done within ${workMs} ms (limitMs is ${limitMs}): nothing was written`;
      return new OutOfTime(message);
    }).finally(() => {
      handle.close();
    });
    if (handle.failure !== undefined) throw handle.failure;
    await leave(true).catch((error: unknown) => {
      if (errnoOf(error) !== DOES_NOT_EXIST) throw error;
      const message =
        'a statement of the guarded work ended its transaction: what came before it is committed, under the fence; what ' +
        'came later is not';
      throw new Error(message, { cause: error });
    });
    reusable = true;
    return { status: 'applied', value, earlierIncarnation: textOf(entered.earlier) ?? undefined };
  } catch (error) {
    // Behind a statement that still runs, a rollback would wait for it.
    if (!reusable && !(error instanceof OutOfTime)) {
      reusable = await leave(false).then(
        () => true,
        () => false,
      );
    }
    if (handle.failure instanceof MetNoRow) return { status: 'missing' };
    // Whoever waited in vain for the only fence has waited long enough; with several, those that stood do not wait long.
    if (!begun && isTimeout(error)) return { status: 'again', cause: error, last: leases.length === 1 };
    const cause = [error, handle.failure].find(mayRunAgain);
    if (cause !== undefined) return { status: 'again', cause, last: false };
    throw error;
  } finally {
    handle.close();
    if (reusable) connection.release();
    else connection.destroy();
  }
}

/** The server has compared; the same comparison says it in the words of all guards. */
function refusal(
  { status, at, fence, issuer, incarnation }: Entered,
  leases: readonly FencedLease[],
): Stale | Rejected {
  const lease = leases[Number(at)];
  if (lease === undefined) throw new Error(`fencing_enter refused lease ${at} of ${leases.length}`);
  const stored = {
    token: BigInt(fence),
    issuer: textOf(issuer) ?? issuerOf(lease.cluster),
    incarnation: textOf(incarnation) ?? lease.incarnation,
  };
  const verdict = admit(stored, lease);
  if (verdict.status !== 'admitted') return verdict;
  const message =
    `token ${lease.token} of ${lease.domain} is further above its fence, ${fence}, than max_jump in fencing_settings allows. ` +
    'If it is the lease that was granted last all the same, call reset with it.';
  if (status === 'jump') return { status: 'rejected', reason: 'jump', message };
  throw new Error(`fencing_enter refused the lease of ${lease.domain} (${status}) for no reason that shows`);
}

class OutOfTime extends Error {}
