/** Stores that one process owns, each with one text behind its guard: what `store-server-child.ts` serves. */
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import type * as leveldb from '../../../src/guard/leveldb.js';
import type * as sqlite from '../../../src/guard/sqlite.js';
import type * as memory from '../../../src/guard/memory.js';
import type { FencedLease } from '../../../src/guard/types.js';
import { SQLITE } from '../../servers/sqlite.js';
import type { Status } from './resource.js';

/** One text. */
export interface Store {
  open(lease: FencedLease): Promise<{ readonly status: Status }>;
  write(lease: FencedLease, value: string): Promise<{ readonly status: Status }>;
  /** As the same program would without a guard. */
  writeUnguarded(value: string): Promise<void>;
  read(): Promise<string>;
}

export type StoreKind = keyof typeof STORES;

/** Each with the guard of the package at the given path, and a folder for its data. */
export const STORES = {
  async LevelDB(path: string, directory: string): Promise<Store> {
    const { levelFence } = (await import(join(path, 'dist/guard/leveldb.js'))) as typeof leveldb;
    const db = new ClassicLevel(directory);
    await db.open();
    const fence = levelFence(db);
    return {
      open: (lease) => fence.open(lease),
      write: (lease, value) =>
        fence.run(lease, (data) => {
          data.put('text', value);
        }),
      writeUnguarded: (value) => db.put('text', value),
      read: async () => (await db.get('text')) ?? '',
    };
  },

  async SQLite(path: string, directory: string): Promise<Store> {
    const { sqliteFence } = (await import(join(path, 'dist/guard/sqlite.js'))) as typeof sqlite;
    const db = SQLITE[0]?.open?.(join(directory, 'data.db'));
    if (db === undefined) throw new Error('SQLite has no driver here');
    db.exec('pragma journal_mode = WAL');
    db.exec('pragma synchronous = FULL');
    db.exec("create table data (text text); insert into data values ('')");
    const fence = sqliteFence(db);
    const write = db.prepare('update data set text = ?');
    return {
      open: (lease) => Promise.resolve(fence.open(lease)),
      write: (lease, value) => Promise.resolve(fence.run(lease, () => write.run(value))),
      writeUnguarded(value) {
        write.run(value);
        return Promise.resolve();
      },
      read: () => Promise.resolve((db.prepare('select text from data').get() as { readonly text: string }).text),
    };
  },

  async 'in-process'(path: string): Promise<Store> {
    const { memoryFence } = (await import(join(path, 'dist/guard/memory.js'))) as typeof memory;
    const state = { text: '' };
    const fence = memoryFence(state);
    return {
      open: (lease) => fence.open(lease),
      write: (lease, value) =>
        fence.run(lease, (act) =>
          act((owned) => {
            owned.text = value;
          }),
        ),
      writeUnguarded(value) {
        state.text = value;
        return Promise.resolve();
      },
      read: () => Promise.resolve(state.text),
    };
  },
};
