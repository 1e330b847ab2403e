import { describe, expect, test } from 'vitest';
import { Timeline } from '../../src/client/clock.js';
import { nextState } from '../../src/client/handle.js';
import type { HandleState } from '../../src/client/handle.js';
import { FakeTime } from './world.js';
import type { Domain } from '../../src/base/ids.js';
import type { EndedView } from '../../src/base/api.js';
import type { Revision } from '../../src/base/revision.js';

const TTL = 15_000;
const ended: EndedView = {
  lease: { domain: 'a' as Domain, token: 1 as Revision },
  reason: 'expired',
  by: '',
  note: '',
  currentToken: 0 as Revision,
};

const setUp = () => {
  const time = new FakeTime();
  const timeline = new Timeline(time.surroundings.clocks);
  const state: HandleState = { type: 'held', sentAt: timeline.now() };
  return { time, timeline, state };
};

describe('held', () => {
  test('stays held, the very same state, until the deadline', () => {
    const { time, timeline, state } = setUp();
    time.stall(14_500);
    expect(nextState(state, TTL, { type: 'looked', now: timeline.now(), lateMs: 0 })).toBe(state);
  });

  test('is lost at the deadline', () => {
    const { time, timeline, state } = setUp();
    time.stall(14_550);
    expect(nextState(state, TTL, { type: 'looked', now: timeline.now(), lateMs: 0 })).toEqual({
      type: 'lost',
      cause: { type: 'deadline' },
    });
  });

  test.each(['uptimeMs', 'wallMs'] as const)('is lost when %s alone is past the deadline', (clock) => {
    const { time, timeline, state } = setUp();
    time.pause({ [clock]: 14_600 });
    expect(nextState(state, TTL, { type: 'looked', now: timeline.now(), lateMs: 0 }).type).toBe('lost');
  });

  test('a renewal counts from its send, not from its answer', () => {
    const { time, timeline, state } = setUp();
    time.stall(5_000);
    const sentAt = timeline.now();
    time.stall(4_000);
    const renewed = nextState(state, TTL, { type: 'renewed', sentAt, now: timeline.now() });
    time.stall(10_549);
    expect(nextState(renewed, TTL, { type: 'looked', now: timeline.now(), lateMs: 0 }).type).toBe('held');
    time.stall(1);
    expect(nextState(renewed, TTL, { type: 'looked', now: timeline.now(), lateMs: 0 }).type).toBe('lost');
  });

  test('an answer that comes after the deadline does not count', () => {
    const { time, timeline, state } = setUp();
    time.stall(14_000);
    const sentAt = timeline.now();
    time.stall(600);
    expect(nextState(state, TTL, { type: 'renewed', sentAt, now: timeline.now() }).type).toBe('lost');
  });

  test('an earlier send that is answered later takes nothing away', () => {
    const { time, timeline, state } = setUp();
    time.stall(1_000);
    const first = timeline.now();
    time.stall(1_000);
    const second = timeline.now();
    const renewed = nextState(state, TTL, { type: 'renewed', sentAt: second, now: timeline.now() });
    expect(nextState(renewed, TTL, { type: 'renewed', sentAt: first, now: timeline.now() })).toEqual({
      type: 'held',
      sentAt: second,
    });
  });

  test('an end that the server reports is the end', () => {
    const { state } = setUp();
    expect(nextState(state, TTL, { type: 'ended', ended })).toEqual({ type: 'lost', cause: { type: 'ended', ended } });
  });
});

describe('jeopardy', () => {
  test.each([
    ['a forward step of the wall clock', { monotonicMs: 10, uptimeMs: 10, wallMs: 5_100 }],
    ['a backward step of the wall clock', { monotonicMs: 10, uptimeMs: 10, wallMs: -5_100 }],
    ['a suspend', { monotonicMs: 10, uptimeMs: 5_100, wallMs: 10 }],
  ])('%s of more than TTL/3, short of the deadline', (_name, by) => {
    const { time, timeline, state } = setUp();
    time.pause(by);
    expect(nextState(state, TTL, { type: 'looked', now: timeline.now(), lateMs: 0 }).type).toBe('jeopardy');
  });

  test('not below TTL/3', () => {
    const { time, timeline, state } = setUp();
    time.pause({ monotonicMs: 10, uptimeMs: 10, wallMs: 4_900 });
    expect(nextState(state, TTL, { type: 'looked', now: timeline.now(), lateMs: 4_900 }).type).toBe('held');
  });

  test('a stall before the confirming call was sent is none of this lease', () => {
    const { time, timeline } = setUp();
    time.stall(60_000);
    const state: HandleState = { type: 'held', sentAt: timeline.now() };
    time.stall(10);
    expect(nextState(state, TTL, { type: 'looked', now: timeline.now(), lateMs: 60_000 })).toBe(state);
  });

  test('a stall of more than TTL/3; ends with a renewal sent after it, not with one sent before', () => {
    const { time, timeline, state } = setUp();
    const before = timeline.now();
    time.stall(6_000);
    const jeopardy = nextState(state, TTL, { type: 'looked', now: timeline.now(), lateMs: 5_500 });
    expect(jeopardy.type).toBe('jeopardy');
    const still = nextState(jeopardy, TTL, { type: 'renewed', sentAt: before, now: timeline.now() });
    expect(still.type).toBe('jeopardy');
    time.stall(1);
    const sentAt = timeline.now();
    expect(nextState(still, TTL, { type: 'renewed', sentAt, now: timeline.now() })).toEqual({ type: 'held', sentAt });
  });

  test('ends at the deadline like every lease', () => {
    const { time, timeline, state } = setUp();
    time.stall(6_000);
    const jeopardy = nextState(state, TTL, { type: 'looked', now: timeline.now(), lateMs: 5_500 });
    time.stall(8_600);
    expect(nextState(jeopardy, TTL, { type: 'looked', now: timeline.now(), lateMs: 0 }).type).toBe('lost');
  });
});

describe('lost and released are final', () => {
  test.each<HandleState>([{ type: 'lost', cause: { type: 'deadline' } }, { type: 'released' }])('$type', (state) => {
    const { timeline } = setUp();
    const now = timeline.now();
    expect(nextState(state, TTL, { type: 'renewed', sentAt: now, now })).toBe(state);
    expect(nextState(state, TTL, { type: 'looked', now, lateMs: 0 })).toBe(state);
    expect(nextState(state, TTL, { type: 'ended', ended })).toBe(state);
    expect(nextState(state, TTL, { type: 'released' })).toBe(state);
  });
});
