/** The judge of what a start leaves: it must see rubbish, and take nothing that is in force for it. */
import { describe, expect, it } from 'vitest';
import { blockKey, metaKey, POINTER_KEY, tableKey } from '../../../src/wire/disk.js';
import { decodeCutMeta, encodeCutMeta, encodePointer } from '../../../src/wire/disk-records.js';
import { ByteDisk } from './byte-disk.js';
import { DatabaseNode } from './sim-database.js';
import { DirectoryNode } from './file-tree.js';
import { DiskWorld } from './fixtures.js';
import { leftOver } from './left-over.js';
import { textOf } from './records.js';
import { find } from './sim-files.js';

const VALUE = Uint8Array.of(1);

/** What a new member's database holds, with its anchor at `anchor`. */
async function inForce(anchor: number): Promise<Map<string, Uint8Array>> {
  const world = new DiskWorld(ByteDisk, 1);
  await world.form();
  await world.open();
  const root = world.disk.copy();
  const database = root instanceof DirectoryNode ? find(root, '/data/database') : undefined;
  if (!(database instanceof DatabaseNode)) throw new Error('has no database');
  const view = new Map(database.records.view);
  const meta = decodeCutMeta(view.get(textOf(metaKey(1))) ?? VALUE);
  view.set(textOf(metaKey(1)), encodeCutMeta({ ...meta, anchor: { ...meta.anchor, index: anchor } }));
  return view;
}

describe('what a start leaves', () => {
  it('is nothing when all belongs to the table and the log in force', async () => {
    const view = await inForce(5);
    view.set(textOf(tableKey(1, VALUE)), VALUE).set(textOf(blockKey(6)), VALUE);
    expect(leftOver(view)).toBeUndefined();
  });

  it.each([
    ['a record of an older table', tableKey(0, VALUE)],
    ['a record of a table that was staged', tableKey(2, VALUE)],
    ['a log block that begins at the anchor', blockKey(5)],
  ])('is %s', async (_, key) => {
    const view = await inForce(5);
    view.set(textOf(key), VALUE);
    expect(leftOver(view)).toMatch(/records of tables out of use/);
  });

  it('says when the pointer leads nowhere', async () => {
    const view = await inForce(5);
    view.set(textOf(POINTER_KEY), encodePointer(9));
    expect(leftOver(view)).toBe('no table is in force');
  });
});
