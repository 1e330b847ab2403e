/** What the databases with a schema for fences have in common. */
import { readdirSync, readFileSync } from 'node:fs';
import { fault } from './findings.js';
import type { Finding, Migration, StoredFence } from './store.js';

/** The others need it, and not one another. */
const FIRST = 'fencing.sql';

/** The SQL files of a guard, as text, in the order in which they are applied. */
export function sqlFilesOf(guard: 'mysql' | 'postgres'): readonly string[] {
  const folder = new URL(`../../../src/guard/${guard}/`, import.meta.url);
  const others = readdirSync(folder).filter((name) => name.endsWith('.sql') && name !== FIRST);
  return [FIRST, ...others.sort()].map((name) => readFileSync(new URL(name, folder), 'utf8'));
}

/** All of these files, of the version that they say. */
export function migrationOf(files: readonly string[]): Migration {
  const sql = files.join('\n');
  const version = Number(/Version (\d+)\./.exec(sql)?.[1]);
  if (!Number.isInteger(version)) throw new Error(`${FIRST} does not say which version it is`);
  return { version, sql };
}

/** A version in the database that is not the one of this package; `subject` is what keeps it. */
export function wrongVersion(subject: string, installed: number, shipped: number): Finding {
  return installed < shipped
    ? fault(
        'version-behind',
        subject,
        `the schema has version ${installed}, this command brings ${shipped}: run fencepost fence migrate`,
      )
    : fault(
        'version-ahead',
        subject,
        `the schema has version ${installed}, this command knows ${shipped} at most: use a newer fencepost`,
      );
}

/** A row with domain, token (as text), issuer, incarnation and raised_at. */
export function fenceOf(row: Readonly<Record<string, unknown>>): StoredFence {
  const { domain, token, issuer, incarnation, raised_at: raisedAt } = row as Record<string, string | null>;
  return {
    domain: String(domain),
    token: BigInt(String(token)),
    issuer: issuer ?? undefined,
    incarnation: incarnation ?? undefined,
    raisedAt: raisedAt ?? undefined,
  };
}
