/** Fences as people and programs read them. */
import type { Cell } from '../table.js';
import type { StoredFence } from './store.js';

/** Tokens before this are no count of microseconds since 1970: a test's, or of another coordinator. 2000-01-01. */
const FIRST_DATE_US = 946_684_800_000_000n;
/** Beyond the year 9999 a token is one that somebody made up. */
const LAST_DATE_US = 253_402_300_799_999_999n;

/** When a token was granted, as ISO 8601, since revisions follow the clock; undefined when it is none of a cluster. */
export function dateOf(token: bigint): string | undefined {
  if (token < FIRST_DATE_US || token > LAST_DATE_US) return undefined;
  return new Date(Number(token / 1_000n)).toISOString();
}

/** For people. */
export function tokenText(token: bigint): string {
  return `${token} (${dateOf(token) ?? 'no date'})`;
}

/** For `--json`. */
export function fenceJson(fence: StoredFence): Readonly<Record<string, unknown>> {
  return {
    domain: fence.domain,
    token: String(fence.token),
    date: dateOf(fence.token) ?? null,
    issuer: fence.issuer ?? null,
    incarnation: fence.incarnation ?? null,
    raisedAt: fence.raisedAt ?? null,
  };
}

/** What stands where nothing is known. */
export function orDash(text: string | undefined): Cell {
  return text ?? { text: '-', tone: 'dim' };
}
