/**
 * Effects that cannot be taken back (a mail, a payment, a call of somebody else's service), with PostgreSQL 14 and later. No
 * guard can stop them half way, so the fenced transaction that decides on one only writes it down; what was committed is
 * carried out by a dispatcher. It needs `fencing.sql` and `outbox.sql` of this package in the database.
 *
 * The dispatcher has a lease of its own, of {@link outboxDomain}: claiming and marking are fenced, sending cannot be. So each
 * message is delivered at least once, and a second time when a dispatcher ends, or stands still past its lease, between
 * sending and marking. **The receiver has to take each id once**; a receiver that cannot gets duplicates.
 *
 * The producer's token is not looked at again: the message was right when it was committed, and is delivered although the
 * tenure has ended. For the other wish there is {@link OutboxEntry.cancelIfSuperseded}.
 *
 * @packageDocumentation
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { domainFault } from '../base/domain.js';
import { postgresFence } from './postgres.js';
import { explained } from './postgres-transaction.js';
import type { FencedTransaction, PostgresPool } from './postgres-transaction.js';
import type { FencedLease, Outcome, Rejected, Stale } from './types.js';
import { inTime, workTimeoutOf } from './work-time.js';
import type { WorkTimeOptions } from './work-time.js';

export type { FencedTransaction, PostgresConnection, PostgresPool, PostgresResult } from './postgres-transaction.js';
export type { Applied, FencedLease, Missing, Outcome, Rejected, Retry, Stale } from './types.js';
export type { WorkTimeOptions } from './work-time.js';

/** An effect to be carried out. */
export interface OutboxEntry {
  /** Which dispatcher carries it out, for example `mail`: 1 to 200 letters, digits and `._~:@+=-`, with single `/`. */
  readonly queue: string;
  /** A domain of the transaction's leases. Messages of one domain are delivered in the order of their transactions. */
  readonly domain: string;
  /** Any JSON that PostgreSQL can store (no U+0000 in it). What decides about the effect belongs here: the dispatcher may act much later. */
  readonly payload: unknown;
  /**
   * Not delivered when a greater token was accepted in the domain before a dispatcher claimed it. By default false. Looked
   * at while claiming: an effect that has begun is not stopped.
   */
  readonly cancelIfSuperseded?: boolean;
}

/** What is delivered. */
export interface OutboxMessage {
  /** The idempotency key: the receiver takes each once. A UUID. */
  readonly id: string;
  /** Of its producer. */
  readonly domain: string;
  /** Of its producer. For the record: a receiver that compared it would refuse what was right when it was committed. */
  readonly token: bigint;
  /** What was enqueued. */
  readonly payload: unknown;
  /** 1 when nobody has tried before. */
  readonly attempt: number;
}

/** For {@link outboxDispatcher}. */
export interface DispatcherOptions extends WorkTimeOptions {
  /** Which messages it carries out. */
  readonly queue: string;
  /**
   * Carries out one and resolves when the receiver has it for good. What it throws is kept with the message, and it is tried
   * again: after one second, then after twice as long each time, five minutes at most. `signal` aborts when its time is up
   * (`workTimeoutMs`) or the dispatcher is to stop. Messages of different domains are delivered at the same time, up to 16.
   */
  readonly deliver: (message: OutboxMessage, signal: AbortSignal) => Promise<void>;
  /**
   * After so many attempts a message is parked: an operator finds it in `fencing.outbox_set_aside`, and those behind it go
   * on. 1 to 1 000. Default: 10.
   */
  readonly maxAttempts?: number;
}

/** Carries out the messages of one queue. */
export interface OutboxDispatcher {
  /**
   * Delivers what is due, one message of each domain, and says how many it tried; none is due when that is 0. `stale` or
   * `rejected`: the lease is not good any more, and what was sent last may be sent again by the successor. A failed delivery
   * is no error here. Throws what the database says.
   */
  deliverDue(lease: FencedLease, signal?: AbortSignal): Promise<Outcome<number>>;
  /**
   * Delivers until `signal` aborts (use the lease's) or the lease is refused, looking for more every 500 ms. Gives what refused
   * it, undefined when it was told to stop. Throws what the database says.
   */
  run(lease: FencedLease, signal: AbortSignal): Promise<Stale | Rejected | undefined>;
}

/** How many domains are served at the same time. */
const BATCH = 16;
const POLL_MS = 500;
const DEFAULT_ATTEMPTS = 10;
const MAX_ATTEMPTS = 1_000;
const MAX_QUEUE_BYTES = 200;

/** The domain of the lease that the dispatcher of this queue needs. Throws a TypeError when the queue has no such name. */
export function outboxDomain(queue: string): string {
  const fault = queueFault(queue);
  if (fault !== undefined) throw new TypeError(`queue ${fault}`);
  return `outbox/${queue}`;
}

/**
 * Writes down an effect as part of this transaction: with it or not at all. Gives the message's id. Throws a TypeError when
 * it is no entry, and FT002 of the database when the transaction has no lease of the domain.
 */
export async function enqueue(tx: FencedTransaction, entry: OutboxEntry): Promise<string> {
  const { queue, domain, payload, cancelIfSuperseded = false } = entry;
  const json: unknown = JSON.stringify(payload);
  const faults = [];
  const fault = queueFault(queue);
  if (fault !== undefined) faults.push(`queue ${fault}`);
  if (typeof json !== 'string') faults.push('payload must be JSON');
  if (faults.length > 0) throw new TypeError(`not an outbox entry: ${faults.join('; ')}`);
  const sql = 'select fencing.outbox_put($1, $2, $3::jsonb, $4)::text as id';
  const { rows } = await explained(tx.query(sql, [queue, domain, json, cancelIfSuperseded]));
  return String(rows[0]?.['id']);
}

/** The dispatcher of one queue, with the messages in the database of this pool. */
export function outboxDispatcher(pool: PostgresPool, options: DispatcherOptions): OutboxDispatcher {
  const { queue, deliver, maxAttempts = DEFAULT_ATTEMPTS } = options;
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > MAX_ATTEMPTS) {
    throw new TypeError(`maxAttempts must be an integer from 1 to ${MAX_ATTEMPTS}, not ${maxAttempts}`);
  }
  const deliverMs = workTimeoutOf(options);
  const domain = outboxDomain(queue);
  const fence = postgresFence(pool);

  const claim = (lease: FencedLease): Promise<Outcome<OutboxMessage[]>> =>
    fence.run(lease, async (tx) => {
      const sql =
        'select c.id::text, c.domain, c.token::text, c.payload::text, c.attempt::text from fencing.outbox_claim($1, $2, $3) c';
      const { rows } = await explained(tx.query(sql, [queue, BATCH, maxAttempts]));
      return rows.map((row) => messageOf(row as Claimed));
    });

  /** Why it could not be delivered; undefined when it was. */
  const send = async (message: OutboxMessage, stop: AbortSignal): Promise<string | undefined> => {
    const late = new AbortController();
    try {
      const sent = deliver(message, AbortSignal.any([late.signal, stop]));
      await inTime(sent, deliverMs, () => {
        const error = new Error(`not delivered within ${deliverMs} ms`);
        late.abort(error);
        return error;
      });
      return undefined;
    } catch (error) {
      return textOf(error);
    }
  };

  const sendAndMark = async (lease: FencedLease, message: OutboxMessage, stop: AbortSignal) => {
    const error = await send(message, stop);
    return fence.run(lease, async (tx) => {
      await tx.query('select fencing.outbox_mark($1, $2, $3, $4)', [queue, message.id, error ?? null, maxAttempts]);
    });
  };

  const deliverDue = async (given: FencedLease, stop = new AbortController().signal): Promise<Outcome<number>> => {
    // A copy: the lease may be an object that changes.
    const { token, cluster, incarnation } = given;
    if (given.domain !== domain) throw new TypeError(`the lease must be of ${domain}, not of ${given.domain}`);
    const lease = { domain, token, cluster, incarnation };
    const claimed = await claim(lease);
    if (claimed.status !== 'applied') return claimed;
    const { value: messages, earlierIncarnation } = claimed;
    // All are waited for, also when one fails: nothing is under way when this returns.
    const ends = await Promise.allSettled(messages.map((message) => sendAndMark(lease, message, stop)));
    for (const end of ends) {
      if (end.status === 'rejected') throw end.reason;
      if (end.value.status !== 'applied') return end.value;
    }
    return { status: 'applied', value: messages.length, earlierIncarnation };
  };

  return {
    deliverDue,
    async run(lease, signal) {
      while (!signal.aborted) {
        const done = await deliverDue(lease, signal);
        if (done.status === 'stale' || done.status === 'rejected') return done;
        const more = done.status === 'applied' && done.value > 0;
        if (!more) await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
      }
      return undefined;
    },
  };
}

/** What was thrown, as PostgreSQL can store it: whatever it is, and without the one character that no text may have. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown).replaceAll('\0', '\ufffd');
  } catch {
    return 'failed with something that has no text';
  }
}

/** A row of `fencing.outbox_claim`, as text whatever the driver's settings. */
type Claimed = Readonly<Record<'id' | 'domain' | 'token' | 'payload' | 'attempt', string>>;

function messageOf({ id, domain, token, payload, attempt }: Claimed): OutboxMessage {
  return { id, domain, token: BigInt(token), payload: JSON.parse(payload) as unknown, attempt: Number(attempt) };
}

function queueFault(queue: string): string | undefined {
  if (queue.length > MAX_QUEUE_BYTES) return `has ${queue.length} bytes; at most ${MAX_QUEUE_BYTES} are allowed`;
  return domainFault(queue);
}
