import { describe, expect, test } from 'vitest';
import type { LeaseRef, LeaseState } from '../../src/base/api.js';
import type { Domain } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { Timeline } from '../../src/client/clock.js';
import type { LossCause } from '../../src/client/handle.js';
import { Renewer } from '../../src/client/renewer.js';
import type { Kept, RenewReply } from '../../src/client/renewer.js';
import { FakeTime } from './world.js';

interface Sent {
  readonly leases: readonly LeaseRef[];
  readonly timeoutMs: number;
  readonly atMs: number;
  live(): void;
  reply(reply: RenewReply): void;
}

const TTL = 15_000;
const LIVE: LeaseState = { type: 'live', ttlMs: TTL };

function setUp() {
  const time = new FakeTime();
  const timeline = new Timeline(time.surroundings.clocks);
  const startMs = time.reading.monotonicMs;
  const sent: Sent[] = [];
  const renewer = new Renewer({
    timeline,
    timers: time.surroundings.timers,
    random: () => time.chance,
    renew(leases, timeoutMs, done) {
      const sentAt = timeline.now();
      sent.push({
        leases,
        timeoutMs,
        atMs: sentAt.monotonicMs - startMs,
        live: () => {
          done({ type: 'answer', sentAt, results: leases.map(() => LIVE) });
        },
        reply: done,
      });
    },
  });
  const losses: LossCause[] = [];
  const keep = (n = 1, ttlMs = TTL): Kept =>
    renewer.keep({ domain: `d/${n}` as Domain, token: n as Revision }, ttlMs, timeline.now(), (cause) =>
      losses.push(cause),
    );
  return { time, timeline, renewer, sent, losses, keep };
}

function nth(sent: readonly Sent[], n: number): Sent {
  const found = sent[n];
  if (found === undefined) throw new Error(`only ${sent.length} renewals were sent`);
  return found;
}

describe('the renewal loop', () => {
  test('renews at TTL/3 at the latest, and again TTL/3 after the send that was answered', async () => {
    const { time, renewer, sent, keep } = setUp();
    const kept = keep();
    await time.run(TTL / 3);
    expect(sent).toHaveLength(1);
    expect(nth(sent, 0).atMs).toBeGreaterThan((TTL / 3) * 0.8);
    nth(sent, 0).live();
    await time.run(TTL / 3);
    expect(sent).toHaveLength(2);
    expect(renewer.look(kept).type).toBe('held');
  });

  test('jitter makes it earlier, never later', async () => {
    const early = setUp();
    early.time.chance = 0.999;
    early.keep();
    await early.time.run(TTL / 3);
    const late = setUp();
    late.keep();
    await late.time.run(TTL / 3);
    expect(nth(early.sent, 0).atMs).toBeLessThan(nth(late.sent, 0).atMs);
  });

  test('leases that are due together go into one call, at most 1 000 in each', async () => {
    const { time, sent, keep } = setUp();
    for (let n = 1; n <= 2_500; n++) keep(n);
    await time.run(TTL / 3);
    expect(sent.map((call) => call.leases.length)).toEqual([1_000, 1_000, 500]);
    expect(new Set(sent.flatMap((call) => call.leases.map((ref) => ref.domain))).size).toBe(2_500);
  });

  test('the call has a deadline of its own, a sixth of the shortest TTL in it', async () => {
    const { time, sent, keep } = setUp();
    keep(1, 6_000);
    await time.run(2_000);
    expect(nth(sent, 0).timeoutMs).toBe(1_000);
  });

  test('a failed attempt is repeated at once, further ones with pauses that grow', async () => {
    const { time, sent, keep } = setUp();
    time.chance = 0.5;
    keep();
    await time.run(TTL / 3);
    const gaps: number[] = [];
    for (let n = 0; n < 5; n++) {
      const call = nth(sent, n);
      const failedAtMs = time.reading.monotonicMs;
      call.reply({ type: 'failed' });
      while (sent.length === n + 1) await time.run(1);
      gaps.push(time.reading.monotonicMs - failedAtMs);
    }
    expect(gaps[0]).toBeLessThanOrEqual(1);
    expect(gaps[1]).toBeGreaterThan(10);
    expect(gaps[4]).toBeGreaterThan(Number(gaps[1]) * 2);
    expect(gaps[4]).toBeLessThan(1_000);
  });

  test('without any answer the lease is lost at its deadline, with one loss told and no timer left', async () => {
    const { time, renewer, losses, keep } = setUp();
    const kept = keep();
    await time.run(14_549);
    expect(losses).toEqual([]);
    expect(renewer.look(kept).type).toBe('held');
    await time.run(1);
    expect(losses).toEqual([{ type: 'deadline' }]);
    await time.run(60_000);
    expect(losses).toHaveLength(1);
    expect(time.timers).toBe(0);
  });

  test('an answer that is late for the deadline does not bring the lease back', async () => {
    const { time, renewer, sent, losses, keep } = setUp();
    const kept = keep();
    await time.run(TTL / 3);
    time.stall(9_600);
    nth(sent, 0).live();
    expect(renewer.look(kept).type).toBe('lost');
    expect(losses).toHaveLength(1);
  });

  test('one ended lease does not touch the others of its call', async () => {
    const { time, timeline, renewer, sent, losses, keep } = setUp();
    const [a, b] = [keep(1), keep(2)];
    await time.run(TTL / 3);
    const end: LeaseState = {
      type: 'ended',
      ended: { lease: a.ref, reason: 'force_released', by: 'op', note: 'x', currentToken: 0 as Revision },
    };
    nth(sent, 0).reply({ type: 'answer', sentAt: timeline.now(), results: [end, LIVE] });
    expect(renewer.look(a).type).toBe('lost');
    expect(renewer.look(b).type).toBe('held');
    expect(losses).toEqual([{ type: 'ended', ended: end.ended }]);
  });

  test('a released lease is not renewed, and what was under way for it changes nothing', async () => {
    const { time, renewer, sent, losses, keep } = setUp();
    const kept = keep();
    await time.run(TTL / 3);
    expect(renewer.release(kept)).toBe(true);
    expect(renewer.release(kept)).toBe(false);
    nth(sent, 0).live();
    await time.run(60_000);
    expect(renewer.look(kept).type).toBe('released');
    expect(sent).toHaveLength(1);
    expect(losses).toEqual([]);
    expect(time.timers).toBe(0);
  });
});

describe('jeopardy', () => {
  test('a loop that stood still for more than TTL/3 renews first, and holds again when that is answered', async () => {
    const { time, renewer, sent, keep } = setUp();
    const kept = keep();
    time.stall(7_000);
    // Before any timer has run: whoever asks sees it.
    expect(renewer.look(kept).type).toBe('jeopardy');
    await time.run(0);
    expect(sent).toHaveLength(1);
    nth(sent, 0).live();
    expect(renewer.look(kept).type).toBe('held');
  });

  test('a renewal that was under way before the stall does not end it; a second one is sent', async () => {
    const { time, renewer, sent, keep } = setUp();
    const kept = keep();
    await time.run(TTL / 3);
    time.stall(7_000);
    await time.run(0);
    expect(renewer.look(kept).type).toBe('jeopardy');
    expect(sent).toHaveLength(2);
    nth(sent, 0).live();
    expect(renewer.look(kept).type).toBe('jeopardy');
    nth(sent, 1).live();
    expect(renewer.look(kept).type).toBe('held');
  });

  test('a suspend that the uptime shows', async () => {
    const { time, renewer, sent, keep } = setUp();
    const kept = keep();
    time.pause({ uptimeMs: 6_000, wallMs: 6_000 });
    expect(renewer.look(kept).type).toBe('jeopardy');
    await time.run(1);
    expect(sent).toHaveLength(1);
  });

  test('a suspend past the deadline is a loss that whoever asks sees first', () => {
    const { time, renewer, losses, keep } = setUp();
    const kept = keep();
    time.pause({ uptimeMs: 20_000, wallMs: 20_000 });
    expect(renewer.look(kept).type).toBe('lost');
    expect(losses).toEqual([{ type: 'deadline' }]);
  });
});
