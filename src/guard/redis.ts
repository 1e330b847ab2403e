/**
 * A guard for Redis 7 and later: the fence of a domain is a hash beside the data, and each operation is one Lua
 * script that compares, raises and carries out, so that nobody comes between. Works with `ioredis` and node-redis; Valkey and
 * `iovalkey` have the same interfaces, but no test runs them.
 * A holder that stands still keeps nobody out: nothing is open at the server between two operations.
 *
 * Redis keeps what it was told to keep. The server needs `appendonly yes` and `appendfsync always`, or a power failure takes
 * back a raise that somebody relied on; a `maxmemory-policy` that is not `allkeys-…` (`noeviction`), or it evicts fences;
 * {@link fenceFaults} looks. **Not protected, whatever the settings: data across a failover.** Replication is asynchronous,
 * and a replica that is promoted may never have had the raise; `WAIT` and `min-replicas-to-write` only make that rarer. Nor
 * what goes past the guard, `FLUSHALL`, a backup that is restored, reads outside of a run, two processes under one token.
 *
 * @packageDocumentation
 */
import { admit, checkLease, copyOf, fenceOf, issuerOf, leasesOf } from './fence.js';
import type { Fence } from './fence.js';
import { evaluatorOf } from './redis-client.js';
import type { RedisArgument, RedisClient, Script } from './redis-client.js';
import { ALLOW, fenceKey, preparedCall, preparedCommands, READ, RESET } from './redis-script.js';
import type { Prepared, RedisCommand, ScriptCall } from './redis-script.js';
import type { Applied, FencedLease, Rejected, Stale } from './types.js';

export type { Fence } from './fence.js';
export type { IoredisClient, NodeRedisClient, RedisArgument, RedisClient } from './redis-client.js';
export { fenceFaults } from './redis-doctor.js';
export type { RedisServer } from './redis-doctor.js';
export { fencedScript } from './redis-script.js';
export type { FencedScript, RedisCommand, ScriptCall } from './redis-script.js';
export type { Applied, FencedLease, Rejected, Stale } from './types.js';

/**
 * How a guarded operation ends on Redis: neither `missing` nor `retry` occurs. What your commands found is in their
 * replies; operations follow one another at the server, so none fails because of another.
 */
export type RedisOutcome<T> = Applied<T> | Stale | Rejected;

/**
 * A command of a list failed. Redis undoes nothing: the fence stands, the commands before it were carried out and stay,
 * those after it were not tried.
 */
export class RedisCommandError extends Error {
  /** Its place in the list, from 0. */
  readonly at: number;
  /** The replies to the commands before it. */
  readonly replies: readonly unknown[];

  /** Made by a run. */
  constructor(commands: readonly RedisCommand[], replies: readonly unknown[], reply: string) {
    const at = replies.length;
    super(
      `command ${at + 1} of ${commands.length} (${commands[at]?.[0] ?? ''}) failed: ${reply}. The ${at} before it were carried ` +
        'out and stay, the others were not tried',
    );
    this.name = 'RedisCommandError';
    this.at = at;
    this.replies = replies;
  }
}

/** A tenure that has raised its fence: from here on no lower token is accepted, so what it reads stays true. */
export interface RedisTenure {
  /** Whose fence it raised. */
  readonly domain: string;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link RedisFence.run} under the lease that was opened. */
  run(commands: readonly RedisCommand[]): Promise<RedisOutcome<readonly unknown[]>>;
  /** As {@link RedisFence.run} under the lease that was opened. */
  run(call: ScriptCall): Promise<RedisOutcome<unknown>>;
}

/** A guard over one server, or one Redis Cluster. */
export interface RedisFence {
  /**
   * Begins a tenure: raises the fence to the lease's token before anything is read. Do this first; without it a
   * predecessor may still write between your first read and your first write.
   */
  open(lease: FencedLease): Promise<RedisOutcome<RedisTenure>>;
  /**
   * Checks and raises the fence and carries out these commands, in their order, in one step; its value is their replies, as
   * the driver gives them. When the lease is stale or rejected none is carried out. An operation on several domains takes a
   * lease of each (on Redis Cluster their fences have to lie in one slot): all fences are checked and raised, or none.
   *
   * Throws a {@link RedisCommandError} when a command fails, with those before it carried out; a TypeError, and nothing is
   * sent, for what is no command; what the server says when it refuses the whole (no memory, a replica, a full disk), with
   * nothing done; an Error, with nothing done, when the stored fence is damaged. When the connection is lost before the
   * answer has come nobody knows: it throws what the driver says, and you look.
   */
  run(
    lease: FencedLease | readonly FencedLease[],
    commands: readonly RedisCommand[],
  ): Promise<RedisOutcome<readonly unknown[]>>;
  /** The same for a script of yours, see {@link fencedScript}: its value is what the script returns. */
  run(lease: FencedLease | readonly FencedLease[], call: ScriptCall): Promise<RedisOutcome<unknown>>;
  /** The fence of a domain, undefined when nobody has written under it. For operators. Throws an Error when it is damaged. */
  fence(domain: string): Promise<Fence | undefined>;
  /**
   * For operators: from now on the fence of this domain takes tokens of the cluster `cluster`, and no others. It
   * stays where it is, so the new cluster's tokens have to be greater (form it with a floor). False when there is no fence.
   * Throws an Error, with nothing done, when it is damaged.
   */
  allowIssuer(domain: string, cluster: string): Promise<boolean>;
  /**
   * For operators: sets the fence to what this lease says, also lower than it stands, and also when what is stored is
   * damaged. For one case: somebody presented a token that the cluster never granted, and shut the domain for all to come. It
   * has to be the lease that was granted last; after an older one stale holders pass.
   */
  reset(lease: FencedLease): Promise<void>;
}

/**
 * A guard over this connection. The fences lie under keys that begin with `fencepost:fence:`, without a time to live: do not
 * write there. Throws a TypeError when the client is none, and when it would send an operation again whose answer was
 * lost: `ioredis` and `iovalkey` need `maxRetriesPerRequest: 0`, their `Cluster` `retryDelayOnFailover: 0`.
 */
export function redisFence(client: RedisClient): RedisFence {
  const evaluate = evaluatorOf(client);

  /** Runs a script on these fences, and gives what it answers: its status, and the facts of that. */
  const ask = async (
    domains: readonly string[],
    script: Script,
    keys: readonly string[],
    args: readonly RedisArgument[],
  ): Promise<readonly [string, ...unknown[]]> => {
    const fences = domains.map(fenceKey);
    const sent = [String(domains.length), fences[0] ?? '', ...args];
    const [status, ...facts] = (await evaluate(script, [...fences, ...keys], sent)) as readonly unknown[];
    if (String(status) === 'prefixed') {
      throw new TypeError(
        `this client writes ${String(facts[0])} for ${fences[0] ?? ''}, and would do so in some places of an operation only: ` +
          'use one without a keyPrefix, and write it into your keys',
      );
    }
    if (String(status) === 'damaged') throw damaged(domains[Number(facts[0]) - 1] ?? '', String(facts[1]));
    return [String(status), ...facts];
  };

  const send = async (leases: readonly FencedLease[], work: Prepared): Promise<RedisOutcome<unknown>> => {
    const fences = leases
      .map(fenceOf)
      .flatMap(({ token, issuer, incarnation }) => [String(token), issuer, incarnation]);
    const domains = leases.map(({ domain }) => domain);
    const [status, ...facts] = await ask(domains, work.script, work.keys, [...fences, ...work.args]);
    if (status === 'applied') {
      const [earlier, value] = facts as [readonly unknown[], unknown];
      return { status: 'applied', value, earlierIncarnation: earlier.map(String)[0] };
    }
    const lease = leases[Number(facts[0]) - 1];
    if (lease === undefined)
      throw new Error(`an answer that the guard's script does not give: ${status} ${String(facts)}`);
    const verdict = admit(fenceFrom(facts.slice(1)), lease);
    // Both compare by the same rules; the words are of `admit`.
    if (verdict.status === 'admitted') throw new Error(`the server refused what may act: ${String(facts)}`);
    return verdict;
  };

  const run = async (
    given: FencedLease | readonly FencedLease[],
    work: readonly RedisCommand[] | ScriptCall,
  ): Promise<RedisOutcome<unknown>> => {
    const leases = leasesOf(given);
    if (!isList(work)) return send(leases, preparedCall(work));
    const outcome = await send(leases, preparedCommands(work));
    if (outcome.status !== 'applied') return outcome;
    const [replies, ...failure] = outcome.value as [readonly unknown[], ...unknown[]];
    if (failure.length > 0) throw new RedisCommandError(work, replies, failure.map(String).join());
    return { ...outcome, value: replies };
  };

  return {
    run: run as RedisFence['run'],
    async open(lease) {
      const opened = copyOf(lease);
      const { domain, token } = opened;
      const raised = await run(opened, []);
      if (raised.status !== 'applied') return raised;
      const runOpened = (work: readonly RedisCommand[] | ScriptCall) => run(opened, work);
      return { ...raised, value: { domain, token, run: runOpened as RedisTenure['run'] } };
    },
    async fence(domain) {
      const [, , stored] = (await ask([domain], READ, [], [])) as [string, unknown, readonly unknown[]];
      return stored.length === 0 ? undefined : fenceFrom(stored);
    },
    async allowIssuer(domain, cluster) {
      const [, , done] = await ask([domain], ALLOW, [], [issuerOf(cluster)]);
      return Number(done) === 1;
    },
    async reset(lease) {
      checkLease(lease);
      const { token, issuer, incarnation } = fenceOf(lease);
      await ask([lease.domain], RESET, [], [String(token), issuer, incarnation]);
    },
  };
}

function isList(work: readonly RedisCommand[] | ScriptCall): work is readonly RedisCommand[] {
  return Array.isArray(work);
}

/** Texts, or what a driver was told to make of them; the server has looked whether they are a fence. */
function fenceFrom([token, issuer, incarnation]: readonly unknown[]): Fence {
  return { token: BigInt(String(token)), issuer: String(issuer), incarnation: String(incarnation) };
}

function damaged(domain: string, what: string): Error {
  return new Error(
    `the fence of ${domain}, in ${fenceKey(domain)}, is damaged: ${what}. Nothing was changed. Find out who wrote there, then ` +
      'call reset with the lease that was granted last',
  );
}
