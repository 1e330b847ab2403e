/** Crashes of every kind at every place: what was reported is found, and a start is refused only for a flipped byte. */
import { describe, expect, it } from 'vitest';
import { genesisFor } from '../../storage/fixtures.js';
import { Coverage } from '../coverage.js';
import { ByteDisk } from './byte-disk.js';
import { DiskWorld, KINDS } from './fixtures.js';
import { Life } from './life.js';
import { HOW, live } from './lives.js';

describe.each(KINDS)('%s', (_, kind) => {
  it('gives back what was reported after any crash at any time, failures and stalls included', async () => {
    const coverage = new Coverage();
    for (let seed = 0; seed < 25; seed++) await live(kind, seed, coverage);
    const wanted = [
      'crash while a write was under way',
      'write torn',
      'write failed EIO',
      'write failed ENOSPC',
      'stall',
      ...(kind === ByteDisk ? ['unsynced lost', 'unsynced lost, later synced kept', 'mark lost', 'mark torn'] : []),
    ];
    expect(wanted.filter((name) => !coverage.counts.has(name))).toEqual([]);
    expect(coverage.counts.has('open refused')).toBe(false);
  });

  it('is empty, new or a member after a crash at any step of its first start, and goes on from there', async () => {
    const coverage = new Coverage();
    const found = new Set<string>();
    for (const how of HOW) {
      for (let seed = 0; seed < 2; seed++) {
        const formed: boolean[] = [];
        for (let steps = 0; !formed.includes(true); steps++) {
          const world = new DiskWorld(kind, seed, coverage);
          const { disk } = world;
          let prepared = undefined as string | undefined;
          const forming = (async () => {
            await disk.inspect();
            const directory = await disk.prepare();
            prepared = directory;
            await disk.storeGenesis(genesisFor(directory));
            return true;
          })();
          void forming.then(
            () => formed.push(true),
            () => undefined,
          );
          await world.steps(steps);
          disk.crash(how);
          const left = await world.until(disk.inspect());
          found.add(left.type);
          if (formed.includes(true)) expect(left.type).toBe('member');
          if (prepared !== undefined) expect(left).toMatchObject({ directory: prepared });
          if (left.type !== 'member') await world.form();
          await world.open();
          // What a member promises from its first start on must not be forgotten by a power loss.
          disk.crash({ lose: 'unsynced', underWay: 'lost' });
          const store = await world.open();
          expect(store.loaded.entries).toEqual([]);
          expect(store.loaded.genesis.members[0]).toEqual(
            prepared === undefined ? expect.anything() : { node: 'a', directory: prepared },
          );
        }
      }
    }
    expect([...found].sort()).toEqual(['empty', 'member', 'new']);
    expect(coverage.counts.get('crash while forming files')).toBeGreaterThan(0);
    expect(coverage.counts.has('open refused')).toBe(false);
  });

  it('tells the old process nothing more', async () => {
    const world = new DiskWorld(kind, 1);
    const { disk } = world;
    await world.form();
    const settled: string[] = [];
    const note = (what: string) => () => settled.push(what);
    for (const underWay of ['lost', 'kept'] as const) {
      const store = await world.open();
      const life = new Life(world.surroundings.random);
      let reports = 0;
      store.listen({
        written: () => reports++,
        cutWritten: () => reports++,
        staged: () => reports++,
        failed: () => reports++,
      });
      for (let i = 0; i < 5; i++) await life.act(store).catch(() => undefined);
      store.close().then(note('close'), note('close failed'));
      await world.steps(1);
      const before = reports;
      disk.crash({ lose: 'unsynced', underWay });
      await world.steps(1_000);
      expect(reports).toBe(before);
    }
    disk.prepare().then(note('prepare'), note('prepare failed'));
    disk.crash({ lose: 'none', underWay: 'lost' });
    await world.steps(1_000);
    expect(settled).toEqual([]);
  });

  it('runs the same way for the same seed', async () => {
    const [first, second, other] = [await live(kind, 5), await live(kind, 5), await live(kind, 6)];
    expect(first.length).toBeGreaterThan(8);
    expect(second).toEqual(first);
    expect(other).not.toEqual(first);
  });
});
