import { EXIT, type Io } from '../io.js';
import { print } from '../print.js';
import type { FenceStore, ResourceKind } from './store.js';

const NOTHING = 'nothing to apply: the first lease makes its fence';

/** `fence migrate --print`: what would be applied. */
export function printMigration(kind: ResourceKind, io: Io, json: boolean): number {
  const migration = kind.migration();
  if (json) io.out(JSON.stringify(migration ?? { version: null, sql: '' }));
  // Standard output is for a client of the resource.
  else if (migration === undefined) io.err(`fence migrate: ${NOTHING}`);
  else io.out(migration.sql.trimEnd());
  return EXIT.ok;
}

/** `fence migrate`: applies it, and says from which version to which. */
export async function migrate(store: FenceStore, kind: ResourceKind, io: Io, json: boolean): Promise<number> {
  const version = kind.migration()?.version;
  const before = await store.migrate();
  print(io, json, { resource: store.name, before: before ?? null, after: version ?? null }, [
    ['resource', store.name],
    ...(version === undefined
      ? [['migrated', NOTHING] as const]
      : [
          ['version before', before === undefined ? 'none' : String(before)] as const,
          ['version now', { text: String(version), tone: 'good' }] as const,
        ]),
  ]);
  return EXIT.ok;
}
