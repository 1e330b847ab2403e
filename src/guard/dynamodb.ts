/**
 * A guard for DynamoDB: the fences are items of a table of their own, and each guarded operation is one transaction, which
 * checks that the fence stands where the guard believes, raises it where it has to, and carries out the writes. No item that
 * a TTL or a delete takes away has a fence in it.
 *
 * Not protected: writes past the guard, `BatchWriteItem` among them; reads; global tables, where the last writer wins across
 * regions and a fence holds in its own region only (those with strong consistency across regions refuse transactions, so
 * everything here throws); a table that is restored, whose fences are lower; two processes under one token, which nothing
 * orders. A transaction is one request, so nobody waits for a holder that stands still, and there is no limit of time.
 *
 * @packageDocumentation
 */
import { randomUUID } from 'node:crypto';
import { repeated } from './again.js';
import type { Attempt } from './again.js';
import { fenceIn, reasonsOf, standing, storing } from './dynamodb-fences.js';
import type { DynamoClient, DynamoWrite } from './dynamodb-fences.js';
import { admitAll, checkLease, copyOf, fenceOf, issuerOf, leasesOf } from './fence.js';
import type { Fence } from './fence.js';
import type { FencedLease, Outcome } from './types.js';

export type { DynamoAction, DynamoClient, DynamoWrite } from './dynamodb-fences.js';
export type { Fence } from './fence.js';
export type { Applied, FencedLease, Missing, Outcome, Rejected, Retry, Stale } from './types.js';

/** For {@link dynamoFence}. */
export interface DynamoFenceOptions {
  /** The table of the fences: its partition key is `domain`, a string; no sort key, no TTL. Nothing else lies in it. */
  readonly table: string;
}

/**
 * The writes of one operation. Only a guard makes one, so code that takes it cannot be called with a client. Unusable when the
 * work is over.
 */
export interface FencedWrites<W> {
  /**
   * Adds a put, update, delete or condition check to the transaction. When a condition of yours does not hold, nothing is
   * changed, and the outcome is `missing`. DynamoDB takes 100 in all, the fences included, and no item twice. Throws a
   * TypeError for the table of the fences.
   */
  write(action: W): void;
}

/** Gathers what is to be written. It is called once, before anything is compared, under a stale lease too: no other effect. */
export type DynamoWork<W, T> = (data: FencedWrites<W>) => Promise<T> | T;

/** A tenure that has raised its fence: from here on no lower token is accepted, so what it reads stays true. */
export interface DynamoTenure<W> {
  /** Whose fence it raised. */
  readonly domain: string;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link DynamoFence.run} under the lease that was opened. */
  run<T>(work: DynamoWork<W, T>): Promise<Outcome<T>>;
}

/** A guard over tables of one account and region. */
export interface DynamoFence<W> {
  /**
   * Begins a tenure: raises the fence to the lease's token before anything is read. Do this first, and then read with
   * `ConsistentRead`; without it a predecessor may still write between your first read and your first write.
   */
  open(lease: FencedLease): Promise<Outcome<DynamoTenure<W>>>;
  /**
   * Runs `work`, and carries out what it gathered together with the check of the fence, in one transaction that raises the
   * fence where it is lower. When `work` throws, nothing is sent. An operation on several domains takes a lease of each:
   * all are checked and raised, or none. Where other transactions are in the way it is sent anew, up to five times; then the
   * outcome is `retry`. Without writes it only raises the fence.
   *
   * An answer that is lost the client asks for again under the same request token, which DynamoDB carries out once. When the client
   * gives up, nobody knows: it throws, and you look. Throws also what DynamoDB says otherwise.
   */
  run<T>(lease: FencedLease | readonly FencedLease[], work: DynamoWork<W, T>): Promise<Outcome<T>>;
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

/**
 * A guard through `new DynamoDB(…)` of `@aws-sdk/client-dynamodb`. It needs the rights `dynamodb:GetItem`, `PutItem` and
 * `ConditionCheckItem` on the table of the fences, and yours on the tables of the data.
 */
export function dynamoFence<W extends DynamoWrite>(
  client: DynamoClient<W>,
  { table }: DynamoFenceOptions,
): DynamoFence<W> {
  if (typeof table !== 'string' || table === '') throw new TypeError('table must be the name of a table');

  /** Which of the fences were not as believed, or why nothing was done; undefined when all was. Throws other errors. */
  const transact = async (actions: readonly object[], writes: readonly W[]) => {
    // What the guard builds fits what every client takes; that is seen by its tests, with the real types.
    const items = [...(actions as readonly W[]), ...writes];
    try {
      await client.transactWriteItems({ TransactItems: items, ClientRequestToken: randomUUID() });
      return undefined;
    } catch (error) {
      const reasons = reasonsOf(error);
      const failed = reasons?.map(({ Code: code }) => code === 'ConditionalCheckFailed') ?? [];
      const isConflict = reasons?.some(({ Code: code }) => code === 'TransactionConflict') ?? false;
      const fences = actions.map((_, at) => (failed[at] === true ? { item: reasons?.[at]?.Item } : undefined));
      if (!failed.includes(true) && !isConflict) throw error;
      const isJudged = actions.every((_, at) =>
        ['None', 'ConditionalCheckFailed'].includes(reasons?.[at]?.Code ?? 'None'),
      );
      return { fences, isConflict, isJudged, cause: error };
    }
  };

  const read = async (domain: string): Promise<Fence | undefined> => {
    const input = { TableName: table, Key: { domain: { S: domain } }, ConsistentRead: true };
    return fenceIn(table, domain, (await client.getItem(input)).Item);
  };

  const run = async <T>(given: FencedLease | readonly FencedLease[], work: DynamoWork<W, T>): Promise<Outcome<T>> => {
    const leases = leasesOf(given);
    const { value, writes } = await gathered(table, work);
    // Mostly it stands already; where it does not, the transaction says so.
    const seen = new Map(leases.map((lease) => [lease.domain, fenceOf(lease) as Fence | undefined]));
    if (writes.length === 0) for (const { domain } of leases) seen.set(domain, await read(domain));

    const attempt = async (): Promise<Attempt<T>> => {
      const verdict = admitAll(leases, (domain) => seen.get(domain));
      if (verdict.status !== 'admitted') return verdict;
      const { raised, earlierIncarnation } = verdict;
      const applied: Attempt<T> = { status: 'applied', value, earlierIncarnation };
      if (raised.length === 0 && writes.length === 0) return applied;
      const actions = leases.map((lease) => {
        const raise = raised.find(({ domain }) => domain === lease.domain);
        if (raise === undefined) return standing(table, lease);
        return storing(table, lease.domain, raise.fence, { fence: seen.get(lease.domain) });
      });
      const refused = await transact(actions, writes);
      if (refused === undefined) return applied;
      const { fences, isConflict, isJudged, cause } = refused;
      for (const [at, { domain }] of leases.entries()) {
        const now = fences[at];
        if (now !== undefined) seen.set(domain, fenceIn(table, domain, now.item));
      }
      const isMoved = fences.some((now) => now !== undefined);
      if (isMoved || isConflict) return { status: 'again', cause, last: false };
      // It was throttled, say: then nobody has looked at the fence.
      if (!isJudged) throw cause;
      return { status: 'missing' };
    };

    const first = await attempt();
    // The fence was not as believed, which is how every raise begins: now it is known, and there is nobody to wait for.
    return first.status === 'again' ? repeated(attempt) : first;
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
    fence: read,
    async allowIssuer(domain, cluster) {
      const outcome = await repeated(async (): Promise<Attempt<boolean>> => {
        const fence = await read(domain);
        if (fence === undefined) return { status: 'applied', value: false, earlierIncarnation: undefined };
        const moved = storing(table, domain, { ...fence, issuer: issuerOf(cluster) }, { fence });
        const refused = await transact([moved], []);
        if (refused !== undefined) return { status: 'again', cause: refused.cause, last: false };
        return { status: 'applied', value: true, earlierIncarnation: undefined };
      });
      if (outcome.status === 'applied') return outcome.value;
      throw new Error(`the fence of ${domain} was raised by others again and again: it was not moved`);
    },
    async reset(lease) {
      checkLease(lease);
      const refused = await transact([storing(table, lease.domain, fenceOf(lease))], []);
      if (refused !== undefined) throw refused.cause;
    },
  };
}

/** Of a table that is given by its name or its ARN. */
function nameIn(table: string): string {
  return table.slice(table.lastIndexOf('/') + 1);
}

/** What the work returned, and what it wants to have written. */
async function gathered<W extends DynamoWrite, T>(
  table: string,
  work: DynamoWork<W, T>,
): Promise<{ readonly value: T; readonly writes: readonly W[] }> {
  const writes: W[] = [];
  let isOpen = true;
  const write = (action: W): void => {
    if (!isOpen) throw new Error('the work of this run is over: nothing is added to it any more');
    const { ConditionCheck: check, Put: put, Update: update, Delete: remove } = action;
    const names = [check, put, update, remove].flatMap((each) => each?.TableName ?? []);
    if (names.some((name) => nameIn(name) === nameIn(table))) {
      throw new TypeError(`${table} is the table of the fences: only the guard writes to it`);
    }
    writes.push(action);
  };
  try {
    return { value: await work({ write }), writes };
  } finally {
    isOpen = false;
  }
}
