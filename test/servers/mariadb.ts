/**
 * A real MariaDB server for tests: Debian's (`apt-get install mariadb-server`), on a folder and a port of its own. It does not
 * run as root, so under root it runs as `nobody`.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type * as mysql2 from 'mysql2/promise';
import { freePorts } from '../process/cluster.js';

export type { Pool, PoolConnection, PoolOptions } from 'mysql2/promise';

/** The server's program, which may be missing. */
export interface MariadbKind {
  /** For the names of tests; says what is missing when it is. */
  readonly name: string;
  /** Undefined when it cannot run here. */
  readonly program: string | undefined;
}

const DRIVER = resolve(import.meta.dirname, 'node_modules/mysql2');
const PROGRAM = '/usr/sbin/mariadbd';
/** `nobody` and its group, on Debian and everywhere else that has `setpriv`. */
const NOBODY = 65_534;
const ROOT = process.getuid?.() === 0;
/** Only a broken run waits for so long, in milliseconds. */
const LIMIT_MS = 60_000;

/** The one kind, also where it is missing. */
export const MARIADB: readonly MariadbKind[] = [
  [PROGRAM, '/usr/bin/mariadb-install-db', '/usr/bin/mariadb', DRIVER].every((path) => existsSync(path))
    ? { name: "Debian's MariaDB", program: PROGRAM }
    : {
        name: "Debian's MariaDB (missing: apt-get install mariadb-server, npm ci --prefix test/servers)",
        program: undefined,
      },
];

/** A command as whoever may run a server; it ends with this process, however that ends. */
function command(program: string, args: readonly string[]): [string, string[]] {
  const who = ROOT ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : [];
  return ['setpriv', [...who, '--pdeathsig', 'KILL', '--', program, ...args]];
}

/** A server. Use with `await using`. */
export class MariadbServer implements AsyncDisposable {
  /** Of the superuser, without a password, in the database `app`. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly user: string;
    readonly database: string;
  };
  readonly #home: string;
  readonly #flags: readonly string[];
  readonly #pools: mysql2.Pool[] = [];
  #child: ChildProcess | undefined;

  private constructor(home: string, port: number, settings: readonly string[]) {
    this.#home = home;
    this.#flags = [
      '--no-defaults',
      `--datadir=${join(home, 'data')}`,
      `--tmpdir=${home}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--socket=${join(home, 'socket')}`,
      `--pid-file=${join(home, 'pid')}`,
      ...settings.map((each) => `--${each}`),
    ];
    this.connection = { host: '127.0.0.1', port, user: 'root', database: 'app' };
  }

  /**
   * Creates the data and starts the server; `settings` are `name=value` of its configuration. By default what is committed
   * outlives the process, and not the machine.
   */
  static async start(
    { name, program }: MariadbKind,
    settings: readonly string[] = ['innodb-flush-log-at-trx-commit=2'],
  ): Promise<MariadbServer> {
    if (program === undefined) throw new Error(name);
    const home = await mkdtemp(join(tmpdir(), 'fencepost-mariadb-'));
    if (ROOT) await chown(home, NOBODY, NOBODY);
    const [port = 0] = await freePorts(1);
    try {
      const flags = ['--no-defaults', `--datadir=${join(home, 'data')}`, `--tmpdir=${home}`, '--skip-test-db'];
      const made = spawnSync(
        ...command('/usr/bin/mariadb-install-db', [...flags, '--auth-root-authentication-method=normal']),
        { cwd: home, encoding: 'utf8' },
      );
      if (made.status !== 0) throw new Error(`mariadb-install-db failed: ${made.stderr}${made.stdout}`);
      const server = new MariadbServer(home, port, settings);
      await server.run();
      server.apply('create database app', '');
      return server;
    } catch (error) {
      await rm(home, { recursive: true, force: true });
      throw error;
    }
  }

  /** Starts it, again after {@link kill}, with the data that it has. */
  async run(): Promise<void> {
    const child = spawn(...command(PROGRAM, this.#flags), { cwd: this.#home, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    await ready(child);
  }

  /** Ends it as a crash of its process does. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Runs SQL as the superuser, through the client that knows `delimiter`. */
  apply(sql: string, database = this.connection.database): void {
    const { host, port, user } = this.connection;
    const flags = ['--no-defaults', `--host=${host}`, `--port=${port}`, `--user=${user}`, '--protocol=tcp', database];
    const { status, stderr } = spawnSync('mariadb', flags, { input: sql, encoding: 'utf8' });
    if (status !== 0) throw new Error(`mariadb failed: ${stderr}`);
  }

  /** A pool of connections to this server, ended with it. `more` goes to the driver. */
  pool(more: mysql2.PoolOptions = {}): mysql2.Pool {
    const pool = newPool({ ...this.connection, ...more });
    this.#pools.push(pool);
    return pool;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.end().catch(() => undefined)));
    await this.#end('SIGTERM');
    await rm(this.#home, { recursive: true, force: true });
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((done) => child.once('exit', done));
    if (child.kill(signal)) await gone;
  }
}

/** A pool of the driver. */
export function newPool(options: mysql2.PoolOptions): mysql2.Pool {
  const { createPool } = createRequire(import.meta.url)('mysql2/promise') as typeof mysql2;
  return createPool(options);
}

async function ready(child: ChildProcess): Promise<void> {
  let log = '';
  await new Promise<void>((done, fail) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail(new Error(`MariaDB did not start: ${log}`));
    }, LIMIT_MS);
    child.once('error', fail);
    child.once('exit', () => {
      clearTimeout(timer);
      fail(new Error(`MariaDB ended: ${log}`));
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (log.includes('mariadbd: ready for connections')) return;
      log += text;
      if (!log.includes('mariadbd: ready for connections')) return;
      clearTimeout(timer);
      child.removeAllListeners('exit');
      done();
    });
  });
}
