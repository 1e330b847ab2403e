import { describe, expect, it } from 'vitest';
import { CompactedError, errorWith } from '../../src/client/errors.js';
import type { Observation } from '../../src/client/observe.js';
import type { DomainChange } from '../../src/client/views.js';
import { NOTHING, run, TOKEN } from './kit.js';
import type { Observed, Run } from './kit.js';

const LEASE = {
  domain: 'orders/eu',
  token: BigInt(TOKEN),
  holder: 'worker-a',
  metadata: { zone: 'b' },
  ttlMs: 15_000,
  grantedAt: new Date(Date.UTC(2026, 11, 1)),
};
const at = (more: bigint): bigint => BigInt(TOKEN) + more;
const CHANGES: readonly DomainChange[] = [
  { type: 'granted', revision: at(0n), lease: LEASE },
  { type: 'queueChanged', revision: at(1n), domain: 'orders/eu', queueLength: 2 },
  {
    type: 'ended',
    revision: at(2n),
    domain: 'orders/eu',
    token: at(0n),
    ended: { reason: 'force_released', by: 'addr:10.0.0.1', note: 'stuck', currentToken: at(2n) },
  },
  {
    type: 'ended',
    revision: at(3n),
    domain: 'orders/eu',
    token: at(2n),
    ended: { reason: 'expired', by: '', note: '', currentToken: 0n },
  },
];
const OBSERVATIONS: readonly Observation[] = [
  { revision: at(-1n), changes: [] },
  { revision: at(4n), changes: CHANGES },
];

function observing(observations: readonly Observation[], error: Error): Observed {
  return async function* () {
    await Promise.resolve();
    yield* observations;
    throw error;
  };
}

function watch(line: string, observed: Observed): Promise<Run> {
  return run(line, NOTHING, {}, observed);
}

const GONE = errorWith('UNREACHABLE', 'no node answered');

describe('watch', () => {
  it('shows each change on a line', async () => {
    const result = await watch('watch orders/', observing(OBSERVATIONS, GONE));
    expect(result.observed).toEqual([['orders/', undefined]]);
    expect(result.out).toBe(`${at(0n)}  granted  orders/eu  to worker-a for 15000 ms
${at(1n)}  queue    orders/eu  2 waiting
${at(2n)}  ended    orders/eu  token ${at(0n)} ended by an operator (addr:10.0.0.1: stuck); handed over
${at(3n)}  ended    orders/eu  token ${at(2n)} not renewed in time`);
    expect(result.err).toContain(`watching; all before revision ${at(0n)} is known`);
    expect(result.err).toContain('UNREACHABLE: watch: no node answered');
    expect([result.code, result.closed]).toEqual([3, 1]);
  });

  it('with --json has one document a line, and says up to where all is known', async () => {
    const result = await watch('watch --json --from 7', observing(OBSERVATIONS, GONE));
    expect(result.observed).toEqual([['', 7n]]);
    expect(result.err).toBe('');
    expect(result.out.split('\n').map((line) => JSON.parse(line) as unknown)).toEqual([
      { type: 'progress', revision: String(at(-1n)) },
      {
        type: 'granted',
        revision: String(at(0n)),
        domain: 'orders/eu',
        token: TOKEN,
        holder: 'worker-a',
        metadata: { zone: 'b' },
        ttlMs: 15_000,
        grantedAtUnixMs: Date.UTC(2026, 11, 1),
      },
      { type: 'queueChanged', revision: String(at(1n)), domain: 'orders/eu', queueLength: 2 },
      {
        type: 'ended',
        revision: String(at(2n)),
        domain: 'orders/eu',
        token: TOKEN,
        reason: 'force_released',
        by: 'addr:10.0.0.1',
        note: 'stuck',
        currentToken: String(at(2n)),
      },
      {
        type: 'ended',
        revision: String(at(3n)),
        domain: 'orders/eu',
        token: String(at(2n)),
        reason: 'expired',
        by: '',
        note: '',
        currentToken: null,
      },
      { type: 'progress', revision: String(at(4n)) },
      {
        error: { code: 'UNREACHABLE', message: 'no node answered', outcome: 'unknown' },
        revision: String(at(4n)),
      },
    ]);
  });

  it('ends with 1 when changes were missed for good', async () => {
    const result = await watch(
      'watch --from 7',
      observing([], new CompactedError(7n, 70n, 'it happened too long ago')),
    );
    expect(result.code).toBe(1);
    expect(result.err).toContain('COMPACTED: watch: The changes from revision 7 on are not kept any more');
    expect(result.err).toContain('begin at 70');
  });

  it('lists every fault of its command line', async () => {
    const result = await watch(`watch ${'p'.repeat(256)} more --from 0 --timeout-ms x`, observing([], GONE));
    expect(result.code).toBe(2);
    expect(result.err).toContain('the prefix has 256 bytes; at most 255 are allowed');
    expect(result.err).toContain('--from must be a positive number');
    expect(result.err).toContain('--timeout-ms must be a whole number');
    expect(result.observed).toEqual([]);
  });
});
