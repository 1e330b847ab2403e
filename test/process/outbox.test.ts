/**
 * The mail that cannot be unsent: three nodes, a database, a mail server that takes each id once, and producers and dispatchers
 * as processes that are stopped for longer than their TTL, or killed, at the worst moment.
 */
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FencedDatabase } from '../guard/postgres-database.js';
import { POSTGRES } from '../servers/postgres.js';
import { MailServer } from '../support/mail-server.js';
import { ProcessCluster, until } from './cluster.js';
import type { OutboxNews, OutboxOrder, OutboxTask } from './guards/outbox-child.js';
import { bundle, TalkingChild } from './talking-child.js';

const ROOT = resolve(import.meta.dirname, '../..');
const OUTBOX = readFileSync('src/guard/postgres/outbox.sql', 'utf8');

describe.each(POSTGRES)('$name', (kind) => {
  describe.skipIf(kind.bin === undefined)('the mail that cannot be unsent', () => {
    let cluster: ProcessCluster;
    let db: FencedDatabase;
    let programs: string;
    let mails: MailServer;
    const children: TalkingChild<OutboxNews, OutboxTask>[] = [];

    beforeAll(async () => {
      [cluster, db, programs] = await Promise.all([
        ProcessCluster.started(),
        FencedDatabase.start(kind, []),
        bundle('outbox', 'guards/outbox-child.ts'),
      ]);
      await db.pool.query(OUTBOX);
    });
    afterAll(async () => {
      await db[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
      await rm(programs, { recursive: true, force: true });
    });
    beforeEach(async () => {
      mails = await MailServer.start();
      await db.pool.query(`
        truncate fencing.outbox; drop table if exists orders;
        create table orders (id int, status text); insert into orders values (7, 'paid')`);
    });
    afterEach(async () => {
      await Promise.all(children.splice(0).map((child) => child.kill()));
      await mails[Symbol.asyncDispose]();
    });

    const start = (role: OutboxOrder['role'], name: string, guarded = true) => {
      const order: OutboxOrder = {
        role,
        name,
        package: ROOT,
        endpoints: cluster.nodes.map(({ clientAddress }) => clientAddress),
        connection: db.server.connection,
        ttlMs: 3_000,
        waitMs: 60_000,
        url: mails.url,
        guarded,
      };
      const child = new TalkingChild<OutboxNews, OutboxTask>(join(programs, 'outbox-child.mjs'), order);
      children.push(child);
      return child;
    };
    /** What was committed, and is to be sent. */
    const put = async (status: string): Promise<void> => {
      const sql = `begin; select fencing.advance('orders/8', 1);
        select fencing.outbox_put('mail', 'orders/8', '{"text": "order 8 is ${status}"}'); commit`;
      await db.pool.query(sql);
    };
    const emptied = () =>
      until('an empty outbox', async () => (await db.one('select count(*)::int from fencing.outbox')) === 0);
    /** Both producers have read; the second has cancelled the order while the first stood still; the first ships it. */
    const shippedLate = async (guarded: boolean): Promise<string> => {
      const first = start('producer', 'first', guarded);
      await first.next('read');
      first.signal('SIGSTOP');
      const second = start('producer', 'second', guarded);
      expect(await second.next('read')).toMatchObject({ status: 'paid' });
      second.tell({ status: 'cancelled' });
      expect(await second.next('wrote')).toMatchObject({ status: 'applied' });
      first.tell({ status: 'shipped' });
      first.signal('SIGCONT');
      const { status } = await first.next('wrote');
      await start('dispatcher', 'mailer').next('leads');
      await emptied();
      return status;
    };

    it('a producer that wakes too late writes no mail', async () => {
      expect(await shippedLate(true)).toBe('stale');
      expect(mails.texts).toEqual(['order 7 is cancelled']);
      expect(await db.one('select status from orders')).toBe('cancelled');
    });

    it('without the guard it does, and the customer has both', async () => {
      expect(await shippedLate(false)).toBe('applied');
      expect(mails.texts).toEqual(['order 7 is cancelled', 'order 7 is shipped']);
    });

    it('a dispatcher that is killed between sending and marking: sent again, taken once, in order', async () => {
      mails.hold('first');
      const first = start('dispatcher', 'first');
      await first.next('leads');
      await put('packed');
      await put('shipped');
      await until('the mail', () => mails.arrivals.length === 1);
      await first.kill();
      await start('dispatcher', 'second').next('leads');
      await emptied();
      const [sent, again] = mails.arrivals;
      expect([sent?.from, again?.from, again?.id]).toEqual(['first', 'second', sent?.id]);
      expect(mails.texts).toEqual(['order 8 is packed', 'order 8 is shipped']);
    });

    it('a dispatcher that stands still between sending and marking: its mark is refused, and its successor has the say', async () => {
      mails.hold('first');
      mails.hold('second');
      const first = start('dispatcher', 'first');
      const { token } = await first.next('leads');
      await put('packed');
      await until('the mail', () => mails.arrivals.length === 1);
      first.signal('SIGSTOP');
      const second = start('dispatcher', 'second');
      expect(BigInt((await second.next('leads')).token)).toBeGreaterThan(BigInt(token));
      await until('the mail again', () => mails.arrivals.length === 2);
      // The answer to the first lies ready when it wakes.
      mails.letGo('first');
      first.signal('SIGCONT');
      expect(await first.next('refused')).toMatchObject({ status: 'stale' });
      expect(await db.one('select attempts from fencing.outbox')).toBe(2);
      mails.letGo('second');
      await emptied();
      expect(mails.texts).toEqual(['order 8 is packed']);
    });
  });
});
