/**
 * A guard for a SQLite file: the fences lie in a table of the same file, and each guarded operation is one immediate
 * transaction, so that fence and data change together, also where several processes of one host write to the file. Works
 * with `better-sqlite3` 12 and `node:sqlite`, whose calls are synchronous; so is the guard.
 *
 * An immediate transaction takes the file's only write lock before it reads the fence. What SQLite does not have is a limit
 * to that lock: a process that is stopped within its transaction keeps every other writer out until it wakes or is killed.
 * Nothing stale is written then, but nothing else either. Files on network file systems have no such lock at all.
 *
 * @packageDocumentation
 */
import { admitAll, checkLease, copyOf, fenceOf, issuerOf, leasesOf } from './fence.js';
import type { Fence } from './fence.js';
import { FENCE_TABLE, fenceIn, isBusy, keepDurable } from './sqlite-file.js';
import type { SqliteDatabase } from './sqlite-file.js';
import type { Applied, FencedLease, Rejected, Retry, Stale } from './types.js';

export type { Fence } from './fence.js';
export type { SqliteDatabase, SqliteStatement } from './sqlite-file.js';
export type { Applied, FencedLease, Rejected, Retry, Stale } from './types.js';

/**
 * How a guarded operation ends on SQLite. `retry`: another connection had the write lock for longer than the connection's
 * busy time-out. `missing` does not occur: what your own statements found is for your work to return.
 */
export type SqliteOutcome<T> = Applied<T> | Stale | Rejected | Retry;

declare const fenced: unique symbol;

/**
 * The connection within a guarded operation. It is the same object; the type lets your own functions ask for it, so that a
 * call with the plain connection does not compile.
 */
export type Fenced<D> = D & { readonly [fenced]: true };

/** Reads and writes through the connection, at once: no promise. What it throws rolls everything back. */
export type SqliteWork<D, T> = (db: Fenced<D>) => T;

/** A tenure that has raised its fence: from here on no lower token is accepted, so what it reads stays true. */
export interface SqliteTenure<D> {
  /** Whose fence it raised. */
  readonly domain: string;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link SqliteFence.run} under the lease that was opened. */
  run<T>(work: SqliteWork<D, T>): SqliteOutcome<T>;
}

/** A guard over one connection. */
export interface SqliteFence<D> {
  /**
   * Begins a tenure: raises the fence to the lease's token before anything is read. Do this first; without it a
   * predecessor may still write between your first read and your first write.
   */
  open(lease: FencedLease): SqliteOutcome<SqliteTenure<D>>;
  /**
   * Begins an immediate transaction, checks and raises the fence, runs `work`, commits. When the lease is stale or rejected
   * `work` is not called. When `work` throws, or returns a promise, everything is rolled back, and `run` throws. Throws
   * also when the connection is within a transaction already. An operation on several domains takes a lease of each: all
   * fences are checked and raised, or none.
   *
   * Some failures end the transaction themselves: a full disk, `insert or rollback`. Work that catches one and goes on is
   * not guarded any more, and what it writes then stays: `run` throws, too late. Let them pass.
   */
  run<T>(lease: FencedLease | readonly FencedLease[], work: SqliteWork<D, T>): SqliteOutcome<T>;
  /** The fence of a domain, undefined when nobody has written under it. For operators. */
  fence(domain: string): Fence | undefined;
  /**
   * For operators: from now on the fence of this domain takes tokens of the cluster `cluster`, and no others. It
   * stays where it is, so the new cluster's tokens have to be greater (form it with a floor). False when there is no fence.
   */
  allowIssuer(domain: string, cluster: string): boolean;
  /**
   * For operators: sets the fence to what this lease says, also lower than it stands. For one case: somebody presented a
   * token that the cluster never granted, and shut the domain for all to come. It has to be the lease that was granted
   * last; after an older one stale holders pass.
   */
  reset(lease: FencedLease): void;
}

/**
 * A guard over an opened connection. Creates the table `fencepost_fence` when it is not there: do not write to it, and do
 * not drop it with the data. Covers the file that was opened, and none that is `ATTACH`ed to it: with a write-ahead log
 * SQLite commits each file by itself, and a power failure between two would keep a write and lose the raise. Throws when the connection would forget commits at a power failure, and says which pragma to
 * set.
 */
export function sqliteFence<D extends SqliteDatabase>(db: D): SqliteFence<D> {
  keepDurable(db);
  db.exec(FENCE_TABLE);
  // As text both ways: drivers make a double of an integer unless they are told otherwise.
  const select = db.prepare(
    'select cast(token as text) as token, issuer, incarnation from fencepost_fence where domain = ?',
  );
  const upsert = db.prepare(
    'insert into fencepost_fence (domain, token, issuer, incarnation) values (?, cast(? as integer), ?, ?) ' +
      'on conflict (domain) do update set ' +
      'token = excluded.token, issuer = excluded.issuer, incarnation = excluded.incarnation',
  );
  const update = db.prepare('update fencepost_fence set issuer = ? where domain = ?');

  const read = (domain: string): Fence | undefined => fenceIn(domain, select.get(domain));
  const store = (domain: string, { token, issuer, incarnation }: Fence): void => {
    upsert.run(domain, token.toString(), issuer, incarnation);
  };

  const rollBack = (): void => {
    try {
      db.exec('rollback');
    } catch {
      // SQLite has done so itself, after a full disk for example; the error of the work says more.
    }
  };

  const run = <T>(given: FencedLease | readonly FencedLease[], work: SqliteWork<D, T>): SqliteOutcome<T> => {
    const leases = leasesOf(given);
    try {
      db.exec('begin immediate');
    } catch (error) {
      if (isBusy(error)) return { status: 'retry', attempts: 1, cause: error };
      throw error;
    }
    let value: T;
    let earlierIncarnation: string | undefined;
    try {
      const verdict = admitAll(leases, read);
      if (verdict.status !== 'admitted') {
        rollBack();
        return verdict;
      }
      ({ earlierIncarnation } = verdict);
      for (const { domain, fence } of verdict.raised) store(domain, fence);
      value = work(db as Fenced<D>);
      if (isThenable(value)) {
        // That it fails too, as it has to, is not news to anybody.
        value.then(undefined, () => undefined);
        throw new TypeError(
          'the work of a guarded SQLite transaction must be synchronous: what it does after its first await would be ' +
            'outside. Await first, then call run.',
        );
      }
    } catch (error) {
      rollBack();
      throw error;
    }
    try {
      db.exec('commit');
    } catch (error) {
      rollBack();
      // Without a write-ahead log readers can keep a commit from its end.
      if (isBusy(error)) return { status: 'retry', attempts: 1, cause: error };
      throw error;
    }
    return { status: 'applied', value, earlierIncarnation };
  };

  return {
    run,
    open(lease) {
      const raised = run(lease, () => undefined);
      if (raised.status !== 'applied') return raised;
      const opened = copyOf(lease);
      const { domain, token } = opened;
      return { ...raised, value: { domain, token, run: (work) => run(opened, work) } };
    },
    fence: read,
    allowIssuer: (domain, cluster) => Number(update.run(issuerOf(cluster), domain).changes) > 0,
    reset(lease) {
      checkLease(lease);
      store(lease.domain, fenceOf(lease));
    },
  };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
