/** `fencepost fence` for the fences of a Redis server, through the user's own `ioredis` or node-redis. */
import { serverFaults } from '../../guard/redis-doctor.js';
import { FAULT, fenceKey, PREFIX } from '../../guard/redis-script.js';
import { fault } from './findings.js';
import { RedisConnection } from './redis-connection.js';
import { ResourceError } from './resource-error.js';
import type { Diagnosis, FenceStore, Finding, ResetRequest, ResourceKind, StoredFence } from './store.js';

/** So many fences are read at once. */
const PAGE = 1_000;

/** Nothing, or what is wrong with the fence, or its parts. */
const LOOK = `
${FAULT}
local ttl = redis.call('PTTL', KEYS[1])
if ttl == -2 then return {} end
local stored = redis.pcall('HMGET', KEYS[1], 'token', 'issuer', 'incarnation')
local damage = fault(stored, ttl)
if damage then return {damage} end`;

const READ = `#!lua flags=no-writes${LOOK}
return stored`;

/** ARGV: token, note, and an incarnation where another is to stand. One script, so that none can be raised in between. */
const RESET = `#!lua${LOOK}
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'incarnation', ARGV[3] or stored[3])
redis.call('RPUSH', KEYS[2], cjson.encode({
  at = time[1] .. string.format('%06d', time[2]), token_before = stored[1], token_after = ARGV[1], note = ARGV[2],
}))
return stored`;

/** Why operators changed a fence by hand: a list of JSON documents, `at` in microseconds. The guard does not look at it. */
function historyKey(domain: string): string {
  return `fencepost:history:{${domain}}`;
}

/** See the file's head. */
export const redis: ResourceKind = {
  schemes: ['redis', 'rediss'],
  form: 'redis://HOST:PORT/DATABASE',
  migration: () => undefined,
  addressFault: (address) => {
    if (!URL.canParse(address)) return 'is no URL; special characters are written as %XX';
    const { hostname, pathname } = new URL(address);
    if (hostname === '') return 'names no host: redis://HOST:PORT/DATABASE';
    return databaseOf(pathname) === undefined ? 'names a database that is no number: redis://HOST:PORT/0' : undefined;
  },
  async open(address, surroundings) {
    const url = new URL(address);
    const connection = new RedisConnection(url, surroundings);
    return new RedisStore(connection, await connection.open(databaseOf(url.pathname) ?? '0'));
  },
};

function databaseOf(pathname: string): string | undefined {
  const [, number] = /^\/?(\d*)$/.exec(pathname) ?? [];
  return number === '' ? '0' : number;
}

/** A fence, or why it is none. */
type Look = StoredFence | { readonly domain: string; readonly damage: string } | undefined;

class RedisStore implements FenceStore {
  readonly name: string;
  readonly #connection: RedisConnection;
  /** Is this one node of a Redis Cluster? */
  readonly #isNode: boolean;

  constructor(connection: RedisConnection, info: string) {
    this.#connection = connection;
    const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
    const version = valkey ?? /^redis_version:(\S+)/m.exec(info)?.[1] ?? '';
    this.name = `${valkey === undefined ? 'Redis' : 'Valkey'} ${version}, ${connection.place}`;
    this.#isNode = /^cluster_enabled:1/m.test(info);
  }

  migrate() {
    return Promise.resolve(undefined);
  }

  async *fences(): AsyncGenerator<StoredFence> {
    for await (const look of this.#all()) yield whole(look);
  }

  async fence(domain: string) {
    const look = await this.#read(domain);
    return look === undefined ? undefined : whole(look);
  }

  observed() {
    // The guard alone compares here: what goes past it is seen by nobody.
    return Promise.resolve([]);
  }

  async reset({ domain, token, note, incarnation }: ResetRequest) {
    const keys = [fenceKey(domain), historyKey(domain)];
    const more = incarnation === undefined ? [] : [incarnation];
    const reply = await this.#connection.change('EVAL', RESET, '2', ...keys, String(token), note, ...more);
    const look = lookOf(domain, reply);
    return look === undefined ? undefined : whole(look);
  }

  async diagnose(): Promise<Diagnosis> {
    const findings = [...(await this.#settings())];
    if (this.#isNode)
      findings.push(
        fault(
          'cluster-node',
          'this server',
          'is one node of a Redis Cluster, and the others have fences too: ask each',
        ),
      );
    let readable = true;
    for await (const look of this.#all())
      if ('damage' in look) {
        readable = false;
        findings.push(fault('damaged', look.domain, whatToDo(look)));
      }
    return { findings, readable };
  }

  close() {
    this.#connection.close();
    return Promise.resolve();
  }

  async #settings(): Promise<readonly Finding[]> {
    try {
      const server = { call: (command: string, args: string[]) => this.#connection.ask(command, ...args) };
      const faults = await serverFaults(server);
      return faults.map(({ code, subject, message }) => fault(code, subject, message));
    } catch (error) {
      if (!(error instanceof ResourceError) || error.code !== 'REFUSED') throw error;
      const where = 'where the server is managed: maxmemory-policy, appendonly, appendfsync, replicas';
      return [fault('settings-hidden', 'CONFIG', `${error.message}. Nothing is known of the settings: look ${where}`)];
    }
  }

  /** By domain. */
  async *#all(): AsyncGenerator<Exclude<Look, undefined>> {
    // A key may come more than once.
    const found = new Set<string>();
    let cursor = '0';
    do {
      const reply = await this.#connection.ask('SCAN', cursor, 'MATCH', `${PREFIX}{*}`, 'COUNT', String(PAGE));
      const [next, keys] = reply as readonly [unknown, readonly unknown[]];
      for (const key of keys) found.add(String(key).slice(PREFIX.length + 1, -1));
      cursor = String(next);
    } while (cursor !== '0');
    const domains = [...found].sort();
    for (let at = 0; at < domains.length; at += PAGE) {
      const page = await Promise.all(domains.slice(at, at + PAGE).map((domain) => this.#read(domain)));
      yield* page.filter((look) => look !== undefined);
    }
  }

  async #read(domain: string): Promise<Look> {
    return lookOf(domain, await this.#connection.ask('EVAL_RO', READ, '1', fenceKey(domain)));
  }
}

function lookOf(domain: string, reply: unknown): Look {
  const [first, issuer, incarnation] = (reply as readonly unknown[]).map(String);
  if (first === undefined) return undefined;
  if (issuer === undefined || incarnation === undefined) return { domain, damage: first };
  return { domain, token: BigInt(first), issuer, incarnation, raisedAt: undefined };
}

function whole(look: Exclude<Look, undefined>): StoredFence {
  if ('damage' in look) throw new ResourceError('REFUSED', `the fence of ${look.domain} ${whatToDo(look)}`);
  return look;
}

function whatToDo({ domain, damage }: { readonly domain: string; readonly damage: string }): string {
  return `is damaged, in ${fenceKey(domain)}: ${damage}. Find out who wrote there, then call reset of the guard with the lease that was granted last`;
}
