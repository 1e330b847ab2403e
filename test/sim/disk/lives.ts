/** One disk under many processes, each of which ends in another way. */
import { nextInt } from '../../../src/base/random.js';
import type { Store } from '../../../src/replica/ports.js';
import { Coverage } from '../coverage.js';
import type { CrashHow } from '../ports.js';
import { DiskWorld, type Kind } from './fixtures.js';
import { Life } from './life.js';

/** Every kind of crash. */
export const HOW: readonly CrashHow[] = (['unsynced', 'none'] as const).flatMap((lose) =>
  (['lost', 'torn', 'kept'] as const).map((underWay) => ({ lose, underWay })),
);

/** Several processes one after another, each of which ends in another way; returns the story. Throws when one finds what it must not. */
export async function live(kind: Kind, seed: number, coverage = new Coverage()): Promise<readonly string[]> {
  const world = new DiskWorld(kind, seed, coverage);
  const { disk } = world;
  const { random } = world.surroundings;
  const life = new Life(random);
  await world.form();
  for (let process = 0; process < 8; process++) {
    const store = await openAtLast(world);
    life.started(store);
    const acts = nextInt(random, 1, 25);
    for (let act = 0; act < acts && !life.failed; act++) {
      if (nextInt(random, 0, 60) === 0) disk.fail(nextInt(random, 0, 1) === 0 ? 'EIO' : 'ENOSPC');
      if (nextInt(random, 0, 30) === 0) disk.stall();
      if (nextInt(random, 0, 10) === 0) disk.resume();
      await life.act(store);
      await world.steps(nextInt(random, 0, 6));
    }
    disk.resume();
    if (nextInt(random, 0, 4) === 0) await world.until(store.close().catch(() => undefined));
    const how = HOW[nextInt(random, 0, HOW.length - 1)];
    if (how !== undefined) disk.crash(how);
    world.surroundings.trace(`ends, ${JSON.stringify(how)}`);
  }
  life.started(await openAtLast(world));
  return world.lines;
}

/** Now and then the process ends while it opens the store. */
async function openAtLast(world: DiskWorld): Promise<Store> {
  const { disk } = world;
  const { random } = world.surroundings;
  while (nextInt(random, 0, 3) === 0) {
    disk.open().catch(() => undefined);
    await world.steps(nextInt(random, 0, 8));
    const how = HOW[nextInt(random, 0, HOW.length - 1)];
    if (how !== undefined) disk.crash(how);
  }
  for (;;) {
    try {
      return await world.open();
    } catch (error) {
      // A fault that was asked for earlier met the start: the next one finds everything.
      if (!(error instanceof Error && 'code' in error)) throw error;
      disk.crash({ lose: 'unsynced', underWay: 'lost' });
    }
  }
}
