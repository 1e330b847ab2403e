/** The byte disk is a disk: what every store must do, it does too, in virtual time. */
import { afterAll, beforeAll, describe } from 'vitest';
import { genesisFor } from '../../storage/fixtures.js';
import { storeSuite } from '../../storage/store.suite.js';
import { ByteDisk } from './byte-disk.js';
import { DiskWorld } from './fixtures.js';

describe('store on a simulated disk', () => {
  const worlds: DiskWorld[] = [];
  let running = true;
  // The suite waits for promises only: time passes by itself.
  beforeAll(() => {
    const pump = () => {
      for (const { scheduler } of worlds) scheduler.runNext(Infinity);
      if (running) setImmediate(pump);
    };
    pump();
  });
  afterAll(() => {
    running = false;
  });

  storeSuite(async () => {
    const world = new DiskWorld(ByteDisk, worlds.length);
    worlds.splice(0, worlds.length > 3 ? 1 : 0);
    worlds.push(world);
    const { disk } = world;
    const genesis = genesisFor(await disk.prepare());
    await disk.storeGenesis(genesis);
    return {
      genesis,
      open: () => disk.open(),
      kill() {
        disk.crash({ lose: 'none', underWay: 'kept' });
        return Promise.resolve();
      },
      breakNextWrite() {
        disk.fail('EIO');
      },
    };
  }, 30);
});
