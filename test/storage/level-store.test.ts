import { cp, rm } from 'node:fs/promises';
import { afterAll, describe } from 'vitest';
import type { Store } from '../../src/replica/ports.js';
import { storeGenesis } from '../../src/storage/begin.js';
import { prepareDirectory } from '../../src/storage/directory.js';
import { nodeFiles, type Files } from '../../src/storage/files.js';
import { openStore } from '../../src/storage/open.js';
import { copyOf, EXPECTED, freshPath, genesisFor, removePaths } from './fixtures.js';
import { storeSuite } from './store.suite.js';

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
        const files: Files = {
          ...nodeFiles,
          async openInPlace(name) {
            const file = await nodeFiles.openInPlace(name);
            return {
              ...file,
              write: (bytes, position) =>
                broken.has(store) ? Promise.reject(new Error('EIO: i/o error, write')) : file.write(bytes, position),
            };
          },
        };
        const store = await openStore(path, EXPECTED, files);
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
});
