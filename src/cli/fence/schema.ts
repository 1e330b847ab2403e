/** What the databases with a schema for fences have in common. */
import { fault } from './findings.js';
import type { Finding, StoredFence } from './store.js';

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
