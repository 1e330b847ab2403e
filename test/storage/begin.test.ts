/** A process that ends between any two file operations of its first start (S2.3). */
import { cp, rm } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { storeGenesis } from '../../src/storage/begin.js';
import { inspectDirectory, prepareDirectory } from '../../src/storage/directory.js';
import { nodeFiles, type Files } from '../../src/storage/files.js';
import { openStore } from '../../src/storage/open.js';
import { nodeStorage } from '../../src/storage/ports.js';
import { copyOf, entries, EXPECTED, freshPath, genesisFor, logWrite, removePaths, Reports } from './fixtures.js';

afterAll(removePaths);

/** Ends the process (throws) before the operation number `at`, or half way through it if that writes a file. */
function dyingFiles(at: number, half: boolean): { files: Files; count: () => number } {
  let count = 0;
  const step = async <T>(operation: () => Promise<T>, torn?: () => Promise<void>): Promise<T> => {
    if (count++ !== at) return operation();
    if (half) await torn?.();
    throw new Error('died here');
  };
  const files: Files = {
    ...nodeFiles,
    makeDirectory: (path) => step(() => nodeFiles.makeDirectory(path)),
    writeSynced: (path, bytes) =>
      step(
        () => nodeFiles.writeSynced(path, bytes),
        () => nodeFiles.writeSynced(path, bytes.subarray(0, bytes.length / 2)),
      ),
    rename: (from, to) => step(() => nodeFiles.rename(from, to)),
    syncDirectory: (path) => step(() => nodeFiles.syncDirectory(path)),
    remove: (path) => step(() => nodeFiles.remove(path)),
  };
  return { files, count: () => count };
}

async function firstStart(path: string, files: Files): Promise<void> {
  const found = await inspectDirectory(path, EXPECTED, files);
  if (found.type === 'member') return;
  const directory = await prepareDirectory(path, EXPECTED, { ...nodeStorage, files });
  await storeGenesis(path, genesisFor(directory), directory, { ...nodeStorage, files });
}

describe('the first start', () => {
  it('can be repeated wherever it ended, and keeps the directory id', async () => {
    const whole = dyingFiles(Infinity, false);
    await firstStart(await freshPath(), whole.files);
    expect(whole.count()).toBeGreaterThan(10);
    const seen = new Map<string, number>();
    for (let at = 0; at < whole.count(); at++) {
      for (const half of [false, true]) {
        const path = await freshPath();
        await expect(firstStart(path, dyingFiles(at, half).files)).rejects.toThrow('died here');
        const left = await inspectDirectory(path, EXPECTED);
        seen.set(left.type, (seen.get(left.type) ?? 0) + 1);
        await firstStart(path, nodeFiles);
        const now = await inspectDirectory(path, EXPECTED);
        if (now.type !== 'member') throw new Error(`still ${now.type}`);
        if (left.type === 'new') expect(now.identity.directory).toBe(left.directory);
        const store = await openStore(path, EXPECTED);
        expect(store.loaded.genesis.members[0]?.directory).toBe(now.identity.directory);
        await store.close();
      }
    }
    expect([...seen.keys()].sort()).toEqual(['empty', 'member', 'new']);
  });

  it('rebuilds a database that was left half built, in any state', async () => {
    const path = await freshPath();
    const directory = await prepareDirectory(path, EXPECTED);
    const fresh = await copyOf(path);
    await storeGenesis(path, genesisFor(directory), directory);
    for (const missing of ['CURRENT', 'MANIFEST-000002', '000003.log', 'LOCK']) {
      const broken = await copyOf(fresh);
      await cp(`${path}/database`, `${broken}/database`, { recursive: true });
      await rm(`${broken}/database/${missing}`, { force: true });
      await storeGenesis(broken, genesisFor(directory), directory);
      const store = await openStore(broken, EXPECTED);
      const reports = new Reports();
      store.listen(reports);
      store.write(logWrite(1, 1, entries(1, 1, 1)));
      await reports.until('written 1');
      await store.close();
    }
  });

  it('begins a history that goes on from an earlier one', async () => {
    const path = await freshPath();
    const directory = await prepareDirectory(path, EXPECTED);
    await storeGenesis(path, { ...genesisFor(directory, { start: 1_000, startTerm: 7 }), holdMs: 5 }, directory);
    const store = await openStore(path, EXPECTED);
    const { anchor, hard, snapshot, summary } = store.loaded;
    expect(anchor).toEqual({ index: 1_000, term: 7 });
    expect(hard).toEqual({ term: 7, vote: undefined });
    expect(snapshot).toMatchObject({ index: 1_000, term: 7, configurationIndex: 1_000 });
    expect(summary.holding).toBe(true);
    const reports = new Reports();
    store.listen(reports);
    store.write(logWrite(1, 8, entries(1_001, 1_003, 8)));
    await reports.until('written 1');
    await store.close();
    const again = await openStore(path, EXPECTED);
    expect(again.loaded.entries).toEqual(entries(1_001, 1_003, 8));
    await again.close();
  });
});
