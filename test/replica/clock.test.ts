/** The leader's clock by itself: what it takes from its queue at a time, and a lease whose time is ended from outside. */
import { describe, expect, it } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { createClock, endTime, renewTimed, startTiming, stopTiming, takeDue } from '../../src/replica/clock.js';
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
