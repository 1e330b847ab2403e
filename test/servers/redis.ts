/** Redis servers for tests, of Debian's package `redis-server`, each on a folder and a port of its own, and the drivers. */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type * as ioredis from 'ioredis';
import type * as nodeRedis from 'redis';
import type { RedisClient } from '../../src/guard/redis.js';
import { freePorts } from '../process/cluster.js';

const NPM = resolve('test/servers/node_modules');
/** Also for programs that are bundled elsewhere; tests run in the root. */
const require = createRequire(resolve('test/servers/package.json'));
/** Only a broken run waits for so long, in milliseconds. */
const LIMIT_MS = 60_000;

/** What is missing on this machine; undefined when nothing is. */
export const REDIS_MISSING = missing();

function missing(): string | undefined {
  if (spawnSync('redis-server', ['--version']).status !== 0) return 'missing: apt-get install redis-server';
  const drivers = ['ioredis', 'redis'].every((name) => existsSync(join(NPM, name)));
  return drivers ? undefined : 'missing: npm ci --prefix test/servers';
}

/** A connection as tests need it, of either driver. */
export interface RedisConnection extends AsyncDisposable {
  /** For the guard. */
  readonly client: RedisClient;
  /** One command. */
  send(command: string, ...args: string[]): Promise<unknown>;
}

/** A driver. */
export interface RedisDriver {
  /** For the names of tests. */
  readonly name: 'ioredis' | 'node-redis';
  /** Connects to a server on this port; `keyPrefix` is the driver's own. */
  connect(port: number, keyPrefix?: string): Promise<RedisConnection>;
  /** Connects to the Redis Cluster of the one server on this port. */
  connectCluster(port: number): Promise<RedisConnection>;
}

/** Both; neither is loaded before it connects. */
export const REDIS_DRIVERS: readonly RedisDriver[] = [
  {
    name: 'ioredis',
    async connect(port, keyPrefix = '') {
      const client = newIoredis(port, { keyPrefix });
      await client.connect();
      return {
        client,
        send: (command, ...args) => client.call(command, args),
        [Symbol.asyncDispose]: () => ended(client),
      };
    },
    async connectCluster(port) {
      const { Cluster } = require('ioredis') as typeof ioredis;
      const options = { lazyConnect: true, retryDelayOnFailover: 0 };
      const client = new Cluster([{ host: '127.0.0.1', port }], options);
      client.on('error', () => undefined);
      await client.connect();
      return {
        client,
        send: (command, ...args) => client.call(command, args),
        [Symbol.asyncDispose]: () => ended(client),
      };
    },
  },
  {
    name: 'node-redis',
    async connect(port, keyPrefix = '') {
      const { createClient } = require('redis') as typeof nodeRedis;
      const client = createClient({ socket: { host: '127.0.0.1', port }, keyPrefix });
      client.on('error', () => undefined);
      await client.connect();
      return {
        client,
        send: (...command) => client.sendCommand(command),
        [Symbol.asyncDispose]: () => closed(client),
      };
    },
    async connectCluster(port) {
      const { createCluster } = require('redis') as typeof nodeRedis;
      const client = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
      client.on('error', () => undefined);
      await client.connect();
      return {
        client,
        send: (...command) => client.sendCommand(undefined, false, command),
        [Symbol.asyncDispose]: () => closed(client),
      };
    },
  },
];

/** Options of `ioredis` that tests set. */
interface IoredisOptions {
  readonly maxRetriesPerRequest?: number;
  readonly keyPrefix?: string;
  readonly enableReadyCheck?: boolean;
}

/** Of `ioredis`, not yet connected, with what the guard asks for; `more` goes to the driver. */
export function newIoredis(port: number, more: IoredisOptions = {}): ioredis.Redis {
  const { Redis } = require('ioredis') as typeof ioredis;
  const client = new Redis({ host: '127.0.0.1', port, lazyConnect: true, maxRetriesPerRequest: 0, ...more });
  return client.on('error', () => undefined);
}

function ended(client: { disconnect(): void }): Promise<void> {
  client.disconnect();
  return Promise.resolve();
}

function closed(client: { destroy(): void; readonly isOpen: boolean }): Promise<void> {
  if (client.isOpen) client.destroy();
  return Promise.resolve();
}

/** A running server that syncs what it acknowledges. Use with `await using`. */
export class RedisServer implements AsyncDisposable {
  readonly port: number;
  readonly #home: string;
  readonly #settings: readonly string[];
  #child: ChildProcess | undefined;

  private constructor(home: string, port: number, settings: readonly string[]) {
    this.#home = home;
    this.port = port;
    this.#settings = settings;
  }

  /** `settings` are as on its command line. */
  static async start(settings: readonly string[] = []): Promise<RedisServer> {
    if (REDIS_MISSING !== undefined) throw new Error(REDIS_MISSING);
    const [port = 0] = await freePorts(1);
    const server = new RedisServer(await mkdtemp(join(tmpdir(), 'fencepost-redis-')), port, settings);
    try {
      await server.run();
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts it with what is in its folder; it must have ended. */
  async run(): Promise<void> {
    const durable = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always'];
    const args = [
      '--port',
      String(this.port),
      '--bind',
      '127.0.0.1',
      '--dir',
      this.#home,
      ...durable,
      ...this.#settings,
    ];
    // On Linux it ends with this process, however that ends.
    const [program = '', ...rest] = [
      ...(process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL', '--'] : []),
      'redis-server',
      ...args,
    ];
    const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    let log = '';
    await new Promise<void>((done, fail) => {
      const timer = setTimeout(() => {
        fail(new Error(`Redis did not start: ${log}`));
      }, LIMIT_MS);
      child.once('error', fail);
      child.once('exit', () => {
        fail(new Error(`Redis ended: ${log}`));
      });
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        if (log.includes('Ready to accept connections')) return;
        log += text;
        if (!log.includes('Ready to accept connections')) return;
        clearTimeout(timer);
        child.removeAllListeners('exit');
        done();
      });
    });
  }

  /** As a crash of the process; also in the middle of a script. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((done) => child.once('exit', done));
    child.kill('SIGKILL');
    await gone;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    // A child that it had forked for its file may write for a moment longer.
    await rm(this.#home, { recursive: true, force: true, maxRetries: 10 });
  }
}
