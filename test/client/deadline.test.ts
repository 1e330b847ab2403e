import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Timeline, disagreementMs, elapsedMs } from '../../src/client/clock.js';
import type { Reading } from '../../src/client/clock.js';
import { leftMs, safeMs } from '../../src/client/deadline.js';
import { FakeTime } from './world.js';

const setUp = () => {
  const time = new FakeTime();
  return { time, timeline: new Timeline(time.surroundings.clocks) };
};

describe('the safe deadline', () => {
  test('is TTL − 1 % − max(50 ms, 2 %) after the call was sent', () => {
    expect(safeMs(15_000)).toBe(15_000 - 150 - 300);
    expect(safeMs(3_000)).toBe(3_000 - 30 - 60);
    expect(safeMs(1_000)).toBe(1_000 - 10 - 50);
  });

  test('passes exactly then, and not before', () => {
    const { time, timeline } = setUp();
    const sentAt = timeline.now();
    time.stall(14_549);
    expect(leftMs(sentAt, 15_000, timeline.now())).toBe(1);
    time.stall(1);
    expect(leftMs(sentAt, 15_000, timeline.now())).toBe(0);
  });

  test('lies before the moment at which the server may end the lease, for every TTL and both clocks 1 % off', () => {
    fc.assert(
      fc.property(fc.integer({ min: 3_000, max: 86_400_000 }), (ttlMs) => {
        // The client's clock is 1 % slow, the server's 1 % fast, and the call arrived the moment it was sent.
        expect(safeMs(ttlMs) / 0.99).toBeLessThan((ttlMs * 1.01 + 100) / 1.01);
      }),
    );
  });
});

describe('elapsed time is the greatest of three clocks', () => {
  test('all in step', () => {
    const { time, timeline } = setUp();
    const from = timeline.now();
    time.stall(4_000);
    const to = timeline.now();
    expect(elapsedMs(from, to)).toBe(4_000);
    expect(disagreementMs(from, to)).toBe(0);
  });

  test('suspend: the monotonic clock stops, the uptime and its own step count', () => {
    const { time, timeline } = setUp();
    const from = timeline.now();
    time.pause({ monotonicMs: 1_000, uptimeMs: 61_000, wallMs: 1_000 });
    const to = timeline.now();
    expect(elapsedMs(from, to)).toBe(61_000 + time.stepMs);
    expect(disagreementMs(from, to)).toBe(60_000 + time.stepMs);
  });

  test('an uptime in whole seconds adds a whole second after a suspend, and nothing while it agrees', () => {
    const { time, timeline } = setUp();
    time.stepMs = 1_000;
    const from = timeline.now();
    time.pause({ monotonicMs: 3_200, uptimeMs: 4_000, wallMs: 3_200 });
    expect(elapsedMs(from, timeline.now())).toBe(4_000);
    time.pause({ monotonicMs: 100, uptimeMs: 5_000, wallMs: 100 });
    expect(elapsedMs(from, timeline.now())).toBe(10_000);
  });

  test('a forward step of the wall clock counts', () => {
    const { time, timeline } = setUp();
    const from = timeline.now();
    time.pause({ monotonicMs: 500, uptimeMs: 500, wallMs: 30_500 });
    expect(elapsedMs(from, timeline.now())).toBe(30_500);
  });

  test('a backward step of the wall clock takes nothing away', () => {
    const { time, timeline } = setUp();
    const from = timeline.now();
    time.pause({ monotonicMs: 500, uptimeMs: 500, wallMs: -100_000 });
    const to = timeline.now();
    expect(elapsedMs(from, to)).toBe(500);
    expect(disagreementMs(from, to)).toBe(100_500);
  });

  test('S11.2: a backward step of 100 s, then a pause of 60 s that only the corrected wall clock shows', () => {
    const { time, timeline } = setUp();
    const from = timeline.now();
    time.pause({ monotonicMs: 10, uptimeMs: 10, wallMs: -100_000 });
    timeline.now();
    // All clocks of the guest stood still; on resume the wall clock is put right: +100 s, and the 60 s of the pause.
    time.pause({ wallMs: 160_010 });
    expect(elapsedMs(from, timeline.now())).toBeGreaterThanOrEqual(60_000);
  });

  test('readings of unlike coarseness are no steps', () => {
    const { time, timeline } = setUp();
    const from = timeline.now();
    for (let i = 0; i < 1_000; i++) {
      time.pause({ monotonicMs: 0.5, uptimeMs: 0.5, wallMs: i % 2 });
      timeline.now();
    }
    expect(elapsedMs(from, timeline.now())).toBeLessThan(501);
  });

  test('never goes back, and is never less than what any clock shows from its last backward step on', () => {
    const step = fc.record({
      monotonicMs: fc.integer({ min: 0, max: 5_000 }),
      uptimeMs: fc.integer({ min: 0, max: 90_000 }),
      wallMs: fc.integer({ min: -100_000, max: 100_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 30 }), (steps: Reading[]) => {
        const { time, timeline } = setUp();
        const from = timeline.now();
        let before = 0;
        let monotonic = 0;
        let wallSinceBack = 0;
        for (const by of steps) {
          time.pause(by);
          const passed = elapsedMs(from, timeline.now());
          monotonic += by.monotonicMs;
          wallSinceBack = by.wallMs < 0 ? 0 : wallSinceBack + by.wallMs;
          expect(passed).toBeGreaterThanOrEqual(before - 5);
          expect(passed).toBeGreaterThanOrEqual(monotonic);
          expect(passed).toBeGreaterThanOrEqual(wallSinceBack - 5 * steps.length);
          before = passed;
        }
      }),
    );
  });
});
