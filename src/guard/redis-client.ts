/** The part of a driver that the guard of Redis uses, by the calling conventions of the two families. */
import { createHash } from 'node:crypto';

/** A value that a driver sends as it is. */
export type RedisArgument = string | Buffer;

/** `ioredis` 5 and later, `iovalkey`: their `Redis` and their `Cluster`. */
export interface IoredisClient {
  /** Runs a script that the server has kept, by its SHA-1. */
  evalsha(sha1: string, numkeys: number, ...args: RedisArgument[]): Promise<unknown>;
  /** Runs a script, which the server keeps. */
  eval(script: string, numkeys: number, ...args: RedisArgument[]): Promise<unknown>;
  /** Tells `Cluster` from `Redis`. */
  readonly isCluster: boolean;
  /** What it was made with: whether it sends a command again whose answer was lost. */
  readonly options: {
    readonly maxRetriesPerRequest?: number | null | undefined;
    readonly retryDelayOnFailover?: number | undefined;
  };
}

/** Node-redis (the package `redis`) 4 and later: what `createClient` and `createCluster` make. */
export interface NodeRedisClient {
  /** Runs a script that the server has kept, by its SHA-1. */
  evalSha(sha1: string, options: { keys: string[]; arguments: RedisArgument[] }): Promise<unknown>;
  /** Runs a script, which the server keeps. */
  eval(script: string, options: { keys: string[]; arguments: RedisArgument[] }): Promise<unknown>;
}

/** A connection to Redis or Valkey. */
export type RedisClient = IoredisClient | NodeRedisClient;

/** A script and its name at the server. */
export interface Script {
  readonly lua: string;
  readonly sha1: string;
}

export function scriptOf(lua: string): Script {
  return { lua, sha1: createHash('sha1').update(lua).digest('hex') };
}

export type Evaluate = (script: Script, keys: string[], args: RedisArgument[]) => Promise<unknown>;

/**
 * One way for both. By its SHA-1 first; a server that does not know it has run nothing, so sending it whole is no
 * repetition.
 */
export function evaluatorOf(client: RedisClient): Evaluate {
  const [known, whole] = callsOf(client);
  return async (script, keys, args) => {
    try {
      return await known(script.sha1, keys, args);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return whole(script.lua, keys, args);
    }
  };
}

type Call = (script: string, keys: string[], args: RedisArgument[]) => Promise<unknown>;

function callsOf(client: RedisClient): readonly [Call, Call] {
  if ('evalSha' in client) {
    return [
      (sha1, keys, args) => client.evalSha(sha1, { keys, arguments: args }),
      (lua, keys, args) => client.eval(lua, { keys, arguments: args }),
    ];
  }
  if (typeof (client as Partial<IoredisClient>).evalsha !== 'function') {
    throw new TypeError('not a client of Redis: it has neither the evalsha of ioredis nor the evalSha of node-redis');
  }
  checkSendsOnce(client);
  return [
    (sha1, keys, args) => client.evalsha(sha1, keys.length, ...keys, ...args),
    (lua, keys, args) => client.eval(lua, keys.length, ...keys, ...args),
  ];
}

/**
 * As these drivers come, they send whatever was under way once more when they have connected again. Under a guard that
 * would carry out an operation twice, and report one as stale that was carried out before its successor came.
 */
function checkSendsOnce({ isCluster, options }: IoredisClient): void {
  const [name, value] = isCluster
    ? (['retryDelayOnFailover', options.retryDelayOnFailover] as const)
    : (['maxRetriesPerRequest', options.maxRetriesPerRequest] as const);
  if (value === 0) return;
  const how = isCluster
    ? 'new Cluster(nodes, { retryDelayOnFailover: 0 })'
    : 'client.duplicate({ maxRetriesPerRequest: 0 })';
  throw new TypeError(
    `${name} of this client is ${value}: it would send an operation again whose answer was lost, which may carry it out ` +
      `twice. It has to be 0: ${how}`,
  );
}
