import { cp, rm } from 'node:fs/promises';
import { ClassicLevel } from 'classic-level';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Store } from '../../src/replica/ports.js';
import { storeGenesis } from '../../src/storage/begin.js';
import { prepareDirectory } from '../../src/storage/directory.js';
import { nodeFiles, type Files } from '../../src/storage/files.js';
import { openStore } from '../../src/storage/open.js';
import { nodeStorage } from '../../src/storage/ports.js';
import {
  copyOf,
  cutAt,
  domainRecord,
  entries,
  EXPECTED,
  freshPath,
  genesisFor,
  logWrite,
  meta,
  readChunks,
  removePaths,
  Reports,
} from './fixtures.js';
import { storeSuite } from './store.suite.js';

/** A batch of LevelDB's, as far as a test looks at it. */
interface Batch {
  write(options: object): Promise<void>;
}

describe('store on disk', () => {
  afterAll(removePaths);

  storeSuite(async () => {
    const path = await freshPath();
    const directory = await prepareDirectory(path, EXPECTED);
    const genesis = genesisFor(directory);
    await storeGenesis(path, genesis, directory);
    const broken = new WeakSet<Store>();
    return {
      genesis,
      async open() {
        // Its opening writes too.
        const opened: Store[] = [];
        const files: Files = {
          ...nodeFiles,
          async openInPlace(name) {
            const file = await nodeFiles.openInPlace(name);
            return {
              ...file,
              write: (bytes, position) =>
                opened.some((store) => broken.has(store))
                  ? Promise.reject(new Error('EIO: i/o error, write'))
                  : file.write(bytes, position),
            };
          },
        };
        const store = await openStore(path, EXPECTED, { ...nodeStorage, files });
        opened.push(store);
        return store;
      },
      async kill(store) {
        const left = await copyOf(path);
        await store.close().catch(() => undefined);
        await rm(path, { recursive: true });
        await cp(left, path, { recursive: true });
      },
      breakNextWrite(store) {
        broken.add(store);
      },
    };
  }, 10);

  it('syncs every batch: log, cut, chunk and switch (F4)', async () => {
    const path = await freshPath();
    const directory = await prepareDirectory(path, EXPECTED);
    const written: unknown[] = [];
    const original = Reflect.get(ClassicLevel.prototype, 'batch') as unknown as () => unknown;
    const spy = vi.spyOn(ClassicLevel.prototype, 'batch').mockImplementation(function (this: ClassicLevel) {
      const batch = Reflect.apply(original, this, []) as Batch;
      const write = batch.write.bind(batch);
      batch.write = (options) => {
        written.push(options);
        return write(options);
      };
      return batch as never;
    });
    try {
      await storeGenesis(path, genesisFor(directory), directory);
      const store = await openStore(path, EXPECTED);
      const reports = new Reports();
      store.listen(reports);
      store.write(logWrite(1, 1, entries(1, 3, 1)));
      store.cut(cutAt(3, 1, { put: [domainRecord('x', 2)] }));
      await reports.until('cut 3');
      for (const chunk of await readChunks(store.openSnapshot(), 1_000)) store.stage(chunk);
      store.write(logWrite(2, 2, entries(4, 4, 2), { install: meta(3, 1) }));
      await reports.until('written 2');
      await store.close();
      expect(written).toEqual(Array(5).fill({ sync: true }));
    } finally {
      spy.mockRestore();
    }
  });
});
