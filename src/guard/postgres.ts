/**
 * Guards for PostgreSQL 14 and later. They need the schema `fencing` in the database: apply `fencing.sql`, which lies in
 * this package. {@link postgresFence} keeps one fence for each domain, beside the data: for inserts, deletes, many rows, many
 * tables. {@link postgresRows} keeps it in the row: cheaper, and for updates of single rows only.
 *
 * Not protected: what goes past the guard, unless `fencing.protect` has the table refuse it; reads outside of a run; effects
 * outside of the database; two processes under one token, which nothing orders; a raise that a promoted standby never got
 * (asynchronous replication) or that a restored backup has not: raise the fences of all live leases anew then.
 *
 * @packageDocumentation
 */
import { repeated } from './again.js';
import type { Attempt } from './again.js';
import { checkLease, copyOf, issuerOf, leasesOf } from './fence.js';
import type { Fence } from './fence.js';
import {
  codeOf,
  explained,
  literal,
  mayRunAgain,
  MetNoRow,
  SeveralStatements,
  TransactionHandle,
} from './postgres-transaction.js';
import type { PostgresPool, PostgresResult, PostgresWork } from './postgres-transaction.js';
import type { FencedLease, Outcome, Rejected, Stale } from './types.js';
import { inTime } from './work-time.js';

export type { Fence } from './fence.js';
export type {
  FencedTransaction,
  PostgresConnection,
  PostgresPool,
  PostgresResult,
  PostgresWork,
} from './postgres-transaction.js';
export { postgresRows } from './postgres-rows.js';
export type { PostgresRows, Row, RowChange, RowTable, RowTenure } from './postgres-rows.js';
export type { Applied, FencedLease, Missing, Outcome, Rejected, Retry, Stale } from './types.js';

/** For {@link postgresFence}. */
export interface PostgresFenceOptions {
  /**
   * How long a run may keep its successor out once its fence stands, in milliseconds; 100 to 3 600 000. Default: 3 000,
   * the least TTL of a lease. Set it as far as your TTL, not further. The server ends a transaction that is older, also when
   * this process stands still. Before version 17 it can limit parts only, so the work, each statement and each pause
   * between two get a third of it.
   */
  readonly limitMs?: number;
  /**
   * Of the transactions. Default: `read committed`, which is enough for the fence: it is the first statement and locks. Choose
   * a stricter one for your own statements' sake; more runs are then run again. The raise is then a transaction of its own
   * before that of the work, or the work would read what was there before its predecessors were done: it stays when the work
   * throws.
   */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable';
}

/** A tenure that has raised its fence: from here on no lower token is accepted, so what it reads stays true. */
export interface PostgresTenure {
  /** Whose fence it raised. */
  readonly domain: string;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link PostgresFence.run} under the lease that was opened. */
  run<T>(work: PostgresWork<T>): Promise<Outcome<T>>;
}

/** A guard over one database. */
export interface PostgresFence {
  /**
   * Begins a tenure: raises the fence to the lease's token before anything is read. Do this first; without it a
   * predecessor may still write between your first read and your first write.
   */
  open(lease: FencedLease): Promise<Outcome<PostgresTenure>>;
  /**
   * One transaction: checks and raises the fence, runs `work`, commits. When the lease is stale or rejected, `work` is not
   * called. When `work` throws, everything is rolled back, and `run` throws the same. Serialization failures and deadlocks run
   * the whole again, `work` included, up to five times; then the outcome is `retry`, as it is when predecessors keep their
   * locks for longer than `limitMs`. An operation on several domains takes a lease of each: all are checked and raised, or none.
   *
   * Throws, with nothing applied, what the database says otherwise, and when `work` takes longer than `limitMs`. When
   * the connection is lost while it commits, nobody knows: it throws, and you look.
   */
  run<T>(lease: FencedLease | readonly FencedLease[], work: PostgresWork<T>): Promise<Outcome<T>>;
  /** The fence of a domain, undefined when nobody has written under it. For operators. */
  fence(domain: string): Promise<Partial<Fence> | undefined>;
  /**
   * For operators (it needs the right to call `fencing.allow_issuer`): from now on the fence of this domain takes tokens of
   * the cluster `cluster`, and no others. It stays where it is, so the new cluster's tokens have to be greater (form it with
   * a floor). `note` says why. False when there is no fence.
   */
  allowIssuer(domain: string, cluster: string, note: string): Promise<boolean>;
  /**
   * For operators (`fencing.reset`): sets the fence to what this lease says, also lower than it stands. For one case: somebody
   * presented a token that the cluster never granted. It has to be the lease that was granted last; after an older one
   * stale holders pass. `note` says why.
   */
  reset(lease: FencedLease, note: string): Promise<void>;
}

const DEFAULT_LIMIT_MS = 3_000;
const MIN_LIMIT_MS = 100;
const MAX_LIMIT_MS = 3_600_000;
const ISOLATIONS = ['read committed', 'repeatable read', 'serializable'];
/** Lock not available: SQLSTATE of `lock_timeout`. */
const LOCK_TIMEOUT = '55P03';

/** A guard over the database of this pool (`pg`'s, or one like it), one fence for each domain. */
export function postgresFence(pool: PostgresPool, options: PostgresFenceOptions = {}): PostgresFence {
  const { limitMs = DEFAULT_LIMIT_MS, isolation = 'read committed' } = options;
  const faults: string[] = [];
  if (!Number.isInteger(limitMs) || limitMs < MIN_LIMIT_MS || limitMs > MAX_LIMIT_MS) {
    faults.push(`limitMs must be an integer from ${MIN_LIMIT_MS} to ${MAX_LIMIT_MS}, not ${limitMs}`);
  }
  if (!ISOLATIONS.includes(isolation))
    faults.push(`isolation must be one of ${ISOLATIONS.join(', ')}, not ${isolation}`);
  if (faults.length > 0) throw new TypeError(faults.join('; '));

  const run = async <T>(given: FencedLease | readonly FencedLease[], work: PostgresWork<T>): Promise<Outcome<T>> => {
    const leases = leasesOf(given);
    const begin = beginning(leases, limitMs, isolation);
    return repeated(() => attemptOf(pool, begin, work, limitMs, leases.length === 1));
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
      const sql =
        'select s.token::text as token, s.issuer, s.incarnation from fencing.show($1) s where s.token is not null';
      const { rows } = await explained(pool.query(sql, [domain]));
      const [row] = rows as readonly { token: string; issuer: string | null; incarnation: string | null }[];
      if (row === undefined) return undefined;
      const { token, issuer, incarnation } = row;
      return {
        token: BigInt(token),
        ...(issuer === null ? {} : { issuer }),
        ...(incarnation === null ? {} : { incarnation }),
      };
    },
    async allowIssuer(domain, cluster, note) {
      const sql = 'select fencing.allow_issuer($1, $2, $3) as done';
      const { rows } = await explained(pool.query(sql, [domain, issuerOf(cluster), note]));
      return rows[0]?.['done'] === true;
    },
    async reset(lease, note) {
      checkLease(lease);
      const { domain, token, cluster, incarnation } = lease;
      const values = [domain, token.toString(), note, issuerOf(cluster), incarnation];
      await explained(pool.query('select fencing.reset($1, $2, $3, $4, $5)', values));
    },
  };
}

/**
 * One message, so that the client cannot stop between its parts: nobody holds a fence without a limit. The wait for the fence
 * itself may take as long as the predecessors may need.
 */
function beginning(leases: readonly FencedLease[], limitMs: number, isolation: string): readonly string[] {
  const entries = leases.map(({ domain, token, cluster, incarnation }, at) => {
    const args = [limitMs, literal(domain), token, literal(issuerOf(cluster)), literal(incarnation)].join(', ');
    return `fencing.enter(${args})::text as e${at}`;
  });
  const enter = `select ${entries.join(', ')}`;
  const raise = `begin isolation level read committed; ${enter}`;
  // A snapshot for the whole transaction is taken before the wait for the fence, and would not have what predecessors
  // commit meanwhile. So the raise is committed first; behind it no predecessor commits.
  return isolation === 'read committed' ? [raise] : [raise, `commit; begin isolation level ${isolation}; ${enter}`];
}

/** What `fencing.enter` says, as JSON. */
interface Entered {
  readonly status: 'applied' | 'stale' | Rejected['reason'];
  readonly fence: string;
  readonly earlier: string | null;
  readonly message: string;
  readonly work_ms: number;
}

async function attemptOf<T>(
  pool: PostgresPool,
  begin: readonly string[],
  work: PostgresWork<T>,
  limitMs: number,
  alone: boolean,
): Promise<Attempt<T>> {
  const connection = await pool.connect();
  const handle = new TransactionHandle(connection);
  const lost = (error: Error): void => {
    handle.failure ??= error;
  };
  connection.on('error', lost);
  // Closing a connection rolls back, whatever it is doing: that is its end unless all is known to be well.
  let reusable = false;
  let begun = false;
  try {
    const entered: Entered[] = [];
    let earlier: string | undefined;
    for (const statements of begin) {
      // A driver gives an array for several statements.
      const results = (await explained(connection.query(statements))) as unknown as readonly PostgresResult[];
      const each = Object.values(results.at(-1)?.rows[0] ?? {}).map((json) => JSON.parse(String(json)) as Entered);
      const refused = each.find(({ status }) => status !== 'applied');
      if (refused !== undefined) {
        await connection.query('rollback');
        reusable = true;
        return refusal(refused);
      }
      earlier ??= each.find((one) => one.earlier !== null)?.earlier ?? undefined;
      entered.splice(0, Infinity, ...each);
    }
    begun = true;
    const workMs = Math.min(...entered.map(({ work_ms: ms }) => ms));
    const call = async (): Promise<T> => work(handle.tx);
    const value = await inTime(call(), workMs, () => new OutOfTime(workMs, limitMs));
    handle.close();
    if (handle.failure instanceof MetNoRow || handle.failure instanceof SeveralStatements) throw handle.failure;
    const { command } = await connection.query('commit');
    reusable = true;
    if (command === 'ROLLBACK') {
      const message = 'a statement of the guarded work failed, and the work went on: nothing was written';
      throw new Error(message, { cause: handle.failure });
    }
    return { status: 'applied', value, earlierIncarnation: earlier };
  } catch (error) {
    // Behind a statement that still runs, a rollback would wait for it.
    if (!reusable && !(error instanceof OutOfTime)) {
      reusable = await connection.query('rollback').then(
        () => true,
        () => false,
      );
    }
    if (error instanceof MetNoRow) return { status: 'missing' };
    const cause = [error, handle.failure].find(mayRunAgain);
    if (cause !== undefined) return { status: 'again', cause, last: false };
    // Whoever waited in vain for the only fence has waited long enough; with several, those that stood do not wait long.
    if (!begun && codeOf(error) === LOCK_TIMEOUT) return { status: 'again', cause: error, last: alone };
    throw error;
  } finally {
    handle.close();
    connection.removeListener('error', lost);
    connection.release(!reusable);
  }
}

function refusal({ status, fence, message }: Entered): Stale | Rejected {
  if (status === 'stale') return { status, fence: BigInt(fence) };
  if (status === 'applied') throw new Error('not refused');
  return { status: 'rejected', reason: status, message };
}

class OutOfTime extends Error {
  constructor(workMs: number, limitMs: number) {
    super(`the guarded work was not done within ${workMs} ms (limitMs is ${limitMs}): nothing was written`);
  }
}
