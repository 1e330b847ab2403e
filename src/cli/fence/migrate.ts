import { EXIT, type Io } from '../io.js';
import { print } from '../print.js';
import type { FenceStore, ResourceKind } from './store.js';

/** `fence migrate --print`: what would be applied. */
export function printMigration(kind: ResourceKind, io: Io, json: boolean): number {
  const { version, sql } = kind.migration();
  io.out(json ? JSON.stringify({ version, sql }) : sql.trimEnd());
  return EXIT.ok;
}

/** `fence migrate`: applies it, and says from which version to which. */
export async function migrate(store: FenceStore, kind: ResourceKind, io: Io, json: boolean): Promise<number> {
  const { version } = kind.migration();
  const before = await store.migrate();
  print(io, json, { resource: store.name, before: before ?? null, after: version }, [
    ['resource', store.name],
    ['version before', before === undefined ? 'none' : String(before)],
    ['version now', { text: String(version), tone: 'good' }],
  ]);
  return EXIT.ok;
}
