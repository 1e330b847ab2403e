/** Stores for the kit behind a service: in the memory of the service, and in a LevelDB that it owns. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { levelFence } from '../../src/guard/leveldb.js';
import { memoryFence } from '../../src/guard/memory.js';
import type { FencedLease, Outcome } from '../../src/guard/types.js';
import type { Fence } from '../../src/guard/fence.js';
import type { Between } from '../../src/guard/conformance/index.js';

/** What a request asks for: `value` in this item of every lease's domain, or nothing in it. */
export interface Change {
  readonly item: string;
  readonly value: string | undefined;
  readonly between: Between;
}

/** What a service owns, behind the guard of its kind. */
export interface ServedStore {
  open(lease: FencedLease): Promise<Outcome<unknown>>;
  run(leases: readonly FencedLease[], change: Change): Promise<Outcome<unknown>>;
  read(domain: string, item: string): Promise<string | undefined>;
  fence(domain: string): Promise<Fence | undefined> | Fence | undefined;
  allowIssuer(domain: string, cluster: string): unknown;
  reset(lease: FencedLease): unknown;
  close(): Promise<void>;
  /** Only where the data outlive the process. */
  readonly directory?: string;
  /** LevelDB drops what may go when it compacts. */
  compact?(): Promise<void>;
}

function rowOf(domain: string, item: string): string {
  return `${domain} ${item}`;
}

export function memoryStore(): ServedStore {
  const rows = new Map<string, string>();
  const guard = memoryFence(rows);
  return {
    ...guard,
    run: (leases, { item, value, between }) =>
      guard.run(leases, async (act) => {
        await between();
        await act((data) => {
          for (const { domain } of leases) {
            if (value === undefined) data.delete(rowOf(domain, item));
            else data.set(rowOf(domain, item), value);
          }
        });
      }),
    read: (domain, item) => Promise.resolve(rows.get(rowOf(domain, item))),
    close: () => Promise.resolve(),
  };
}

export async function levelStore(directory: string): Promise<ServedStore> {
  const db = new ClassicLevel(directory);
  await db.open();
  const guard = levelFence(db);
  return {
    ...guard,
    run: (leases, { item, value, between }) =>
      guard.run(leases, async (data) => {
        for (const { domain } of leases) {
          if (value === undefined) data.del(rowOf(domain, item));
          else data.put(rowOf(domain, item), value);
        }
        await between();
      }),
    read: (domain, item) => db.get(rowOf(domain, item)),
    close: () => db.close(),
    directory,
    compact: () => db.compactRange('', '\u{10ffff}'),
  };
}

/** One in a folder of its own, which {@link discard} deletes. */
export async function freshLevelStore(): Promise<ServedStore> {
  return levelStore(await mkdtemp(join(tmpdir(), 'fencepost-conformance-')));
}

export async function discard(store: ServedStore): Promise<void> {
  await store.close();
  if (store.directory !== undefined) await rm(store.directory, { recursive: true, force: true });
}
