import { describe, expect, it } from 'vitest';
import { createMemoryDisk, MemoryStore, openMemoryStore } from '../../src/testing/memory-store.js';
import { cutAt, domainRecord, entries, GENESIS, hard, logWrite, B, Reports } from './fixtures.js';
import { storeSuite } from './store.suite.js';

describe('memory store', () => {
  storeSuite(() => {
    const disk = createMemoryDisk(GENESIS);
    return Promise.resolve({
      genesis: GENESIS,
      open: () => Promise.resolve(openMemoryStore(disk)),
      kill: (store) => {
        if (store instanceof MemoryStore) store.crash({ lose: 'none' });
        return Promise.resolve();
      },
      breakNextWrite: (store) => {
        if (store instanceof MemoryStore) store.fail('EIO');
      },
    });
  }, 300);

  describe('as a twin with faults', () => {
    const start = (options: Parameters<typeof openMemoryStore>[1] = {}, disk = createMemoryDisk(GENESIS)) => {
      const reports = new Reports();
      const store = openMemoryStore(disk, options);
      store.listen(reports);
      return { disk, store, reports };
    };

    it('ends a write when the test says so, one at a time', () => {
      const steps: (() => void)[] = [];
      const { store, reports } = start({ schedule: (complete) => steps.push(complete) });
      store.write(logWrite(1, 1, entries(1, 1, 1)));
      store.write(logWrite(2, 1, entries(2, 2, 1)));
      expect(steps).toHaveLength(1);
      steps.shift()?.();
      expect(reports.lines).toEqual(['written 1']);
      steps.shift()?.();
      expect(reports.lines).toEqual(['written 1', 'written 2']);
    });

    it('loses the write under way in a crash, or keeps it unreported', () => {
      for (const underWay of ['lost', 'kept'] as const) {
        const { disk, store, reports } = start({ schedule: () => undefined });
        store.write(logWrite(1, 1, entries(1, 2, 1), { hard: hard(1, B) }));
        store.crash({ lose: 'unsynced', underWay });
        const { entries: found, hard: kept } = start({}, disk).store.loaded;
        expect(found).toEqual(underWay === 'kept' ? entries(1, 2, 1) : []);
        expect(kept).toEqual(underWay === 'kept' ? hard(1, B) : hard(0));
        expect(reports.lines).toEqual([]);
      }
    });

    it('without sync reports what a crash then loses', async () => {
      const { disk, store, reports } = start({ sync: false });
      store.write(logWrite(1, 1, entries(1, 2, 1), { hard: hard(1, B) }));
      await reports.until('written 1');
      disk.flush();
      store.write(logWrite(2, 2, entries(3, 4, 2), { hard: hard(2, B) }));
      await reports.until('written 2');
      store.crash();
      const { loaded } = start({}, disk).store;
      expect(loaded.entries).toEqual(entries(1, 2, 1));
      expect(loaded.hard).toEqual(hard(1, B));
    });

    it('keeps what was written through a kill, synced or not', async () => {
      const { disk, store, reports } = start({ sync: false });
      store.write(logWrite(1, 1, entries(1, 2, 1)));
      await reports.until('written 1');
      store.crash({ lose: 'none' });
      expect(start({}, disk).store.loaded.entries).toEqual(entries(1, 2, 1));
    });

    it('may lose an unsynced cut and keep later synced ones, which a start refuses (F4)', async () => {
      let cuts = 0;
      const { disk, store, reports } = start({ sync: (kind) => kind !== 'cut' || ++cuts > 1 });
      store.write(logWrite(1, 1, entries(1, 9, 1)));
      store.cut(cutAt(3, 1, { put: [domainRecord('x', 2)] }));
      store.cut(cutAt(5, 1, { put: [domainRecord('y', 5)] }));
      await reports.until('cut 5');
      store.crash();
      expect(() => openMemoryStore(disk)).toThrow(/count or sum/);
    });

    it('refuses a log with a hole', async () => {
      const { disk, store, reports } = start({
        sync: () => store.loaded.entries.length > 0 || reports.lines.length > 0,
      });
      store.write(logWrite(1, 1, entries(1, 2, 1)));
      await reports.until('written 1');
      store.write(logWrite(2, 1, entries(3, 4, 1)));
      await reports.until('written 2');
      store.crash();
      expect(() => openMemoryStore(disk)).toThrow(/entries 1 to 2 are missing/);
    });

    it('stalls, and goes on', async () => {
      const { store, reports } = start();
      store.stall();
      store.write(logWrite(1, 1, entries(1, 1, 1)));
      await new Promise((resolve) => setImmediate(resolve));
      expect(reports.lines).toEqual([]);
      store.resume();
      await reports.until('written 1');
    });
  });
});
