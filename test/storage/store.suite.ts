/** What every store must do; run over the one on disk and over its memory twin. */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { Revision } from '../../src/base/revision.js';
import type { Domain } from '../../src/base/ids.js';
import type { RecordKey } from '../../src/lease/types.js';
import type { Entry } from '../../src/raft/types.js';
import type { Store } from '../../src/replica/ports.js';
import type { Genesis, Loaded, SnapshotChunk } from '../../src/replica/types.js';
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
  readChunks,
  Reports,
  SUMMARY,
} from './fixtures.js';
import { Model, stepArbitrary } from './store.model.js';

/** One data directory, or its twin. */
export interface Directory {
  readonly genesis: Genesis;
  open(): Promise<Store>;
  /** The process is killed: what was handed to the kernel is there, nothing more is reported. */
  kill(store: Store): Promise<void>;
  /** The next write of `store`, or the one under way, fails. */
  breakNextWrite(store: Store): void;
}

export function storeSuite(make: () => Promise<Directory>, sequences: number): void {
  const open: Store[] = [];
  afterEach(async () => {
    for (const store of open.splice(0)) await store.close().catch(() => undefined);
  });

  const start = async (directory: Directory) => {
    const store = await directory.open();
    open.push(store);
    const reports = new Reports();
    store.listen(reports);
    return { store, reports };
  };
  const stop = async (store: Store) => {
    open.splice(open.indexOf(store), 1);
    await store.close();
  };
  const reopened = async (directory: Directory, store: Store): Promise<Loaded> => {
    await stop(store);
    const again = await start(directory);
    await stop(again.store);
    return again.store.loaded;
  };
  const killed = async (directory: Directory, store: Store): Promise<Loaded> => {
    open.splice(open.indexOf(store), 1);
    await directory.kill(store);
    const again = await start(directory);
    await stop(again.store);
    return again.store.loaded;
  };

  describe('log', () => {
    it('begins with what Genesis says', async () => {
      const directory = await make();
      const { store } = await start(directory);
      expect(store.loaded).toEqual({
        genesis: directory.genesis,
        hard: hard(0),
        anchor: { index: 0, term: 0 },
        entries: [],
        snapshot: { ...meta(0, 0), configuration: { voters: directory.genesis.members, outgoing: [], learners: [] } },
        summary: SUMMARY,
        records: [],
      });
      expect(await reopened(directory, store)).toEqual(store.loaded);
    });

    it('keeps entries of every kind, term and vote', async () => {
      const directory = await make();
      const { store, reports } = await start(directory);
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
      const loaded = await killed(directory, store);
      expect(loaded.entries).toEqual(written);
      expect(loaded.hard).toEqual(hard(3, C));
      expect(loaded.anchor).toEqual({ index: 0, term: 0 });
    });

    it('reports in the order submitted, also when writes wait together', async () => {
      const directory = await make();
      const { store, reports } = await start(directory);
      store.write(logWrite(1, 1, entries(1, 2, 1)));
      store.write(logWrite(2, 1, entries(3, 4, 1)));
      store.cut(cutAt(3, 1, { put: [domainRecord('x', 2)] }));
      store.write(logWrite(3, 2, entries(4, 4, 2), { cutFrom: 4 }));
      store.write(logWrite(4, 2, entries(5, 6, 2)));
      store.write(logWrite(5, 3, entries(6, 6, 3), { cutFrom: 6 }));
      await reports.until('written 5');
      expect(reports.lines).toEqual(['written 1', 'written 2', 'cut 3', 'written 3', 'written 4', 'written 5']);
      const loaded = await killed(directory, store);
      expect(loaded.entries).toEqual([...entries(1, 3, 1), ...entries(4, 5, 2), ...entries(6, 6, 3)]);
      expect(loaded.records).toEqual([domainRecord('x', 2)]);
    });

    it('cuts inside a block, at its beginning, over several blocks, and with nothing new', async () => {
      const directory = await make();
      const { store, reports } = await start(directory);
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
      expect((await killed(directory, store)).entries).toEqual(entries(1, 2, 1));
      const again = await start(directory);
      again.store.write(logWrite(1, 5, entries(3, 9, 5)));
      await again.reports.until('written 1');
      expect((await reopened(directory, again.store)).entries).toEqual([...entries(1, 2, 1), ...entries(3, 9, 5)]);
    });

    it('takes a cut beyond its end for none', async () => {
      const directory = await make();
      const { store, reports } = await start(directory);
      store.write(logWrite(1, 1, entries(1, 2, 1), { cutFrom: 1 }));
      store.write(logWrite(2, 1, entries(3, 3, 1), { cutFrom: 3 }));
      await reports.until('written 2');
      expect((await reopened(directory, store)).entries).toEqual(entries(1, 3, 1));
    });
  });

  describe('state table', () => {
    it('keeps each cut whole, and its position and summary', async () => {
      const directory = await make();
      const { store, reports } = await start(directory);
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
      const loaded = await killed(directory, store);
      expect(loaded.snapshot).toEqual(meta(8, 1));
      expect(loaded.summary).toEqual(summary);
      expect(loaded.records).toEqual([domainRecord('x', 6), finishedRecord(8)]);
      expect(loaded.entries).toEqual(entries(1, 9, 1));
    });

    it('keeps records of every kind, each under a key of its own, and removes each', async () => {
      const directory = await make();
      const { store, reports } = await start(directory);
      store.write(logWrite(1, 1, entries(1, 9, 1)));
      store.cut(cutAt(4, 1, { put: [domainRecord('x', 2), finishedRecord(3), ...queueRecords('x', 3)] }));
      store.cut(cutAt(6, 1, { put: queueRecords('y', 5) }));
      await reports.until('cut 6');
      const [waiter, coolDown, counting, ...y] = [...queueRecords('x', 3), ...queueRecords('y', 5)];
      const [held, over] = [domainRecord('x', 2), finishedRecord(3)];
      const loaded = await killed(directory, store);
      expect(new Set(loaded.records)).toEqual(new Set([held, over, waiter, coolDown, counting, ...y]));
      const again = await start(directory);
      const closed: RecordKey = { type: 'coolDown', domain: 'x' as Domain };
      again.store.cut(cutAt(8, 1, { remove: [{ type: 'waiter', queuedAt: 3 as Revision }, closed] }));
      await again.reports.until('cut 8');
      const { records } = await reopened(directory, again.store);
      expect(new Set(records)).toEqual(new Set([held, over, counting, ...y]));
    });

    it('drops log behind a cut, as far as it is allowed to', async () => {
      const directory = await make();
      const { store, reports } = await start(directory);
      for (const [seq, from] of [1, 11, 21].entries()) {
        store.write(logWrite(seq + 1, 1, entries(from, from + 9, 1)));
        await reports.until(`written ${seq + 1}`);
      }
      store.cut(cutAt(25, 1, { keepFrom: 21 }));
      await reports.until('cut 25');
      let loaded = await killed(directory, store);
      expect(loaded.anchor).toEqual({ index: 20, term: 1 });
      expect(loaded.entries).toEqual(entries(21, 30, 1));
      const again = await start(directory);
      // No further than to the cut itself, however much is allowed.
      again.store.cut(cutAt(30, 1, { keepFrom: 100 }));
      again.store.write(logWrite(1, 2, entries(31, 31, 2)));
      again.store.cut(cutAt(30, 1, { keepFrom: 100 }));
      await again.reports.until('written 1');
      loaded = await reopened(directory, again.store);
      expect(loaded.anchor).toEqual({ index: 30, term: 1 });
      expect(loaded.entries).toEqual(entries(31, 31, 2));
      expect(loaded.snapshot).toEqual(meta(30, 1));
    });

    it('keeps at least what is wanted', async () => {
      const directory = await make();
      const { store, reports } = await start(directory);
      store.write(logWrite(1, 1, entries(1, 10, 1)));
      store.cut(cutAt(10, 1, { keepFrom: 6 }));
      await reports.until('cut 10');
      const { anchor, entries: kept } = await killed(directory, store);
      expect(anchor.index).toBeLessThan(6);
      expect(kept).toEqual(entries(anchor.index + 1, 10, 1));
    });
  });

  describe('snapshots', () => {
    const fill = async (store: Store, reports: Reports, count: number) => {
      store.write(logWrite(1, 1, entries(1, count + 1, 1)));
      store.cut(
        cutAt(count, 1, { put: Array.from({ length: count }, (_, i) => domainRecord(`d/${1000 + i}`, i + 1)) }),
      );
      await reports.until(`cut ${count}`);
    };

    it('are read in pieces of the size asked for, from one moment', async () => {
      const { store, reports } = await start(await make());
      await fill(store, reports, 50);
      const before = store.loaded.records;
      const reader = store.openSnapshot();
      const unread = store.openSnapshot();
      const first = await reader.next(1_000);
      store.cut(cutAt(51, 1, { put: [domainRecord('d/1049', 999), domainRecord('zz', 1000)] }));
      await reports.until('cut 51');
      const rest = await readChunks(reader, 1_000);
      const late = await readChunks(unread, 1_000);
      expect(late.flatMap((chunk) => chunk.records)).toHaveLength(50);
      expect(late.at(-1)?.meta.index).toBe(50);
      expect(before).toEqual([]);
      expect(first?.total).toBeUndefined();
      expect(rest.length).toBeGreaterThan(2);
      for (const { records } of [...(first ? [first] : []), ...rest])
        expect(JSON.stringify(records).length).toBeLessThan(8_000);
      const records = [...(first?.records ?? []), ...rest.flatMap((chunk) => chunk.records)];
      expect(records).toEqual(Array.from({ length: 50 }, (_, i) => domainRecord(`d/${1000 + i}`, i + 1)));
      expect(rest.map((chunk) => chunk.total?.count)).toEqual([...rest.slice(1).map(() => undefined), 50]);
      expect(rest.every((chunk) => chunk.meta.index === 50)).toBe(true);
    });

    it('of an empty table are one empty chunk', async () => {
      const { store } = await start(await make());
      const chunks = await readChunks(store.openSnapshot(), 1_000);
      expect(chunks).toMatchObject([{ records: [], total: { count: 0, digest: '0000000000000000' } }]);
    });

    /** A follower with a log and a table of its own that a transfer replaces. */
    const follower = async () => {
      const source = await start(await make());
      await fill(source.store, source.reports, 50);
      const chunks = await readChunks(source.store.openSnapshot(), 2_000);
      const directory = await make();
      const target = await start(directory);
      target.store.write(logWrite(1, 1, entries(1, 5, 1)));
      target.store.cut(cutAt(2, 1, { put: [domainRecord('old', 2)] }));
      await target.reports.until('cut 2');
      const stage = async (wanted: readonly SnapshotChunk[]) => {
        for (const chunk of wanted) target.store.stage(chunk);
        const last = wanted.at(-1);
        await target.reports.until(`staged ${last?.request ?? 0}/${last?.sequence ?? 0}`);
      };
      return { chunks, directory, stage, ...target };
    };
    const expected = Array.from({ length: 50 }, (_, i) => domainRecord(`d/${1000 + i}`, i + 1));

    it('are staged beside the table and put in force by one write', async () => {
      const { chunks, directory, stage, store, reports } = await follower();
      await stage(chunks);
      store.write(logWrite(2, 6, entries(51, 52, 6), { install: meta(50, 1), hard: hard(6, B) }));
      await reports.until('written 2');
      const loaded = await killed(directory, store);
      expect(loaded).toEqual({
        genesis: directory.genesis,
        hard: hard(6, B),
        anchor: { index: 50, term: 1 },
        entries: entries(51, 52, 6),
        snapshot: meta(50, 1),
        summary: SUMMARY,
        records: expected,
      });
      const again = await start(directory);
      again.store.cut(cutAt(52, 6, { put: [domainRecord('d/1000', 52)] }));
      await again.reports.until('cut 52');
      expect((await reopened(directory, again.store)).records).toEqual([
        domainRecord('d/1000', 52),
        ...expected.slice(1),
      ]);
    });

    it('leave nothing behind when they are not put in force', async () => {
      const { chunks, directory, stage, store } = await follower();
      await stage(chunks.slice(0, 2));
      const loaded = await killed(directory, store);
      expect(loaded.records).toEqual([domainRecord('old', 2)]);
      expect(loaded.entries).toEqual(entries(1, 5, 1));
    });

    it('begin afresh with chunk 0', async () => {
      const { chunks, directory, stage, store, reports } = await follower();
      await stage(
        chunks.slice(0, 2).map((chunk) => ({ ...chunk, records: [domainRecord('stray', 1), ...chunk.records] })),
      );
      await stage(chunks.map((chunk) => ({ ...chunk, request: 2 })));
      store.write(logWrite(2, 6, [], { install: meta(50, 1) }));
      await reports.until('written 2');
      expect((await reopened(directory, store)).records).toEqual(expected);
    });

    it('are refused when the sender has another sum, and the process ends', async () => {
      const { chunks, directory, stage, store, reports } = await follower();
      await stage(
        chunks.map((chunk, i) =>
          i === 1 ? { ...chunk, records: [domainRecord('d/1000', 77), ...chunk.records.slice(1)] } : chunk,
        ),
      );
      store.write(logWrite(2, 6, [], { install: meta(50, 1) }));
      await expect(reports.until('written 2')).rejects.toThrow(/sum/);
      expect((await killed(directory, store)).records).toEqual([domainRecord('old', 2)]);
    });

    it('are refused when a chunk is missing', async () => {
      const { chunks, stage, store, reports } = await follower();
      await stage(chunks.slice(0, -1));
      store.write(logWrite(2, 6, [], { install: meta(50, 1) }));
      await expect(reports.until('written 2')).rejects.toThrow(/snapshot at 50/);
    });

    it('outlive cuts of the table that they replaced, which are dropped (S4.2)', async () => {
      const { chunks, directory, stage, store, reports } = await follower();
      await stage(chunks);
      store.write(logWrite(2, 6, [], { install: meta(50, 1) }));
      store.cut(cutAt(5, 1, { put: [domainRecord('old', 5)] }));
      store.write(logWrite(3, 6, entries(51, 51, 6)));
      await reports.until('written 3');
      expect(reports.lines).not.toContain('cut 5');
      const loaded = await killed(directory, store);
      expect(loaded.snapshot).toEqual(meta(50, 1));
      expect(loaded.records).toEqual(expected);
    });
  });

  describe('failure', () => {
    it('is reported once, and nothing after it', async () => {
      const directory = await make();
      const { store, reports } = await start(directory);
      store.write(logWrite(1, 1, entries(1, 3, 1), { hard: hard(1, B) }));
      await reports.until('written 1');
      directory.breakNextWrite(store);
      store.write(logWrite(2, 1, entries(4, 4, 1), { hard: hard(1, B) }));
      store.cut(cutAt(3, 1));
      store.write(logWrite(3, 1, entries(5, 5, 1), { hard: hard(1, B) }));
      await expect(reports.until('written 2')).rejects.toThrow(/EIO/);
      store.write(logWrite(4, 1, entries(6, 6, 1)));
      store.cut(cutAt(2, 1));
      await stop(store).catch(() => undefined);
      expect(reports.lines).toEqual(['written 1', 'failed']);
      const again = await start(directory);
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
          let running = await start(directory);
          for (const step of steps) {
            if (step.type === 'kill' || step.type === 'stop') {
              await model.settled(running.reports);
              if (step.type === 'stop') await stop(running.store);
              else {
                open.splice(open.indexOf(running.store), 1);
                await directory.kill(running.store);
              }
              running = await start(directory);
              model.restarted();
              model.compare(running.store.loaded);
            } else model.submit(running.store, step);
          }
          await model.settled(running.reports);
          model.compare(await killed(directory, running.store));
        }),
        { numRuns: sequences },
      );
    });
  });
}
