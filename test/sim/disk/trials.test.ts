/** What is tried on copies of a disk: that it is told of, that it changes nothing, and what damage does. */
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/base/random.js';
import type { Store } from '../../../src/replica/ports.js';
import type { Loaded } from '../../../src/replica/types.js';
import { openStore } from '../../../src/storage/open.js';
import { DirectoryRefused } from '../../../src/storage/refused.js';
import { cutAt, domainRecord, entries, EXPECTED, genesisFor, hard, logWrite, Reports } from '../../storage/fixtures.js';
import { Coverage } from '../coverage.js';
import type { Fault } from '../observation.js';
import type { Disk } from '../ports.js';
import { ByteDisk } from './byte-disk.js';
import { flipByte, loseWrites, placeOf } from './damage.js';
import { DirectoryNode } from './file-tree.js';
import { DiskWorld, LATENCY } from './fixtures.js';
import { simulatedDatabases } from './sim-database.js';
import { find, simulatedFiles } from './sim-files.js';
import { Device } from './device.js';
import type { Outcome, TrialOptions } from './trials.js';

/** A disk of which every operation is tried. */
function tried(judge: TrialOptions['afterPowerLoss'] = () => undefined) {
  const world = new DiskWorld(ByteDisk, 1);
  const coverage = new Coverage();
  const faults: Fault[] = [];
  const disk = new ByteDisk(world.surroundings, EXPECTED, LATENCY, {
    random: createRandom(7),
    every: 1,
    coverage,
    afterPowerLoss: judge,
    report: (fault) => faults.push(fault),
    threw: (error) => {
      throw error;
    },
  });
  return { world, disk, coverage, faults };
}

async function form(world: DiskWorld, disk: Disk): Promise<Store> {
  const directory = await world.until(disk.prepare());
  await world.until(disk.storeGenesis(genesisFor(directory)));
  return world.until(disk.open());
}

/** Two terms, a block cut in its middle, two cuts. */
async function fill(world: DiskWorld, store: Store): Promise<void> {
  const reports = new Reports();
  store.listen(reports);
  store.write(logWrite(1, 1, entries(1, 6, 1)));
  await world.until(reports.until('written 1'));
  store.write(logWrite(2, 3, entries(5, 8, 3), { cutFrom: 5, hard: hard(3) }));
  store.cut(cutAt(4, 1, { put: [domainRecord('x', 2), domainRecord('y', 3)] }));
  await world.until(reports.until('cut 4'));
  store.write(logWrite(3, 4, entries(9, 10, 4), { hard: hard(4) }));
  await world.until(reports.until('written 3'));
  store.cut(cutAt(6, 3, { put: [domainRecord('x', 5)] }));
  await world.until(reports.until('cut 6'));
  store.write(logWrite(4, 5, [], { hard: hard(5) }));
  await world.until(reports.until('written 4'));
}

describe('trials', () => {
  it('show every state between two operations, and leave the disk as it is', async () => {
    const seen = new Set<string>();
    const note = (outcome: Outcome) => {
      seen.add(outcome.type === 'found' ? `${outcome.type} ${outcome.loaded.entries.length}` : outcome.type);
      return undefined;
    };
    const [one, other] = [tried(note), new DiskWorld(ByteDisk, 1)];
    await fill(one.world, await form(one.world, one.disk));
    await fill(other, await form(other, other.disk));
    expect(one.world.scheduler.now).toBe(other.scheduler.now);
    expect(one.world.lines).toEqual(other.lines);
    expect([...seen].sort()).toEqual(['found 0', 'found 10', 'found 6', 'found 8', 'nothing']);
    expect(one.faults).toEqual([]);
    for (const name of ['power loss tried', 'damaged copy refused', 'damage harmless']) {
      expect(one.coverage.counts.get(name)).toBeGreaterThan(0);
    }
  });

  it('tell what their judge finds wrong', async () => {
    const { world, disk, faults } = tried((outcome) =>
      outcome.type === 'found' ? { code: 'DUR', text: 'too little' } : undefined,
    );
    await form(world, disk);
    expect(faults[0]).toEqual({ code: 'DUR', text: 'if power were lost now: too little' });
  });
});

describe('damage', () => {
  it('of every kind is refused, or harmless', async () => {
    const world = new DiskWorld(ByteDisk, 1);
    await fill(world, await form(world, world.disk));
    const { disk } = world;
    disk.crash({ lose: 'none', underWay: 'lost' });
    // Its last writes cannot be taken back: what is exchanged and what flips is judged here.
    const root = disk.copy() as DirectoryNode;
    const { loaded } = await world.until(disk.open());
    const device = new Device(EXPECTED.node, world.surroundings, LATENCY);
    const random = createRandom(3);
    const kinds = new Set<string>();
    for (let time = 0; time < 200; time++) {
      const copy = root.fork();
      const place = placeOf(find(copy, '/data') as DirectoryNode);
      if (place === undefined) throw new Error('no place');
      const what = time % 2 === 0 ? flipByte(place, random) : loseWrites(place, loaded, random);
      if (what === undefined) continue;
      const found = await world.until(start(copy, device).catch((error: unknown) => error));
      if (found instanceof Error) {
        expect(found).toBeInstanceOf(DirectoryRefused);
        kinds.add(what.replace(/[0-9]+ (of|writes)/, '$1').replace(/record (..).*/, 'record $1'));
      } else expect(found).toEqual(loaded);
    }
    expect([...kinds].sort()).toEqual(
      expect.arrayContaining(['another block in the place of record 03', 'byte of IDENTITY', 'byte of record 05']),
    );
  });
});

async function start(root: DirectoryNode, device: Device): Promise<Loaded> {
  const { process } = device;
  const store = await openStore('/data', EXPECTED, {
    files: simulatedFiles(root, device, process),
    databases: simulatedDatabases(root, process),
    after: () => () => undefined,
  });
  return store.loaded;
}
