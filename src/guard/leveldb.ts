/**
 * A guard for an embedded LevelDB (`level`, `classic-level`): the fence and the data lie in one database, and change in
 * one synced batch. LevelDB has no comparison of its own; but one process owns the directory, so a mutex in that process
 * is enough. Every writer of the guarded data has to come through here.
 *
 * @packageDocumentation
 */
import { encodeUtf8 } from '../base/utf8.js';
import { admitAll, checkLease, copyOf, fenceOf, issuerOf, leasesOf } from './fence.js';
import type { Fence } from './fence.js';
import { Mutex } from './mutex.js';
import type { Applied, FencedLease, Rejected, Stale } from './types.js';
import { inTime, workTimeoutOf } from './work-time.js';
import type { WorkTimeOptions } from './work-time.js';

export type { Fence } from './fence.js';
export type { Applied, FencedLease, Rejected, Stale } from './types.js';
export type { WorkTimeOptions } from './work-time.js';

/**
 * How a guarded operation ends on LevelDB: a put needs no row to be there, and runs follow one another, so neither
 * `missing` nor `retry` occurs. Failures of the database itself are thrown.
 */
export type LevelOutcome<T> = Applied<T> | Stale | Rejected;

/** Text keys and values, whatever the database's own encodings are. */
export interface TextEncodings {
  /** Of keys. */
  readonly keyEncoding: 'utf8';
  /** Of values. */
  readonly valueEncoding: 'utf8';
}

/** One operation of a batch. */
export type LevelOperation<K, V> =
  | ({ type: 'put'; key: K; value: V } | { type: 'del'; key: K })
  | ({ type: 'put'; key: string; value: string } & TextEncodings);

/** What the guard needs of the database: an opened `Level` or `ClassicLevel`, or a sublevel of one, fits. */
export interface LevelDatabase<K, V> {
  /** The value at a key, in the database's own encodings. */
  get(key: K): Promise<V | undefined>;
  /** The text at a key: for fences. */
  get(key: string, options: TextEncodings): Promise<string | undefined>;
  /** All of them, or none; durable when it resolves. */
  batch(operations: LevelOperation<K, V>[], options: { sync: true }): Promise<void>;
}

/** The data, as the work of one `run` sees it. Unusable when the run is over. */
export interface FencedData<K, V> {
  /** What was stored before this run; what the run itself has put is not there yet. Undefined when there is nothing. */
  get(key: K): Promise<V | undefined>;
  /** To be stored when the work is done. */
  put(key: K, value: V): void;
  /** To be removed when the work is done. */
  del(key: K): void;
}

/** Reads and gathers changes; they are written together, or not at all. */
export type LevelWork<K, V, T> = (data: FencedData<K, V>) => Promise<T> | T;

/** A tenure that has raised its fence: from here on no lower token is accepted, so what it reads stays true. */
export interface Tenure<K, V> {
  /** Whose fence it raised. */
  readonly domain: string;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link LevelFence.run} under the lease that was opened. */
  run<T>(work: LevelWork<K, V, T>): Promise<LevelOutcome<T>>;
}

/** A guard over one database. */
export interface LevelFence<K, V> {
  /**
   * Begins a tenure: raises the fence to the lease's token before anything is read. Do this first; without it a
   * predecessor may still write between your first read and your first write.
   */
  open(lease: FencedLease): Promise<LevelOutcome<Tenure<K, V>>>;
  /**
   * Checks and raises the fence, runs `work`, and writes the fence and all changes in one synced batch. When the
   * lease is stale or rejected, `work` is not called. When `work` throws, nothing is written, and `run` throws
   * the same. Runs of one database follow one another. An operation on several domains takes a lease of each: all fences
   * are checked and raised, or none.
   */
  run<T>(lease: FencedLease | readonly FencedLease[], work: LevelWork<K, V, T>): Promise<LevelOutcome<T>>;
  /** The fence of a domain, undefined when nobody has written under it. For operators. */
  fence(domain: string): Promise<Fence | undefined>;
  /**
   * For operators: from now on the fence of this domain takes tokens of the cluster `cluster`, and no others. It
   * stays where it is, so the new cluster's tokens have to be greater (form it with a floor). False when there is no fence.
   */
  allowIssuer(domain: string, cluster: string): Promise<boolean>;
  /**
   * For operators: sets the fence to what this lease says, also lower than it stands. For one case: somebody presented a
   * token that the cluster never granted, and shut the domain for all to come. It has to be the lease that was granted
   * last; after an older one stale holders pass.
   */
  reset(lease: FencedLease): Promise<void>;
}

/** Fences have keys of their own, as if in a sublevel of this name, so that deleting data does not touch them. */
const PREFIX = '!fencepost!';
const PREFIX_BYTES = encodeUtf8(PREFIX);
const TEXT: TextEncodings = { keyEncoding: 'utf8', valueEncoding: 'utf8' };

/** One for each database of this process, however many guards are made of it. */
const mutexes = new WeakMap<object, Mutex>();

/**
 * A guard over an opened database. The fences lie in it, under keys that begin with `!fencepost!`: do not `clear()` the
 * whole database, and do not write there.
 */
export function levelFence<K, V>(db: LevelDatabase<K, V>, options: WorkTimeOptions = {}): LevelFence<K, V> {
  const workTimeoutMs = workTimeoutOf(options);
  const mutex = mutexOf(db);

  const read = async (domain: string): Promise<Fence | undefined> => {
    const key = PREFIX + domain;
    const text = await db.get(key, TEXT);
    return text === undefined ? undefined : decode(text, key);
  };

  const put = (domain: string, fence: Fence): LevelOperation<K, V> => ({
    type: 'put',
    key: PREFIX + domain,
    value: encode(fence),
    ...TEXT,
  });

  const run = async <T>(
    given: FencedLease | readonly FencedLease[],
    work: LevelWork<K, V, T>,
  ): Promise<LevelOutcome<T>> => {
    const leases = leasesOf(given);
    return mutex.run(async () => {
      const fences = new Map<string, Fence | undefined>();
      for (const { domain } of leases) fences.set(domain, await read(domain));
      const verdict = admitAll(leases, (domain) => fences.get(domain));
      if (verdict.status !== 'admitted') return verdict;
      const operations: LevelOperation<K, V>[] = [];
      const { result, stop } = gathering(db, operations, work);
      const value = await inTime(result, workTimeoutMs, () => {
        stop();
        const domains = leases.map(({ domain }) => domain).join(', ');
        return new Error(
          `the guarded work on ${domains} was not done within workTimeoutMs = ${workTimeoutMs}: nothing was written`,
        );
      });
      operations.push(...verdict.raised.map(({ domain, fence }) => put(domain, fence)));
      if (operations.length > 0) await db.batch(operations, { sync: true });
      return { status: 'applied', value, earlierIncarnation: verdict.earlierIncarnation };
    });
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
    fence: (domain) => mutex.run(() => read(domain)),
    allowIssuer: (domain, cluster) =>
      mutex.run(async () => {
        const fence = await read(domain);
        if (fence === undefined) return false;
        await db.batch([put(domain, { ...fence, issuer: issuerOf(cluster) })], { sync: true });
        return true;
      }),
    async reset(lease) {
      checkLease(lease);
      const operation = put(lease.domain, fenceOf(lease));
      await mutex.run(() => db.batch([operation], { sync: true }));
    },
  };
}

/** A sublevel shares the mutex of the database that it lies in. */
function mutexOf(db: object): Mutex {
  const root = 'db' in db && typeof db.db === 'object' && db.db !== null ? db.db : db;
  const mutex = mutexes.get(root) ?? new Mutex();
  mutexes.set(root, mutex);
  return mutex;
}

/** Runs the work with a handle that gathers into `operations`; `stop` ends the handle. */
function gathering<K, V, T>(
  db: LevelDatabase<K, V>,
  operations: LevelOperation<K, V>[],
  work: LevelWork<K, V, T>,
): { readonly result: Promise<T>; readonly stop: () => void } {
  let open = true;
  const check = (): void => {
    if (!open) throw new Error('the run of this handle is over: nothing is read or written through it any more');
  };
  const change = (operation: { type: 'put'; key: K; value: V } | { type: 'del'; key: K }): void => {
    check();
    if (isFenceKey(operation.key)) throw new TypeError(`keys that begin with ${PREFIX} are those of the fences`);
    operations.push(operation);
  };
  const data: FencedData<K, V> = {
    async get(key) {
      check();
      return db.get(key);
    },
    put(key, value) {
      change({ type: 'put', key, value });
    },
    del(key) {
      change({ type: 'del', key });
    },
  };
  const stop = (): void => {
    open = false;
  };
  const call = async (): Promise<T> => {
    try {
      return await work(data);
    } finally {
      stop();
    }
  };
  return { result: call(), stop };
}

function isFenceKey(key: unknown): boolean {
  if (typeof key === 'string') return key.startsWith(PREFIX);
  return key instanceof Uint8Array && PREFIX_BYTES.every((byte, at) => key[at] === byte);
}

function encode({ token, issuer, incarnation }: Fence): string {
  return JSON.stringify({ token: token.toString(), issuer, incarnation });
}

/** A fence that cannot be read is no missing fence: nothing may pass. */
function decode(text: string, key: string): Fence {
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    stored = undefined;
  }
  if (
    typeof stored === 'object' &&
    stored !== null &&
    'token' in stored &&
    'issuer' in stored &&
    'incarnation' in stored
  ) {
    const { token, issuer, incarnation } = stored;
    if (
      typeof token === 'string' &&
      /^\d{1,19}$/.test(token) &&
      typeof issuer === 'string' &&
      typeof incarnation === 'string'
    ) {
      return { token: BigInt(token), issuer, incarnation };
    }
  }
  throw new Error(
    `the fence at key ${key} is damaged: restore the database, or write the greatest token that was accepted by hand`,
  );
}
