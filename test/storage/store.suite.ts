/** What every store must do; run over the one on disk and over its memory twin. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Revision } from '../../src/base/revision.js';
import type { Domain } from '../../src/base/ids.js';
import type { RecordKey } from '../../src/lease/types.js';
import type { Entry } from '../../src/raft/types.js';
import {
  A,
  B,
  C,
  configurationEntry,
  cutAt,
  domainRecord,
  entries,
  entry,
  finishedRecord,
  hard,
  LIMITS,
  logWrite,
  meta,
  queueRecords,
  SUMMARY,
} from './fixtures.js';
import { Runs } from './runs.js';
import type { Directory } from './runs.js';
import { snapshotSuite } from './snapshot.suite.js';
import { Model, stepArbitrary } from './store.model.js';

export function storeSuite(make: () => Promise<Directory>, sequences: number): void {
  const runs = new Runs();

  describe('log', () => {
    it('begins with what Genesis says', async () => {
      const directory = await make();
      const { store } = await runs.start(directory);
      expect(store.loaded).toEqual({
        genesis: directory.genesis,
        hard: hard(0),
        anchor: { index: 0, term: 0 },
        entries: [],
        snapshot: { ...meta(0, 0), configuration: { voters: directory.genesis.members, outgoing: [], learners: [] } },
        summary: SUMMARY,
        records: [],
      });
      expect(await runs.reopened(directory, store)).toEqual(store.loaded);
    });

    it('keeps entries of every kind, term and vote', async () => {
      const directory = await make();
      const { store, reports } = await runs.start(directory);
      const joint = { voters: [A, B], outgoing: [A, B, C], learners: [C] };
      const written: Entry[] = [
        { index: 1, term: 1, kind: 'noop', payload: new Uint8Array(0) },
        entry(2, 1, 300),
        configurationEntry(3, 2, joint),
      ];
      store.write(logWrite(1, 2, written, { hard: hard(2, B) }));
      await reports.until('written 1');
      store.write(logWrite(2, 3, [], { hard: hard(3, C) }));
      await reports.until('written 2');
      const loaded = await runs.killed(directory, store);
      expect(loaded.entries).toEqual(written);
      expect(loaded.hard).toEqual(hard(3, C));
      expect(loaded.anchor).toEqual({ index: 0, term: 0 });
    });

    it('reports in the order submitted, also when writes wait together', async () => {
      const directory = await make();
      const { store, reports } = await runs.start(directory);
      store.write(logWrite(1, 1, entries(1, 2, 1)));
      store.write(logWrite(2, 1, entries(3, 4, 1)));
      store.cut(cutAt(3, 1, { put: [domainRecord('x', 2)] }));
      store.write(logWrite(3, 2, entries(4, 4, 2), { cutFrom: 4 }));
      store.write(logWrite(4, 2, entries(5, 6, 2)));
      store.write(logWrite(5, 3, entries(6, 6, 3), { cutFrom: 6 }));
      await reports.until('written 5');
      expect(reports.lines).toEqual(['written 1', 'written 2', 'cut 3', 'written 3', 'written 4', 'written 5']);
      const loaded = await runs.killed(directory, store);
      expect(loaded.entries).toEqual([...entries(1, 3, 1), ...entries(4, 5, 2), ...entries(6, 6, 3)]);
      expect(loaded.records).toEqual([domainRecord('x', 2)]);
    });

    it('cuts inside a block, at its beginning, over several blocks, and with nothing new', async () => {
      const directory = await make();
      const { store, reports } = await runs.start(directory);
      store.write(logWrite(1, 1, entries(1, 10, 1)));
      await reports.until('written 1');
      store.write(logWrite(2, 1, entries(11, 20, 1)));
      await reports.until('written 2');
      store.write(logWrite(3, 2, entries(15, 16, 2), { cutFrom: 15 }));
      await reports.until('written 3');
      store.write(logWrite(4, 3, entries(15, 15, 3), { cutFrom: 15 }));
      await reports.until('written 4');
      store.write(logWrite(5, 4, entries(4, 4, 4), { cutFrom: 4 }));
      await reports.until('written 5');
      store.write(logWrite(6, 4, [], { cutFrom: 3 }));
      await reports.until('written 6');
      expect((await runs.killed(directory, store)).entries).toEqual(entries(1, 2, 1));
      const again = await runs.start(directory);
      again.store.write(logWrite(1, 5, entries(3, 9, 5)));
      await again.reports.until('written 1');
      expect((await runs.reopened(directory, again.store)).entries).toEqual([...entries(1, 2, 1), ...entries(3, 9, 5)]);
    });

    it('takes a cut beyond its end for none', async () => {
      const directory = await make();
      const { store, reports } = await runs.start(directory);
      store.write(logWrite(1, 1, entries(1, 2, 1), { cutFrom: 1 }));
      store.write(logWrite(2, 1, entries(3, 3, 1), { cutFrom: 3 }));
      await reports.until('written 2');
      expect((await runs.reopened(directory, store)).entries).toEqual(entries(1, 3, 1));
    });
  });

  describe('state table', () => {
    it('keeps each cut whole, and its position and summary', async () => {
      const directory = await make();
      const { store, reports } = await runs.start(directory);
      store.write(logWrite(1, 1, entries(1, 9, 1)));
      store.cut(cutAt(4, 1, { put: [domainRecord('x', 2), domainRecord('y', 3), finishedRecord(3, 4)] }));
      const summary = { forgotten: 7 as Revision, holding: true, limits: { ...LIMITS, finishedRequests: 5 } };
      store.cut(
        cutAt(8, 1, {
          summary,
          put: [domainRecord('x', 6), finishedRecord(8)],
          remove: [
            { type: 'domain', domain: 'y' as Domain },
            { type: 'finished', lastRevision: 4 as Revision },
            { type: 'domain', domain: 'never-there' as Domain },
          ],
        }),
      );
      await reports.until('cut 8');
      const loaded = await runs.killed(directory, store);
      expect(loaded.snapshot).toEqual(meta(8, 1));
      expect(loaded.summary).toEqual(summary);
      expect(loaded.records).toEqual([domainRecord('x', 6), finishedRecord(8)]);
      expect(loaded.entries).toEqual(entries(1, 9, 1));
    });

    it('keeps records of every kind, each under a key of its own, and removes each', async () => {
      const directory = await make();
      const { store, reports } = await runs.start(directory);
      store.write(logWrite(1, 1, entries(1, 9, 1)));
      store.cut(cutAt(4, 1, { put: [domainRecord('x', 2), finishedRecord(3), ...queueRecords('x', 3)] }));
      store.cut(cutAt(6, 1, { put: queueRecords('y', 5) }));
      await reports.until('cut 6');
      const [waiter, coolDown, counting, ...y] = [...queueRecords('x', 3), ...queueRecords('y', 5)];
      const [held, over] = [domainRecord('x', 2), finishedRecord(3)];
      const loaded = await runs.killed(directory, store);
      expect(new Set(loaded.records)).toEqual(new Set([held, over, waiter, coolDown, counting, ...y]));
      const again = await runs.start(directory);
      const closed: RecordKey = { type: 'coolDown', domain: 'x' as Domain };
      again.store.cut(cutAt(8, 1, { remove: [{ type: 'waiter', queuedAt: 3 as Revision }, closed] }));
      await again.reports.until('cut 8');
      const { records } = await runs.reopened(directory, again.store);
      expect(new Set(records)).toEqual(new Set([held, over, counting, ...y]));
    });

    it('drops log behind a cut, as far as it is allowed to', async () => {
      const directory = await make();
      const { store, reports } = await runs.start(directory);
      for (const [seq, from] of [1, 11, 21].entries()) {
        store.write(logWrite(seq + 1, 1, entries(from, from + 9, 1)));
        await reports.until(`written ${seq + 1}`);
      }
      store.cut(cutAt(25, 1, { keepFrom: 21 }));
      await reports.until('cut 25');
      let loaded = await runs.killed(directory, store);
      expect(loaded.anchor).toEqual({ index: 20, term: 1 });
      expect(loaded.entries).toEqual(entries(21, 30, 1));
      const again = await runs.start(directory);
      // No further than to the cut itself, however much is allowed.
      again.store.cut(cutAt(30, 1, { keepFrom: 100 }));
      again.store.write(logWrite(1, 2, entries(31, 31, 2)));
      again.store.cut(cutAt(30, 1, { keepFrom: 100 }));
      await again.reports.until('written 1');
      loaded = await runs.reopened(directory, again.store);
      expect(loaded.anchor).toEqual({ index: 30, term: 1 });
      expect(loaded.entries).toEqual(entries(31, 31, 2));
      expect(loaded.snapshot).toEqual(meta(30, 1));
    });

    it('keeps at least what is wanted', async () => {
      const directory = await make();
      const { store, reports } = await runs.start(directory);
      store.write(logWrite(1, 1, entries(1, 10, 1)));
      store.cut(cutAt(10, 1, { keepFrom: 6 }));
      await reports.until('cut 10');
      const { anchor, entries: kept } = await runs.killed(directory, store);
      expect(anchor.index).toBeLessThan(6);
      expect(kept).toEqual(entries(anchor.index + 1, 10, 1));
    });
  });

  describe('snapshots', () => {
    snapshotSuite(make);
  });

  describe('failure', () => {
    it('is reported once, and nothing after it', async () => {
      const directory = await make();
      const { store, reports } = await runs.start(directory);
      store.write(logWrite(1, 1, entries(1, 3, 1), { hard: hard(1, B) }));
      await reports.until('written 1');
      directory.breakNextWrite(store);
      store.write(logWrite(2, 1, entries(4, 4, 1), { hard: hard(1, B) }));
      store.cut(cutAt(3, 1));
      store.write(logWrite(3, 1, entries(5, 5, 1), { hard: hard(1, B) }));
      await expect(reports.until('written 2')).rejects.toThrow(/EIO/);
      store.write(logWrite(4, 1, entries(6, 6, 1)));
      store.cut(cutAt(2, 1));
      await runs.stop(store).catch(() => undefined);
      expect(reports.lines).toEqual(['written 1', 'failed']);
      const again = await runs.start(directory);
      expect(again.store.loaded.entries.slice(0, 3)).toEqual(entries(1, 3, 1));
      // What waited behind the failed write was not carried out.
      expect(again.store.loaded.entries.length).toBeLessThan(5);
      expect(again.store.loaded.snapshot.index).toBe(0);
      expect(again.store.loaded.hard).toEqual(hard(1, B));
    });
  });

  describe('any sequence of writes', () => {
    it('is found again after a kill and after a stop', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(stepArbitrary, { minLength: 1, maxLength: 25 }), async (steps) => {
          const directory = await make();
          const model = new Model();
          let running = await runs.start(directory);
          for (const step of steps) {
            if (step.type === 'kill' || step.type === 'stop') {
              await model.settled(running.reports);
              if (step.type === 'stop') await runs.stop(running.store);
              else {
                await runs.kill(directory, running.store);
              }
              running = await runs.start(directory);
              model.restarted();
              model.compare(running.store.loaded);
            } else model.submit(running.store, step);
          }
          await model.settled(running.reports);
          model.compare(await runs.killed(directory, running.store));
        }),
        { numRuns: sequences },
      );
    });
  });
}
