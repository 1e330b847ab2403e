/**
 * A set under a lease, as Jepsen tests locks: workers read it and write it back with one element more. Whoever holds the lease is
 * stopped past its TTL, again and again, and leaders are killed meanwhile. Is each element that was added still there?
 */
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FencedDatabase } from '../guard/postgres-database.js';
import { POSTGRES } from '../servers/postgres.js';
import { ProcessCluster, until } from './cluster.js';
import type { SetOrder } from './guards/set-child.js';
import { bundle, TalkingChild } from './talking-child.js';

const ROOT = resolve(import.meta.dirname, '../..');
const NAMES = ['a', 'b', 'c'];
/** Of the runs that have seen it by chance at the first or second. */
const MAX_ROUNDS = 12;
/** Elements that are added before the guard may be said to have kept them. */
const FEW = 10;

// Its two versions differ in how they end what is stopped, which `postgres-guard.test.ts` is about.
const kind = POSTGRES.find(({ bin }) => bin !== undefined);

describe(kind?.name ?? POSTGRES.map(({ name }) => name).join('; '), () => {
  describe.skipIf(kind === undefined)('a set under a lease, with pauses and leader kills', () => {
    let cluster: ProcessCluster;
    let db: FencedDatabase;
    let programs: string;

    beforeAll(async () => {
      if (kind === undefined) return;
      [cluster, db, programs] = await Promise.all([
        ProcessCluster.started(),
        FencedDatabase.start(kind, []),
        bundle('set', 'guards/set-child.ts'),
      ]);
      await cluster.untilAllServe();
    });
    afterAll(async () => {
      await db[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
      await rm(programs, { recursive: true, force: true });
    });

    const lost = () =>
      db.one(`select count(*)::int from answer a
        where status = 'applied' and not exists (select from lock_set s where a.element = any (s.elements))`);
    const answers = (status: string) => db.one('select count(*)::int from answer where status = $1', [status]);
    const writer = async () => String(await db.one('select by from lock_set'));

    /** Rounds of one stop and one kill until `enough`; the elements that were lost. */
    async function play(guarded: boolean, enough: () => Promise<boolean>): Promise<number> {
      await db.pool.query(`
        truncate fencing.fence; drop table if exists lock_set, answer;
        create table lock_set (elements text[], by text); insert into lock_set values ('{}', '');
        create table answer (element text, status text)`);
      const workers = new Map(
        NAMES.map((name) => {
          const order: SetOrder = {
            name,
            package: ROOT,
            endpoints: cluster.nodes.map(({ clientAddress }) => clientAddress),
            connection: db.server.connection,
            ttlMs: 3_000,
            guarded,
          };
          return [name, new TalkingChild<never, never>(join(programs, 'set-child.mjs'), order)];
        }),
      );
      try {
        await until('the first element', async () => (await writer()) !== '');
        for (let round = 0; round < MAX_ROUNDS && !(await enough()); round++) {
          const holder = await writer();
          workers.get(holder)?.signal('SIGSTOP');
          const leader = await cluster.untilLeader();
          await cluster.kill(leader);
          await until(`another than ${holder} to write`, async () => (await writer()) !== holder);
          workers.get(holder)?.signal('SIGCONT');
          cluster.start(leader);
          const before = await db.one("select count(*)::int from answer where element like $1 || '-%'", [holder]);
          await until(`${holder} to be told again`, async () => {
            const sql = "select count(*)::int > $2 from answer where element like $1 || '-%'";
            return (await db.one(sql, [holder, before])) === true;
          });
        }
      } finally {
        await Promise.all([...workers.values()].map((each) => each.kill()));
      }
      return Number(await lost());
    }

    it('no element is lost with the guard, which has refused some', async () => {
      let rounds = 0;
      const [applied, stale] = [
        async () => Number(await answers('applied')),
        async () => Number(await answers('stale')),
      ];
      const left = await play(true, async () => rounds++ >= 3 && (await stale()) > 0 && (await applied()) > FEW);
      expect([left, (await stale()) > 0, (await applied()) > FEW]).toEqual([0, true, true]);
    });

    it('elements are lost without it', async () => {
      expect(await play(false, async () => Number(await lost()) > 0)).toBeGreaterThan(0);
    });
  });
});
