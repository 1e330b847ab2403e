import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { levelFence } from '../../src/guard/leveldb.js';
import type { LevelFence, LevelWork } from '../../src/guard/leveldb.js';
import type { Between, GuardedStore, GuardSubject } from '../../src/guard/conformance/index.js';
import { builtModule, killedInside } from './killed.js';
import { describeConformance } from './suite.js';

const CRASH = `
  import { ClassicLevel } from 'classic-level';
  import { levelFence } from '${builtModule('guard/leveldb.js')}';
  const [directory, lease, row, value] = process.argv.slice(1);
  const db = new ClassicLevel(directory);
  await db.open();
  const { token, ...rest } = JSON.parse(lease);
  await levelFence(db).run({ ...rest, token: BigInt(token) }, async (data) => {
    data.put(row, value);
    process.stdout.write('checked');
    await new Promise(() => setInterval(() => {}, 1000));
  });`;

class LevelStore implements GuardedStore {
  readonly maxJump = 631_152_000_000_000n;
  readonly #directory: string;
  #db: ClassicLevel;
  #fence: LevelFence<string, string>;

  private constructor(directory: string, db: ClassicLevel) {
    this.#directory = directory;
    this.#db = db;
    this.#fence = levelFence(db);
  }

  static async create(): Promise<LevelStore> {
    const directory = await mkdtemp(join(tmpdir(), 'fencepost-conformance-'));
    const db = new ClassicLevel(directory);
    await db.open();
    return new LevelStore(directory, db);
  }

  async open(...[lease]: Parameters<GuardedStore['open']>): ReturnType<GuardedStore['open']> {
    const opened = await this.#fence.open(lease);
    if (opened.status !== 'applied') return opened;
    return {
      ...opened,
      value: { write: (item, value, between) => opened.value.run(put(lease.domain, item, value, between)) },
    };
  }

  write(...[lease, item, value, between]: Parameters<GuardedStore['write']>) {
    return this.#fence.run(lease, put(lease.domain, item, value, between));
  }

  read(domain: string, item: string): Promise<string | undefined> {
    return this.#db.get(rowOf(domain, item));
  }

  async close(): Promise<void> {
    await this.#db.close();
    await rm(this.#directory, { recursive: true, force: true });
  }

  remove(...[lease, item]: Parameters<NonNullable<GuardedStore['remove']>>) {
    return this.#fence.run(lease, (data) => {
      data.del(rowOf(lease.domain, item));
    });
  }

  writeAll(...[leases, item, value]: Parameters<NonNullable<GuardedStore['writeAll']>>) {
    return this.#fence.run(leases, (data) => {
      for (const { domain } of leases) data.put(rowOf(domain, item), value);
    });
  }

  async writeAndCrash(...[lease, item, value]: Parameters<NonNullable<GuardedStore['writeAndCrash']>>) {
    await this.#db.close();
    const text = JSON.stringify({ ...lease, token: lease.token.toString() });
    await killedInside(CRASH, this.#directory, text, rowOf(lease.domain, item), value);
    await this.restart();
  }

  /** The batch is there, and then the call fails: all that can be lost of an answer within a process. */
  async writeLosingResponse(...[lease, item, value]: Parameters<NonNullable<GuardedStore['writeLosingResponse']>>) {
    const losing = levelFence<string, string>({
      get: (key: string, ...rest: []) => this.#db.get(key, ...rest),
      batch: async (...args: Parameters<typeof this.batch>) => {
        await this.batch(...args);
        throw new Error('the answer is lost');
      },
    });
    return losing.run(lease, (data) => {
      data.put(rowOf(lease.domain, item), value);
    });
  }

  async restart(): Promise<void> {
    if (this.#db.status === 'open') await this.#db.close();
    this.#db = new ClassicLevel(this.#directory);
    await this.#db.open();
    this.#fence = levelFence(this.#db);
  }

  /** LevelDB drops what may go when it compacts. */
  age(): Promise<void> {
    return this.#db.compactRange('', '\u{10ffff}');
  }

  reset(...[lease]: Parameters<NonNullable<GuardedStore['reset']>>): Promise<void> {
    return this.#fence.reset(lease);
  }

  async allowIssuer(domain: string, cluster: string): Promise<void> {
    await this.#fence.allowIssuer(domain, cluster);
  }

  private batch(...args: Parameters<Parameters<typeof levelFence<string, string>>[0]['batch']>): Promise<void> {
    return this.#db.batch(...args);
  }
}

function rowOf(domain: string, item: string): string {
  return `${domain} ${item}`;
}

function put(domain: string, item: string, value: string, between: Between): LevelWork<string, string, void> {
  return async (data) => {
    data.put(rowOf(domain, item), value);
    await between();
  };
}

const LEVELDB: GuardSubject = {
  name: 'LevelDB',
  create: () => LevelStore.create(),
  skips: { 'write without a lease': 'the guard sees only what passes through it' },
};

describeConformance(LEVELDB);
