import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { DirectoryId, Incarnation, NodeId } from '../../src/base/ids.js';
import { storeGenesis } from '../../src/storage/begin.js';
import { inspectDirectory, prepareDirectory } from '../../src/storage/directory.js';
import { diskFree } from '../../src/storage/free-space.js';
import { openStore } from '../../src/storage/open.js';
import { DirectoryRefused } from '../../src/storage/refused.js';
import { EXPECTED, freshPath, genesisFor, removePaths } from './fixtures.js';

afterAll(removePaths);

const newMember = async () => {
  const path = await freshPath();
  const directory = await prepareDirectory(path, EXPECTED);
  await storeGenesis(path, genesisFor(directory), directory);
  return { path, directory };
};

describe('a data directory', () => {
  it("is empty, then new, then a member's", async () => {
    const path = await freshPath();
    expect(await inspectDirectory(path, EXPECTED)).toEqual({ type: 'empty' });
    const directory = await prepareDirectory(path, EXPECTED);
    expect(await inspectDirectory(path, EXPECTED)).toEqual({ type: 'new', directory });
    expect(await prepareDirectory(path, EXPECTED)).toBe(directory);
    await expect(openStore(path, EXPECTED)).rejects.toThrow('holds no member. Form the cluster');
    const genesis = genesisFor(directory);
    await storeGenesis(path, genesis, directory);
    expect(await inspectDirectory(path, EXPECTED)).toEqual({
      type: 'member',
      identity: { type: 'member', ...EXPECTED, directory, incarnation: genesis.incarnation },
    });
    await expect(prepareDirectory(path, EXPECTED)).rejects.toThrow('holds a member of cluster "test" already');
  });

  it('gets an id of its own each time', async () => {
    const ids = await Promise.all([1, 2].map(async () => prepareDirectory(await freshPath(), EXPECTED)));
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/);
  });

  it('may be the root of a fresh file system', async () => {
    const path = await freshPath();
    await mkdir(join(path, 'lost+found'), { recursive: true });
    expect(await inspectDirectory(path, EXPECTED)).toEqual({ type: 'empty' });
  });

  it('of another cluster or node is refused, with the next step', async () => {
    const { path } = await newMember();
    await expect(inspectDirectory(path, { ...EXPECTED, cluster: 'other' })).rejects.toThrow(
      /IDENTITY: belongs to cluster "test", and this node is configured for cluster "other"\. Correct the data directory/,
    );
    await expect(openStore(path, { ...EXPECTED, node: 'b' as NodeId })).rejects.toThrow(
      /IDENTITY: belongs to node "a", and this node is configured as "b"\. Correct the data directory/,
    );
  });

  it("with somebody else's files is refused and left alone", async () => {
    const path = await freshPath();
    await mkdir(path);
    await writeFile(join(path, 'thesis.txt'), 'mine');
    await expect(prepareDirectory(path, EXPECTED)).rejects.toThrow(/contains thesis\.txt.*Name an empty directory/);
    expect(await readFile(join(path, 'thesis.txt'), 'utf8')).toBe('mine');
  });

  it('without database or MARK is refused', async () => {
    for (const name of ['database', 'MARK']) {
      const { path } = await newMember();
      await rm(join(path, name), { recursive: true });
      await expect(inspectDirectory(path, EXPECTED)).rejects.toThrow(new RegExp(`${name}: is missing`));
      await expect(inspectDirectory(path, EXPECTED)).rejects.toBeInstanceOf(DirectoryRefused);
    }
  });

  it('accepts one Genesis in its life, and only one that lists it', async () => {
    const { path, directory } = await newMember();
    await expect(storeGenesis(path, genesisFor(directory), directory)).rejects.toThrow(
      'has accepted a Genesis record already',
    );
    const other = await freshPath();
    const otherId = await prepareDirectory(other, EXPECTED);
    await expect(storeGenesis(other, genesisFor(directory), otherId)).rejects.toThrow(
      'which the Genesis record does not list',
    );
    const third = 'f'.repeat(32) as DirectoryId;
    await expect(storeGenesis(other, genesisFor(third), third)).rejects.toThrow('is not the prepared directory');
  });

  it('with the database of another history is refused', async () => {
    const one = await newMember();
    const two = await freshPath();
    const directory = await prepareDirectory(two, EXPECTED);
    await storeGenesis(two, { ...genesisFor(directory), incarnation: 'e'.repeat(32) as Incarnation }, directory);
    await writeFile(join(one.path, 'IDENTITY'), await readFile(join(two, 'IDENTITY')));
    await expect(openStore(one.path, EXPECTED)).rejects.toThrow('the Genesis record: is not that of IDENTITY');
  });

  it('is used by one process at a time; a short overlap is waited for', async () => {
    const { path } = await newMember();
    const first = await openStore(path, EXPECTED);
    const second = openStore(path, EXPECTED);
    await first.close();
    await (await second).close();
    const holder = await openStore(path, EXPECTED);
    await expect(openStore(path, EXPECTED)).rejects.toThrow(
      /LOCK: another process has this data directory open\. Stop that process.*do not delete LOCK/,
    );
    await holder.close();
  });

  it('tells how much room there is', async () => {
    const { path } = await newMember();
    expect(await diskFree(path)).toBeGreaterThan(0);
  });
});
