/** Each operation in a thread with a connection of its own, as several processes would have. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, it } from 'vitest';
import { Mutex } from '../../src/guard/mutex.js';
import { sqliteFence } from '../../src/guard/sqlite.js';
import type { FencedLease, Outcome } from '../../src/guard/types.js';
import type { Between, GuardedStore, GuardSubject } from '../../src/guard/conformance/index.js';
import { SQLITE } from '../servers/sqlite.js';
import type { SqliteConnection, SqliteDriver } from '../servers/sqlite.js';
import { builtModule, killedInside } from './killed.js';
import { describeConformance } from './suite.js';

const NOTHING: Between = () => Promise.resolve();
const GUARD = builtModule('guard/sqlite.js');

interface Task {
  readonly type: 'open' | 'run' | 'tenure';
  readonly leases: readonly FencedLease[];
  readonly item?: string;
  readonly value?: string | undefined;
  readonly tenure?: number;
}

type News =
  | { readonly type: 'between' }
  | { readonly type: 'ended'; readonly outcome: Outcome<undefined> }
  | { readonly type: 'failed'; readonly error: Error };

/** `sqlite-thread.js`. */
class Thread {
  readonly #worker: Worker;
  /** A tenure has to wait when another operation has been given its thread. */
  readonly #mutex = new Mutex();
  #waiting = 0;

  constructor(driver: string, file: string) {
    this.#worker = new Worker(resolve('test/guard/sqlite-thread.js'), { workerData: { guard: GUARD, driver, file } });
  }

  get busy(): boolean {
    return this.#waiting > 0;
  }

  run(task: Task, between: Between): Promise<Outcome<undefined>> {
    this.#waiting++;
    return this.#mutex.run(() => this.#run(task, between)).finally(() => this.#waiting--);
  }

  #run(task: Task, between: Between): Promise<Outcome<undefined>> {
    const gate = between === NOTHING ? undefined : new Int32Array(new SharedArrayBuffer(4));
    const open = (how: 1 | 2): void => {
      if (gate === undefined) return;
      Atomics.store(gate, 0, how);
      Atomics.notify(gate, 0);
    };
    return new Promise<Outcome<undefined>>((done, fail) => {
      this.#worker.once('error', fail);
      const hear = (news: News): void => {
        if (news.type === 'between') {
          between().then(
            () => {
              open(1);
            },
            () => {
              open(2);
            },
          );
          return;
        }
        this.#worker.off('message', hear);
        this.#worker.off('error', fail);
        if (news.type === 'ended') done(news.outcome);
        else fail(news.error);
      };
      this.#worker.on('message', hear);
      this.#worker.postMessage({ ...task, gate });
    });
  }

  async close(): Promise<void> {
    const gone = new Promise((done) => this.#worker.once('exit', done));
    this.#worker.postMessage('close');
    await gone;
  }
}

class SqliteStore implements GuardedStore {
  readonly maxJump = 631_152_000_000_000n;
  readonly #directory: string;
  readonly #file: string;
  readonly #driver: string;
  readonly #connect: () => SqliteConnection;
  #db: SqliteConnection;
  #threads: Thread[] = [];
  #tenures = 0;

  private constructor(directory: string, driver: string, open: (file: string) => SqliteConnection) {
    this.#directory = directory;
    this.#file = join(directory, 'data.db');
    this.#driver = driver;
    this.#connect = () => {
      const db = open(this.#file);
      db.exec('pragma journal_mode = wal');
      db.exec('pragma synchronous = full');
      return db;
    };
    this.#db = this.#connect();
    this.#db.exec('create table rows (domain text, item text, value text, primary key (domain, item))');
  }

  static async create(driver: string, open: (file: string) => SqliteConnection): Promise<SqliteStore> {
    return new SqliteStore(await mkdtemp(join(tmpdir(), 'fencepost-conformance-')), driver, open);
  }

  async open(lease: FencedLease): ReturnType<GuardedStore['open']> {
    const thread = this.#idle();
    const tenure = this.#tenures++;
    const opened = await thread.run({ type: 'open', leases: [lease], tenure }, NOTHING);
    if (opened.status !== 'applied') return opened;
    const write = (item: string, value: string, between: Between): Promise<Outcome<undefined>> =>
      thread.run({ type: 'tenure', leases: [lease], item, value, tenure }, between);
    return { ...opened, value: { write } };
  }

  write(lease: FencedLease, item: string, value: string, between: Between): Promise<Outcome<undefined>> {
    return this.#idle().run({ type: 'run', leases: [lease], item, value }, between);
  }

  read(domain: string, item: string): Promise<string | undefined> {
    const row = this.#db.prepare('select value from rows where domain = ? and item = ?').get(domain, item);
    return Promise.resolve((row as { readonly value: string } | undefined)?.value);
  }

  async close(): Promise<void> {
    await this.#disconnect();
    await rm(this.#directory, { recursive: true, force: true });
  }

  remove(lease: FencedLease, item: string): Promise<Outcome<undefined>> {
    return this.#idle().run({ type: 'run', leases: [lease], item }, NOTHING);
  }

  writeAll(leases: readonly FencedLease[], item: string, value: string): Promise<Outcome<undefined>> {
    return this.#idle().run({ type: 'run', leases, item, value }, NOTHING);
  }

  async writeAndCrash(lease: FencedLease, item: string, value: string): Promise<void> {
    const script = `
      import { writeSync } from 'node:fs';
      import { createRequire } from 'node:module';
      import { sqliteFence } from '${GUARD}';
      const [driver, file, lease, item, value] = process.argv.slice(1);
      const loaded = createRequire(file)(driver);
      const db = new (loaded.DatabaseSync ?? loaded)(file);
      db.exec('pragma synchronous = full');
      const { token, ...rest } = JSON.parse(lease);
      sqliteFence(db).run({ ...rest, token: BigInt(token) }, (tx) => {
        tx.prepare('update rows set value = ? where domain = ? and item = ?').run(value, rest.domain, item);
        writeSync(1, 'checked');
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      });`;
    const text = JSON.stringify({ ...lease, token: lease.token.toString() });
    await killedInside(script, this.#driver, this.#file, text, item, value);
  }

  /** The transaction is committed, and then the call fails: all that can be lost of an answer without a network. */
  writeLosingResponse(lease: FencedLease, item: string, value: string): Promise<Outcome<undefined>> {
    const db = this.#db;
    const losing = {
      prepare: (sql: string) => db.prepare(sql),
      exec(sql: string): void {
        db.exec(sql);
        if (sql === 'commit') throw new Error('the answer is lost');
      },
    };
    return new Promise((done) => {
      done(
        sqliteFence(losing).run(lease, (tx) => {
          tx.prepare('update rows set value = ? where domain = ? and item = ?').run(value, lease.domain, item);
          return undefined;
        }),
      );
    });
  }

  async restart(): Promise<void> {
    await this.#disconnect();
    this.#db = this.#connect();
  }

  /** What SQLite drops, it drops here. */
  age(): Promise<void> {
    this.#db.exec('vacuum');
    return Promise.resolve();
  }

  reset(lease: FencedLease): Promise<void> {
    sqliteFence(this.#db).reset(lease);
    return Promise.resolve();
  }

  allowIssuer(domain: string, cluster: string): Promise<void> {
    sqliteFence(this.#db).allowIssuer(domain, cluster);
    return Promise.resolve();
  }

  #idle(): Thread {
    const idle = this.#threads.find(({ busy }) => !busy) ?? new Thread(this.#driver, this.#file);
    if (!this.#threads.includes(idle)) this.#threads.push(idle);
    return idle;
  }

  async #disconnect(): Promise<void> {
    await Promise.all(this.#threads.splice(0).map((thread) => thread.close()));
    this.#db.close();
  }
}

function subjectOf(driver: string, open: (file: string) => SqliteConnection): GuardSubject {
  return {
    name: 'SQLite',
    create: () => SqliteStore.create(driver, open),
    skips: { 'write without a lease': 'the guard sees only what passes through it' },
  };
}

/** What `require` takes, from anywhere. */
function pathOf({ name }: SqliteDriver): string {
  return name === 'node:sqlite' ? name : createRequire(resolve('test/servers/package.json')).resolve(name);
}

describe.each(SQLITE)('$name', (driver) => {
  const { open } = driver;
  if (open === undefined) it.skip('passes the conformance kit');
  else describeConformance(subjectOf(pathOf(driver), open));
});
