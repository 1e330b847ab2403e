/** Power at a certain operation: it comes while that one is under way, and counts operations of whatever process. */
import { expect, it } from 'vitest';
import { KINDS, DiskWorld } from './fixtures.js';

it.each(KINDS)('%s loses power at the operation that was asked for, once', async (_, kind) => {
  const world = new DiskWorld(kind, 1);
  const { disk } = world;
  let lost = 0;
  // The second one gives the directory its identity: without it there is none.
  disk.atOperation(2, () => {
    lost++;
    disk.crash({ lose: 'unsynced', underWay: 'lost' });
  });
  const first = disk.prepare();
  first.catch(() => undefined);
  await world.steps(1_000);
  expect(lost).toBe(1);
  expect(await world.until(disk.inspect())).toEqual({ type: 'empty' });
  await world.form();
  await world.open();
  expect(lost).toBe(1);
});

it('is called off', async () => {
  const world = new DiskWorld(KINDS[0][1], 1);
  world.disk.atOperation(1, () => {
    throw new Error('was called off');
  });
  world.disk.atNoOperation();
  await world.form();
  await world.open();
});
