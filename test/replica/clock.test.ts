/** The leader's clock by itself: what it takes from its queue at a time, and a lease whose time is ended from outside. */
import { describe, expect, it } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import {
  createClock,
  deadlineOf,
  endTime,
  leaderTtl,
  renewTimed,
  startTiming,
  stopTiming,
  takeDue,
  takeOver,
  timedOf,
  timeFound,
} from '../../src/replica/clock.js';
import type { Timed } from '../../src/replica/clock.js';
import type { Lease } from '../../src/lease/types.js';

const FLAGGED = (): boolean => true;

function clockOf(count: number) {
  const clock = createClock();
  const all = Array.from({ length: count }, (_, at) => {
    const lease = { domain: `d${at}`, token: at + 1, ttlMs: 10_000 } as unknown as Lease;
    return startTiming(clock, lease, at, 10_000);
  });
  return { clock, all };
}

function nth(all: readonly Timed[], at: number): Timed {
  const found = all[at];
  if (found === undefined) throw new RangeError(`no lease ${at}`);
  return found;
}

function leaseOf(at: number, rest: Partial<Lease> = {}): Lease {
  return { domain: `d${at}`, token: at + 1, ttlMs: 10_000, checkpointLeftMs: undefined, ...rest } as unknown as Lease;
}

describe('the leases that a leader finds', () => {
  const LEFT_MS = leaderTtl(10_000);

  function found(count: number) {
    const leases = new Map(Array.from({ length: count }, (_, at) => [at, leaseOf(at)]));
    const clock = createClock();
    takeOver(clock, leases.values(), 1_000);
    return { leases, clock };
  }

  it('are timed a few at a time, from when the leader began', () => {
    const { clock } = found(10);
    expect(clock.timed.size).toBe(0);
    for (const timed of [4, 8, 10, 10]) {
      timeFound(clock, 4);
      expect(clock.timed.size).toBe(timed);
    }
    expect(clock.found).toBeUndefined();
    expect([...clock.timed.values()].map(({ deadline }) => deadline)).toEqual(Array(10).fill(1_000 + LEFT_MS));
  });

  it('are timed at once when they are asked for, by what their checkpoint left too, and keep what became of that', () => {
    const { clock, leases } = found(3);
    const flagged = leaseOf(1, { checkpointLeftMs: 70 });
    leases.set(1, flagged);
    expect(deadlineOf(clock, flagged)).toBe(1_070);
    expect(timedOf(clock, flagged)).toMatchObject({ deadline: 1_070, renewedAt: 1_000 });
    renewTimed(timedOf(clock, leaseOf(2)), 5_000);
    timeFound(clock, 10);
    expect([...clock.timed.values()].map(({ domain, deadline }) => [domain, deadline])).toEqual([
      ['d1', 1_070],
      ['d2', 5_000 + LEFT_MS],
      ['d0', 1_000 + LEFT_MS],
    ]);
    expect(deadlineOf(clock, leaseOf(2))).toBe(5_000 + LEFT_MS);
    expect(takeDue(clock, 1_070, 10, () => false).expire.map(({ domain }) => domain)).toEqual(['d1']);
  });

  it('are not timed when they have ended before, and one that took the place of another keeps its own time', () => {
    const { clock, leases } = found(3);
    leases.delete(0);
    stopTiming(clock, 'd0' as Domain, 1 as Revision);
    leases.delete(1);
    stopTiming(clock, 'd1' as Domain, 2 as Revision);
    const next = leaseOf(1, { token: 50 as Revision });
    leases.set(1, next);
    startTiming(clock, next, 4_000, 6_000);
    timeFound(clock, 10);
    expect([...clock.timed.values()].map(({ token, deadline }) => [token, deadline])).toEqual([
      [50, 10_000],
      [3, 1_000 + LEFT_MS],
    ]);
  });

  it('have no time before the leader has begun', () => {
    expect(deadlineOf(createClock(), leaseOf(0))).toBeUndefined();
    expect(() => timedOf(createClock(), leaseOf(0))).toThrow('is not timed');
  });
});

describe('takeDue', () => {
  it('puts only so many renewed leases back at a time, and goes on with the rest', () => {
    const { clock, all } = clockOf(100);
    for (const timed of all) renewTimed(timed, 4_000);
    const left = (): number => clock.queue.filter(({ queuedAt }) => queuedAt <= 5_100).length;
    for (const count of [80, 60, 40, 20, 0]) {
      expect(takeDue(clock, 5_100, 2, () => false)).toEqual({ expire: [], checkpoint: [] });
      expect(left()).toBe(count);
    }
    expect(takeDue(clock, 9_000, 100, () => false).checkpoint).toHaveLength(100);
  });
});

describe('endTime', () => {
  it.each([0, 1, 17, 98, 99])('makes lease %i due, once, and leaves the others their time', (which) => {
    const { clock, all } = clockOf(100);
    const ended = nth(all, which);
    endTime(clock, ended, 50);
    endTime(clock, ended, 60);
    expect(takeDue(clock, 60, 1_000, FLAGGED).expire).toEqual([ended]);
    ended.expiring = [];
    // What is open already stays as it is.
    endTime(clock, ended, 70);
    expect(takeDue(clock, 9_999, 1_000, FLAGGED).expire).toEqual([]);
    const later: Timed[] = [];
    for (let now = 10_000; now < 10_100; now++) later.push(...takeDue(clock, now, 1_000, FLAGGED).expire);
    expect(later).toEqual(all.filter((timed) => timed !== ended));
    expect(clock.queue).toEqual([]);
  });

  it('of one that ended meanwhile does no harm', () => {
    const { clock, all } = clockOf(3);
    const first = nth(all, 0);
    stopTiming(clock, 'd0' as Domain, 1 as Revision);
    endTime(clock, first, 5);
    expect(takeDue(clock, 20_000, 1_000, FLAGGED).expire).toEqual([all[1], all[2]]);
    expect(clock.dead).toBe(0);
  });
});
