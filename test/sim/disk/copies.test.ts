/** What happens to a disk while no process uses it: copied, brought back, emptied, and a byte of it changed. */
import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/replica/ports.js';
import type { Loaded } from '../../../src/replica/types.js';
import { DirectoryRefused } from '../../../src/storage/refused.js';
import { B, cutAt, domainRecord, entries, hard, logWrite, meta, readChunks, Reports } from '../../storage/fixtures.js';
import { ByteDisk } from './byte-disk.js';
import { DiskWorld, KINDS } from './fixtures.js';
import { ObjectDisk } from './object-disk.js';

/** A little of everything: votes, a superseded tail, a cut, an installed snapshot, and a table that is being swept. */
async function fill(world: DiskWorld, store: Store): Promise<void> {
  const reports = new Reports();
  store.listen(reports);
  store.write(logWrite(1, 1, entries(1, 6, 1), { hard: hard(1, B) }));
  store.cut(cutAt(4, 1, { put: [domainRecord('x', 2), domainRecord('y', 3)] }));
  await world.until(reports.until('cut 4'));
  for (const chunk of await readChunks(store.openSnapshot(), 200)) store.stage({ ...chunk, meta: meta(9, 1) });
  store.write(logWrite(2, 2, entries(10, 14, 2), { install: meta(9, 1) }));
  await world.until(reports.until('written 2'));
  store.write(logWrite(3, 3, entries(13, 15, 3), { cutFrom: 13, hard: hard(3, B) }));
  store.cut(cutAt(11, 2, { put: [domainRecord('z', 11)], keepFrom: 8 }));
  store.write(logWrite(4, 3, entries(16, 16, 3), { hard: hard(3, B) }));
  await world.until(reports.until('written 4'));
}

async function filled(kind: (typeof KINDS)[number][1], seed = 1): Promise<{ world: DiskWorld; loaded: Loaded }> {
  const world = new DiskWorld(kind, seed);
  await world.form();
  await fill(world, await world.open());
  world.disk.crash({ lose: 'none', underWay: 'kept' });
  return { world, loaded: await loadedOf(world) };
}

async function loadedOf(world: DiskWorld, disk = world.disk): Promise<Loaded> {
  const { loaded } = await world.until(disk.open());
  disk.crash({ lose: 'none', underWay: 'kept' });
  return loaded;
}

describe.each(KINDS)('%s', (_, kind) => {
  it('is brought back exactly, as often as one likes, and on another disk', async () => {
    const { world, loaded } = await filled(kind);
    const { disk } = world;
    expect(loaded.entries).toHaveLength(7);
    const copy = disk.copy();
    for (let again = 0; again < 2; again++) {
      const store = await world.open();
      const reports = new Reports();
      store.listen(reports);
      store.write(logWrite(1, 4, entries(15, 20, 4), { cutFrom: 15 }));
      store.cut(cutAt(14, 3, { put: [domainRecord('x', 14)] }));
      store.write(logWrite(2, 5, []));
      await world.until(reports.until('written 2'));
      disk.crash({ lose: 'unsynced', underWay: 'lost' });
      expect((await loadedOf(world)).hard).toEqual(hard(5));
      disk.restore(copy);
      // What is brought back is on the medium.
      disk.crash({ lose: 'unsynced', underWay: 'lost' });
      expect(await loadedOf(world)).toEqual(loaded);
    }
    const clone = world.another(kind);
    clone.restore(copy);
    expect(await loadedOf(world, clone)).toEqual(loaded);
  });

  it('is empty after it was wiped, and gets another identity', async () => {
    const { world, loaded } = await filled(kind);
    const { disk } = world;
    disk.wipe();
    expect(await world.until(disk.inspect())).toEqual({ type: 'empty' });
    const directory = await world.until(disk.prepare());
    expect(directory).toMatch(/^[0-9a-f]{32}$/);
    expect(loaded.genesis.members.map((member) => member.directory)).not.toContain(directory);
    await expect(world.until(disk.storeGenesis(loaded.genesis))).rejects.toBeInstanceOf(DirectoryRefused);
    await expect(world.open()).rejects.toThrow('holds no member');
  });

  it('takes no copy of another kind', () => {
    const [one, two] = [new DiskWorld(ByteDisk, 1), new DiskWorld(ObjectDisk, 1)];
    expect(() => {
      one.disk.restore(two.disk.copy());
    }).toThrow('no copy');
    expect(() => {
      two.disk.restore(one.disk.copy());
    }).toThrow('no copy');
  });
});

describe('ByteDisk', () => {
  it('with a flipped byte is refused, or gives what it gave', async () => {
    const { world, loaded } = await filled(ByteDisk, 3);
    const { disk } = world;
    const copy = disk.copy();
    const places = new Set<string>();
    let harmless = 0;
    for (let flips = 0; flips < 800; flips++) {
      disk.restore(copy);
      expect(disk.flip()).toBe(true);
      const place = /of (.*) flips/.exec(world.lines.at(-1) ?? '')?.[1] ?? '';
      const opened = await world.until(disk.open().catch((error: unknown) => error));
      if (opened instanceof Error) {
        expect(opened).toBeInstanceOf(DirectoryRefused);
        places.add(place);
      } else {
        expect((opened as Store).loaded).toEqual(loaded);
        harmless++;
      }
      disk.crash({ lose: 'none', underWay: 'lost' });
    }
    // Every kind of record was hit: hard state, Genesis, log, pointer, meta and state; the mark has two slots.
    expect([...places].map((place) => place.replace(/^(record 0\d).*/, '$1')).sort()).toEqual(
      expect.arrayContaining(['IDENTITY', 'record 01', 'record 02', 'record 03', 'record 04', 'record 05']),
    );
    expect(harmless).toBeGreaterThan(0);
    expect(harmless).toBeLessThan(300);
    expect(world.coverage.counts.get('byte flipped')).toBe(800);
  });

  it('has no bytes while it is empty', () => {
    expect(new DiskWorld(ByteDisk, 1).disk.flip()).toBe(false);
  });
});
