/** Exactly once (contract 5, F6), with a table that remembers three requests, so that everything comes late. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { liveCount } from '../../src/lease/lookup.js';
import type { Command } from '../../src/lease/commands.js';
import type { Lease } from '../../src/lease/types.js';
import { acquire, emptyState, expire, granted, next, others, release, resultOf, withdraw } from './kit.js';

describe('a copy of an Acquire that comes after its record was evicted', () => {
  it('A: finds its live lease, because a live lease keeps its id for as long as it lives', () => {
    const state = emptyState({ keep: 3 });
    const command = acquire(state, 'a', 1);
    const first = resultOf(state, command);
    others(state, 1_000, 100);
    expect(resultOf(state, command)).toEqual(first);
    expect(liveCount(state)).toBe(1);
  });

  it('B: is too old, and not granted to nobody, when the lease was released', () => {
    const state = emptyState({ keep: 3 });
    const command = acquire(state, 'a', 1);
    const lease = granted(state, 'a', 1, command);
    next(state, release(lease));
    expect(resultOf(state, command).type).toBe('ended');
    others(state, 3, 100);
    expect(resultOf(state, command)).toEqual({ type: 'tooOld', forgotten: lease.token + 1 });
    expect(liveCount(state)).toBe(0);
  });

  it('C: is too old when a Withdraw had overtaken it', () => {
    const state = emptyState({ keep: 3 });
    const command = acquire(state, 'a', 1);
    next(state, withdraw('a', 1));
    expect(resultOf(state, command).type).toBe('ended');
    others(state, 3, 100);
    expect(resultOf(state, command).type).toBe('tooOld');
    expect(liveCount(state)).toBe(0);
  });

  it('leaves a new id that has seen the revision of the refusal free to own', () => {
    const state = emptyState({ keep: 3 });
    const old = acquire(state, 'a', 1);
    others(state, 4, 100);
    const refusal = resultOf(state, old);
    expect(refusal.type).toBe('tooOld');
    expect(resultOf(state, acquire(state, 'a', 2)).type).toBe('granted');
  });
});

describe('any number of copies, however late', () => {
  // A client makes an id with the revision that it has seen, then every message of it may arrive at any time, repeatedly.
  const message = fc.record({
    request: fc.nat({ max: 9 }),
    kind: fc.constantFrom(
      'acquire' as const,
      'acquire' as const,
      'release' as const,
      'withdraw' as const,
      'expire' as const,
      'other' as const,
    ),
  });

  it('grant a request at most once, and never after it was withdrawn', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 200, size: 'max' }), (messages) => {
        const state = emptyState({ keep: 3 });
        const made = new Map<number, Extract<Command, { type: 'acquire' }>>();
        const leases = new Map<number, Lease>();
        const withdrawn = new Set<number>();
        let spare = 1_000;
        for (const { request, kind } of messages) {
          const command = made.get(request) ?? acquire(state, `d/${request % 3}`, request);
          made.set(request, command);
          const lease = leases.get(request);
          if (kind === 'acquire') {
            for (const fresh of next(state, command).granted) {
              expect(lease, `request ${request} is granted a second time`).toBeUndefined();
              expect(withdrawn, `request ${request} was withdrawn`).not.toContain(request);
              leases.set(request, fresh);
            }
          } else if (kind === 'withdraw') {
            next(state, withdraw(command.domain, request));
            withdrawn.add(request);
          } else if (kind === 'other') {
            others(state, 2, (spare += 2));
          } else if (lease !== undefined) {
            next(state, kind === 'release' ? release(lease) : expire([lease]));
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});
