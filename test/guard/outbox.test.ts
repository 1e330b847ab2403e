/** Effects that are written down with the data that they are about, and what their dispatcher makes of them. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { enqueue, outboxDispatcher, outboxDomain } from '../../src/guard/outbox.js';
import type { OutboxEntry, OutboxMessage } from '../../src/guard/outbox.js';
import { postgresFence } from '../../src/guard/postgres.js';
import type { FencedLease, FencedTransaction, PostgresFence, PostgresPool } from '../../src/guard/postgres.js';
import { until } from '../process/cluster.js';
import { POSTGRES } from '../servers/postgres.js';
import { D, FencedDatabase, refused } from './postgres-database.js';

const OUTBOX = readFileSync('src/guard/postgres/outbox.sql', 'utf8');
const US = 'orders/us';
const lease = (token: number, domain: string): FencedLease => ({
  domain,
  token: BigInt(token),
  cluster: 'prod',
  incarnation: 'a'.repeat(32),
});
const mailer = (token: number): FencedLease => lease(token, outboxDomain('mail'));

/** A receiver that takes each id once, and what reached it. */
class Receiver {
  readonly arrived: OutboxMessage[] = [];
  readonly taken = new Map<string, unknown>();
  readonly deliver = (message: OutboxMessage): Promise<void> => {
    this.arrived.push(message);
    if (!this.taken.has(message.id)) this.taken.set(message.id, message.payload);
    return Promise.resolve();
  };
  get payloads(): unknown[] {
    return this.arrived.map(({ payload }) => payload);
  }
}

describe('what is refused before the database is asked', () => {
  const pool = undefined as unknown as PostgresPool;
  const deliver = () => Promise.resolve();
  it.each([
    [{ queue: 'a b', deliver }, /queue must be segments/],
    [{ queue: 'x'.repeat(201), deliver }, /queue has 201 bytes; at most 200/],
    [{ queue: 'mail', deliver, maxAttempts: 0 }, /maxAttempts must be an integer from 1 to 1000, not 0/],
    [{ queue: 'mail', deliver, workTimeoutMs: 0 }, /workTimeoutMs must be/],
  ])('options %#', (options, message) => {
    expect(() => outboxDispatcher(pool, options)).toThrow(message);
  });
  it('a lease of another domain', async () => {
    const mail = outboxDispatcher(pool, { queue: 'mail', deliver });
    await expect(mail.deliverDue(lease(5, D))).rejects.toThrow(/must be of outbox\/mail, not of orders\/eu/);
  });
  it('an entry, with every fault', async () => {
    const wrong = enqueue(undefined as unknown as FencedTransaction, { queue: '', domain: D, payload: undefined });
    await expect(wrong).rejects.toThrow(/queue must not be empty; payload must be JSON/);
  });
});

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('the outbox', () => {
    let db: FencedDatabase;
    let fence: PostgresFence;

    beforeAll(async () => {
      db = await FencedDatabase.start(kind);
      fence = postgresFence(db.pool);
      await db.pool.query(OUTBOX);
    }, 120_000);
    afterAll(() => db[Symbol.asyncDispose]());
    beforeEach(async () => {
      await db.clear();
      await db.pool.query('truncate fencing.outbox');
    });

    /** One transition of a producer, with its effect. */
    const put = (token: number, payload: unknown, more: Partial<OutboxEntry> = {}) => {
      const { domain = D } = more;
      return fence.run(lease(token, domain), async (tx) => {
        await tx.change('update stock set qty = qty - 1 where domain = $1', [domain]);
        return enqueue(tx, { queue: 'mail', domain, payload, ...more });
      });
    };
    const dispatcher = (deliver: (message: OutboxMessage, signal: AbortSignal) => Promise<void>, maxAttempts = 10) =>
      outboxDispatcher(db.pool, { queue: 'mail', deliver, maxAttempts });
    const waiting = () => db.one("select count(*)::int from fencing.outbox where state = 'pending'");
    const due = () => db.pool.query('update fencing.outbox set retry_at = clock_timestamp()');
    const setAside = async (): Promise<unknown[]> =>
      (await db.pool.query<object>('select payload, state, error from fencing.outbox_set_aside')).rows;
    const applied = (value: number) => ({ status: 'applied', value, earlierIncarnation: undefined });

    it('is applied again without a loss, and only behind fencing.sql', async () => {
      await put(5, 'kept');
      await db.pool.query(OUTBOX);
      expect(await waiting()).toBe(1);
      await db.pool.query('update fencing.settings set version = 1');
      await expect(db.pool.query(OUTBOX)).rejects.toThrow(/apply fencing.sql of the same package first/);
      await db.pool.query('update fencing.settings set version = 2');
    });

    describe('the producer', () => {
      it('writes data and message, or neither: work that throws, a stale lease, a lease of another domain', async () => {
        expect(await put(6, 'first')).toMatchObject({ status: 'applied' });
        const failed = fence.run(lease(6, D), async (tx) => {
          await enqueue(tx, { queue: 'mail', domain: D, payload: 'never' });
          throw new Error('no stock');
        });
        await expect(failed).rejects.toThrow('no stock');
        expect(await put(5, 'late')).toEqual({ status: 'stale', fence: 6n });
        const foreign = fence.run(lease(6, D), async (tx) => {
          await tx.query('update stock set qty = 0');
          return enqueue(tx, { queue: 'mail', domain: US, payload: 'foreign' });
        });
        await refused(foreign, 'FT002');
        expect(await db.one('select json_agg(payload) from fencing.outbox')).toEqual(['first']);
        expect(await db.one('select sum(qty)::int from stock')).toBe(29);
      });

      it('is not looked at again: its message is delivered although its tenure has ended since', async () => {
        const receiver = new Receiver();
        const done = await put(5, { to: 'ann', cents: 2 ** 53 - 1 });
        await fence.open(lease(6, D));
        expect(await dispatcher(receiver.deliver).deliverDue(mailer(1))).toEqual(applied(1));
        const id = done.status === 'applied' ? done.value : '';
        expect(receiver.arrived).toEqual([
          { id, domain: D, token: 5n, payload: { to: 'ann', cents: 2 ** 53 - 1 }, attempt: 1 },
        ]);
        expect(await waiting()).toBe(0);
      });

      it('may ask for no delivery after its tenure, looked at while claiming; an operator can send it all the same', async () => {
        const receiver = new Receiver();
        await put(5, 'too late', { cancelIfSuperseded: true });
        await put(5, 'in time', { cancelIfSuperseded: true, domain: US });
        await fence.open(lease(6, D));
        const mail = dispatcher(receiver.deliver);
        await mail.deliverDue(mailer(1));
        expect(receiver.payloads).toEqual(['in time']);
        const error = 'superseded by token 6 before it was claimed';
        expect(await setAside()).toEqual([{ payload: 'too late', state: 'cancelled', error }]);
        expect(await db.one('select fencing.outbox_retry(id) from fencing.outbox')).toBe(true);
        await mail.deliverDue(mailer(1));
        expect(receiver.payloads).toEqual(['in time', 'too late']);
      });
    });

    it('a failed delivery is kept with its message, whatever was thrown', async () => {
      const thrown = [new Error('bad \0 byte'), Object.create(null)];
      await put(5, 'x');
      const mail = dispatcher(() => {
        throw thrown.shift();
      });
      const error = () => db.one('select error from fencing.outbox');
      expect(await mail.deliverDue(mailer(1))).toEqual(applied(1));
      expect(await error()).toBe('Error: bad \ufffd byte');
      await due();
      expect(await mail.deliverDue(mailer(1))).toEqual(applied(1));
      expect(await error()).toBe('failed with something that has no text');
    });

    it('what is cancelled after an attempt says so: it may have arrived', async () => {
      await put(5, 'tried', { cancelIfSuperseded: true });
      const mail = dispatcher(() => Promise.reject(new Error('timed out')));
      await mail.deliverDue(mailer(1));
      await fence.open(lease(6, D));
      await mail.deliverDue(mailer(1));
      const error = 'superseded by token 6 before it was claimed again, after 1 attempts: Error: timed out';
      expect(await setAside()).toEqual([{ payload: 'tried', state: 'cancelled', error }]);
    });

    describe('the order', () => {
      it('is that of the transactions in each domain, also while one has to be tried again; other domains go on', async () => {
        const receiver = new Receiver();
        let broken = true;
        const mail = dispatcher((message) => {
          if (broken && message.payload === 'eu 1') throw new Error('mailbox full');
          return receiver.deliver(message);
        });
        for (const at of [1, 2, 3]) {
          await put(5, `eu ${at}`);
          await put(5, `us ${at}`, { domain: US });
        }
        expect(await mail.deliverDue(mailer(1))).toEqual(applied(2));
        for (const left of [1, 1, 0]) expect(await mail.deliverDue(mailer(1))).toEqual(applied(left));
        expect(receiver.payloads).toEqual(['us 1', 'us 2', 'us 3']);
        expect(await db.one('select error from fencing.outbox where payload = \'"eu 1"\'')).toBe('Error: mailbox full');
        broken = false;
        await due();
        for (const left of [1, 1, 1, 0]) expect(await mail.deliverDue(mailer(1))).toEqual(applied(left));
        expect(receiver.payloads.slice(3)).toEqual(['eu 1', 'eu 2', 'eu 3']);
      });

      it('the pause doubles with each attempt; after the last one the message is parked, and those behind it go on', async () => {
        const receiver = new Receiver();
        const mail = dispatcher(
          (message) =>
            message.payload === 'bad' ? Promise.reject(new Error('no such user')) : receiver.deliver(message),
          3,
        );
        await put(5, 'bad');
        await put(5, 'good');
        for (const [attempts, seconds] of [
          [1, 1],
          [2, 2],
          [3, 4],
        ]) {
          await due();
          const before = await db.one('select clock_timestamp()::text');
          expect(await mail.deliverDue(mailer(1))).toEqual(applied(1));
          const sql = `select json_build_array(attempts, retry_at - make_interval(secs => $1) between $2 and clock_timestamp())
            from fencing.outbox order by position limit 1`;
          expect(await db.one(sql, [seconds, before])).toEqual([attempts, true]);
        }
        expect(await setAside()).toEqual([{ payload: 'bad', state: 'parked', error: 'Error: no such user' }]);
        expect(receiver.payloads).toEqual([]);
        await mail.deliverDue(mailer(1));
        expect(receiver.payloads).toEqual(['good']);
      });

      it('a message that no dispatcher survives is parked too', async () => {
        await put(5, 'poison');
        await db.pool.query('update fencing.outbox set attempts = 3');
        expect(await dispatcher(() => Promise.resolve(), 3).deliverDue(mailer(1))).toEqual(applied(0));
        const error = 'claimed, and no dispatcher lived to mark it';
        expect(await setAside()).toEqual([{ payload: 'poison', state: 'parked', error }]);
      });
    });

    describe('the dispatcher', () => {
      it('that ends between sending and marking: its successor sends again under the same id, and the receiver takes it once', async () => {
        const receiver = new Receiver();
        await put(5, 'once');
        let sent = false;
        const dying: PostgresPool = {
          query: (text, values) => db.pool.query(text, values),
          connect: () => (sent ? Promise.reject(new Error('the process is gone')) : db.pool.connect()),
        };
        const first = outboxDispatcher(dying, {
          queue: 'mail',
          deliver: async (message) => {
            await receiver.deliver(message);
            sent = true;
          },
        });
        await expect(first.deliverDue(mailer(1))).rejects.toThrow('the process is gone');
        expect(await waiting()).toBe(1);
        await dispatcher(receiver.deliver).deliverDue(mailer(2));
        expect(receiver.arrived.map(({ attempt }) => attempt)).toEqual([1, 2]);
        expect([...receiver.taken.values()]).toEqual(['once']);
        expect(await waiting()).toBe(0);
      });

      it.each(['delivered', 'failed'])(
        'that was paused past its lease: its mark (%s) is refused, before and after its successor’s',
        async (how) => {
          await put(5, 'once');
          const held: (() => void)[] = [];
          const pausing = dispatcher(async () => {
            await new Promise<void>((done) => held.push(done));
            if (how === 'failed') throw new Error('no answer');
          });
          const first = pausing.deliverDue(mailer(1));
          await until('the first to send', () => held.length === 1);
          const second = pausing.deliverDue(mailer(2));
          await until('the second to send', () => held.length === 2);
          held[0]?.();
          expect(await first).toEqual({ status: 'stale', fence: 2n });
          const row = 'select json_build_array(claimed_by, attempts, error, state) from fencing.outbox';
          expect(await db.one(row)).toEqual([2, 2, null, 'pending']);
          held[1]?.();
          expect(await second).toEqual(applied(1));
          expect(await waiting()).toBe(how === 'failed' ? 1 : 0);
        },
      );

      it('may mark only what it has claimed itself', async () => {
        await put(5, 'mine');
        const { rows } = await db.pool.query<{ id: string }>('select id from fencing.outbox');
        const marked = await fence.run(mailer(3), async (tx) => {
          return (await tx.query("select fencing.outbox_mark('mail', $1) as done", [rows[0]?.id])).rows;
        });
        expect(marked).toMatchObject({ status: 'applied', value: [{ done: false }] });
        expect(await waiting()).toBe(1);
        for (const sql of [
          "fencing.outbox_claim('mail', 1, 1)",
          `fencing.outbox_mark('mail', '${rows[0]?.id ?? ''}')`,
        ]) {
          await refused(db.pool.query(`select ${sql}`), 'FT002');
          // Under the lease of another queue.
          const other = fence.run(lease(9, 'outbox/sms'), (tx) => tx.query(`select ${sql}`));
          await refused(other, 'FT002');
        }
      });

      it('gives up a delivery that takes too long, and tells it', async () => {
        await put(5, 'slow');
        let told: unknown;
        const mail = outboxDispatcher(db.pool, {
          queue: 'mail',
          workTimeoutMs: 30,
          deliver: (_, signal) =>
            new Promise(() => {
              signal.addEventListener('abort', () => {
                told = signal.reason;
              });
            }),
        });
        expect(await mail.deliverDue(mailer(1))).toEqual(applied(1));
        expect(String(told)).toBe('Error: not delivered within 30 ms');
        expect(await db.one('select error from fencing.outbox')).toBe('Error: not delivered within 30 ms');
      });

      it('runs until it is told to stop, or its lease is refused', async () => {
        const receiver = new Receiver();
        const mail = dispatcher(receiver.deliver);
        const stop = new AbortController();
        const first = mail.run(mailer(1), stop.signal);
        await put(5, 'one');
        await until('the first', () => receiver.payloads.length === 1);
        stop.abort();
        expect(await first).toBeUndefined();
        const second = mail.run(mailer(2), new AbortController().signal);
        await put(5, 'two');
        await until('the second', () => receiver.payloads.length === 2);
        await fence.open(mailer(3));
        expect(await second).toEqual({ status: 'stale', fence: 3n });
      });

      it('needs no more than the rights that are named, and has no others', async () => {
        await db.pool.query(`
          drop role if exists producer, dispatcher; create role producer login; create role dispatcher login;
          grant usage on schema fencing to producer, dispatcher;
          grant execute on function fencing.advance, fencing.try_advance, fencing.enter, fencing.limit_transaction,
            fencing.highest, fencing.show to producer, dispatcher;
          grant execute on function fencing.outbox_put to producer;
          grant execute on function fencing.outbox_claim, fencing.outbox_mark to dispatcher`);
        const [producer, dispatching] = ['producer', 'dispatcher'].map((user) => db.server.pool({ user }));
        if (producer === undefined || dispatching === undefined) throw new Error('no pool');
        await postgresFence(producer).run(lease(5, D), (tx) => enqueue(tx, { queue: 'mail', domain: D, payload: 1 }));
        const receiver = new Receiver();
        const options = { queue: 'mail', deliver: receiver.deliver };
        await expect(outboxDispatcher(producer, options).deliverDue(mailer(1))).rejects.toThrow(/may not use/);
        expect(await outboxDispatcher(dispatching, options).deliverDue(mailer(1))).toEqual(applied(1));
        for (const pool of [producer, dispatching]) {
          await refused(pool.query('select * from fencing.outbox'), '42501');
          await refused(pool.query("select fencing.outbox_retry('00000000-0000-0000-0000-000000000000')"), '42501');
        }
      });
    });

    it('says what to do where outbox.sql is missing', async () => {
      await db.pool.query('drop function fencing.outbox_put');
      await expect(put(5, 'nowhere')).rejects.toThrow(/apply fencing.sql, and outbox.sql/);
      await db.pool.query(OUTBOX);
    });
  });
});
