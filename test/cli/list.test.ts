/** `fencepost list`. */
import { describe, expect, it } from 'vitest';
import type { DomainView } from '../../src/base/api.js';
import type { Domain } from '../../src/base/ids.js';
import { LEASE, type Replies, run, TOKEN } from './kit.js';

const NOBODY = { lease: undefined, leftMs: 0, queueLength: 0, coolDownLeftMs: 0 };
const HELD: DomainView = { ...NOBODY, domain: LEASE.domain, lease: LEASE, leftMs: 1_200, queueLength: 3 };
const CLOSED: DomainView = { ...NOBODY, domain: 'orders/us' as Domain, coolDownLeftMs: 900 };

/** Two pages. */
const pages: Replies = (call) => {
  if (call.type !== 'list') throw new Error(`no list: ${call.type}`);
  return call.after === ''
    ? { type: 'list', domains: [HELD], next: HELD.domain }
    : { type: 'list', domains: [CLOSED], next: '' };
};

describe('list', () => {
  it('shows holders, since when, the time left, the queue, and what is closed; page after page', async () => {
    const result = await run('list orders/ --local', pages);
    expect(result.code).toBe(0);
    expect(result.calls).toEqual([
      { type: 'list', prefix: 'orders/', pageSize: 1_000, after: '', freshness: 'local' },
      { type: 'list', prefix: 'orders/', pageSize: 1_000, after: 'orders/eu', freshness: 'local' },
    ]);
    expect(result.out).toBe(
      `DOMAIN     TOKEN             HOLDER             SINCE                     TTL MS  LEFT MS  WAITING
orders/eu  ${TOKEN}  worker-a           2026-12-01T00:00:00.000Z   15000     1200        3
orders/us                    closed for 900 ms                                                   0`,
    );
  });

  it('is one line for each domain with --json', async () => {
    const result = await run('list --json', pages);
    expect(result.out.split('\n').map((line) => JSON.parse(line) as unknown)).toEqual([
      {
        domain: 'orders/eu',
        lease: { ...LEASE, token: TOKEN, metadata: { zone: 'b' } },
        leftMs: 1_200,
        queueLength: 3,
        coolDownLeftMs: 0,
      },
      { domain: 'orders/us', lease: null, leftMs: 0, queueLength: 0, coolDownLeftMs: 900 },
    ]);
  });
});
