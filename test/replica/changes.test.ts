import { describe, expect, it } from 'vitest';
import type { Metadata } from '../../src/base/api.js';
import { MAX_DOMAIN_BYTES } from '../../src/base/domain.js';
import type { Domain } from '../../src/base/ids.js';
import {
  MAX_HOLDER_BYTES,
  MAX_METADATA_BYTES,
  MAX_NOTE_BYTES,
  MAX_TTL_MS,
  WATCH_LIMITS,
} from '../../src/base/limits.js';
import type { Revision } from '../../src/base/revision.js';
import type { Lease } from '../../src/lease/types.js';
import { bytesOf, changeView } from '../../src/replica/changes.js';
import type { Change } from '../../src/replica/changes.js';
import { WATCH_METHOD } from '../../src/wire/public-watch.js';
import { HEADER } from '../server/kit.js';

/** What a stock client takes as one message, in bytes. */
const STOCK_MESSAGE_BYTES = 4 * 1024 * 1024;
const LAST = (2 ** 53 - 1) as Revision;
const DOMAIN = 'd'.repeat(MAX_DOMAIN_BYTES) as Domain;

/** As many texts of `bytes` bytes each, all different, as fit into `total`. */
function keys(bytes: 1 | 2 | 3, total: number): string[] {
  const first = { 1: 0x20, 2: 0x80, 3: 0x800 }[bytes];
  const last = { 1: 0x7e, 2: 0x7ff, 3: 0xd7ff }[bytes];
  const many = Math.min(last - first + 1, Math.floor(total / bytes));
  return Array.from({ length: many }, (_, at) => String.fromCodePoint(first + at));
}

function grantOf(metadata: Metadata, holder: string): Change {
  const lease = { domain: DOMAIN, token: LAST, holder, metadata, ttlMs: MAX_TTL_MS, grantedAtUnixMs: LAST };
  return { type: 'granted', domain: DOMAIN, lease: lease as unknown as Lease };
}

const PAIRS: readonly Metadata[] = [
  [],
  [['key', 'v'.repeat(MAX_METADATA_BYTES - 3)]],
  [['schlüssel', '語'.repeat(1_360)]],
  keys(1, MAX_METADATA_BYTES).map((key) => [key, '']),
  keys(2, MAX_METADATA_BYTES).map((key) => [key, '']),
  keys(3, MAX_METADATA_BYTES).map((key) => [key, '']),
  keys(2, MAX_METADATA_BYTES / 2).map((key) => [key, 'vv']),
];

const END = {
  reason: 'force_released',
  note: '語'.repeat(Math.floor(MAX_NOTE_BYTES / 3)),
  by: 'addr:2001:0db8:85a3:0000:0000:8a2e:0370:7334',
  currentToken: LAST,
  lease: { domain: DOMAIN, token: LAST },
} as const;

const CHANGES: readonly Change[] = [
  ...PAIRS.map((metadata) => grantOf(metadata, '語'.repeat(Math.floor(MAX_HOLDER_BYTES / 3)))),
  { type: 'ended', domain: DOMAIN, ended: END },
  { type: 'queueChanged', domain: DOMAIN, queueLength: 2 ** 32 - 1 },
];

function bytesOnTheWire(changes: readonly Change[]): number {
  const events = changes.map((change) => changeView(LAST, change));
  return WATCH_METHOD.responseSerialize({ header: HEADER, news: { type: 'events', events } }).length;
}

describe('the bytes of a change', () => {
  it('are at least those that it takes on the wire, whatever its texts are', () => {
    const header = bytesOnTheWire([]);
    for (const change of CHANGES) {
      const onTheWire = bytesOnTheWire([change]) - header;
      expect(bytesOf(change), `${change.type}, ${onTheWire} bytes on the wire`).toBeGreaterThanOrEqual(onTheWire);
    }
  });

  it('are those of UTF-8', () => {
    const [plain, wide] = [grantOf([], 'x'.repeat(255)), grantOf([], '語'.repeat(85))].map(bytesOf);
    expect(plain).toBe(wide);
  });

  it('of one change always fit into a message, and a message into what a stock client takes', () => {
    const largest = Math.max(...CHANGES.map(bytesOf));
    expect(largest).toBeLessThan(WATCH_LIMITS.messageBytes);
    for (const change of CHANGES) {
      const many = Math.floor(WATCH_LIMITS.messageBytes / bytesOf(change));
      const onTheWire = bytesOnTheWire(Array.from({ length: many }, () => change));
      expect(onTheWire, `${many} times ${change.type}`).toBeLessThan(STOCK_MESSAGE_BYTES);
    }
  });
});
