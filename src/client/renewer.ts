/**
 * One loop that keeps all leases of a client alive. It owns the states of the handles; it knows no socket, and no
 * promise: clocks, timers and the way to the cluster are ports, so the simulator runs this very file.
 */
import type { LeaseRef, LeaseState } from '../base/api.js';
import { MAX_RENEW_LEASES } from '../base/limits.js';
import { assert } from '../base/assert.js';
import type { Moment, Timeline } from './clock.js';
import { leftMs } from './deadline.js';
import { nextState } from './handle.js';
import type { HandleInput, HandleState, LossCause } from './handle.js';
import type { Timers } from './surroundings.js';

/** How one attempt to renew ended. */
export type RenewReply =
  /** As many results as leases, in order; `sentAt` is from before the call was sent. */
  | { readonly type: 'answer'; readonly sentAt: Moment; readonly results: readonly LeaseState[] }
  /** Unknown whether it was renewed; the node is to be avoided next time. */
  | { readonly type: 'failed' };

/** What the loop needs. */
export interface RenewerPorts {
  readonly timeline: Timeline;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  random(): number;
  /** Sends 1–1 000 leases to one node, with a deadline of its own, and calls `done` exactly once, never before it returns. */
  renew(leases: readonly LeaseRef[], timeoutMs: number, done: (reply: RenewReply) => void): void;
}

/** One lease that is kept. Only {@link Renewer} writes to it. */
export interface Kept {
  readonly ref: LeaseRef;
  readonly ttlMs: number;
  /** Told once, when the lease is lost; never when it is released. */
  readonly onLost: (cause: LossCause) => void;
  state: HandleState;
  /** When to renew next, on the monotonic clock. */
  dueAtMs: number;
  /** The renewal under way; 0 when there is none. */
  call: number;
  /** Failed attempts since the last answer. */
  failures: number;
}

/** A renewal starts somewhere in the last part of TTL/3, so that many clients do not renew in step. */
const JITTER = 0.15;
/** Leases that are due within this part of their TTL go into the same call. */
const GATHER = 1 / 24;
/** The clocks are looked at this often for each TTL … */
const LOOKS_PER_TTL = 12;
/** … and at least this often, in milliseconds. */
const MAX_LOOK_MS = 1_000;
/** A node that does not answer a renewal within this part of the TTL is left for another; bounds in milliseconds. */
const ATTEMPT = 1 / 6;
const MIN_ATTEMPT_MS = 400;
const MAX_ATTEMPT_MS = 2_000;
/** The second failure in a row waits for this, doubled with each more; the first is repeated at once, elsewhere. */
const BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 1_000;

/** Keeps leases until they are lost or released. */
export class Renewer {
  readonly #ports: RenewerPorts;
  readonly #leases = new Set<Kept>();
  #calls = 0;
  #cancelTimer: (() => void) | undefined;
  /** When the loop meant to wake, on the monotonic clock; undefined while no timer is set. */
  #plannedMs: number | undefined;

  constructor(ports: RenewerPorts) {
    this.#ports = ports;
  }

  /** Starts to keep a lease whose granting call was sent at `sentAt`. */
  keep(ref: LeaseRef, ttlMs: number, sentAt: Moment, onLost: (cause: LossCause) => void): Kept {
    const kept: Kept = {
      ref,
      ttlMs,
      onLost,
      state: { type: 'held', sentAt },
      dueAtMs: this.#dueAfter(sentAt, ttlMs),
      call: 0,
      failures: 0,
    };
    this.#leases.add(kept);
    this.#plan(this.#ports.timeline.now(), [kept]);
    return kept;
  }

  /** Reads the clocks and says where the lease stands now. May find that it is lost, and then tells `onLost` first. */
  look(kept: Kept): HandleState {
    const now = this.#ports.timeline.now();
    this.#input(kept, { type: 'looked', now, lateMs: this.#lateMs(now) }, now);
    return kept.state;
  }

  /** Milliseconds from now to the safe deadline; 0 when the lease is over. May find that it is lost, as {@link look}. */
  leftMs(kept: Kept): number {
    const state = this.look(kept);
    if (state.type !== 'held' && state.type !== 'jeopardy') return 0;
    return Math.max(0, leftMs(state.sentAt, kept.ttlMs, this.#ports.timeline.now()));
  }

  /** The holder gives the lease back: it is not renewed again. False when it was over already, then nothing is to be sent. */
  release(kept: Kept): boolean {
    const before = this.look(kept);
    this.#input(kept, { type: 'released' }, this.#ports.timeline.now());
    return kept.state !== before && kept.state.type === 'released';
  }

  /** The leases that are kept now. */
  kept(): readonly Kept[] {
    return [...this.#leases];
  }

  #input(kept: Kept, input: HandleInput, now: Moment): void {
    const before = kept.state;
    kept.state = nextState(before, kept.ttlMs, input);
    if (kept.state === before) return;
    switch (kept.state.type) {
      case 'held':
        return;
      case 'jeopardy':
        if (before.type === 'jeopardy') return;
        // Renew first; what is under way was sent before the trouble and does not end it.
        kept.call = 0;
        kept.dueAtMs = now.monotonicMs;
        this.#plan(now, [kept]);
        return;
      case 'released':
        this.#forget(kept);
        return;
      case 'lost':
        this.#forget(kept);
        kept.onLost(kept.state.cause);
        return;
    }
  }

  #forget(kept: Kept): void {
    this.#leases.delete(kept);
    if (this.#leases.size > 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#plannedMs = undefined;
  }

  #wake(): void {
    const now = this.#ports.timeline.now();
    const lateMs = this.#lateMs(now);
    this.#plannedMs = undefined;
    this.#cancelTimer = undefined;
    for (const kept of this.kept()) this.#input(kept, { type: 'looked', now, lateMs }, now);
    this.#send(now);
    this.#plan(now);
  }

  #send(now: Moment): void {
    const due = this.kept().filter(
      (kept) => kept.call === 0 && kept.dueAtMs <= now.monotonicMs + (kept.failures === 0 ? kept.ttlMs * GATHER : 0),
    );
    // The most urgent first: with more than one call's worth of leases the order counts.
    due.sort((a, b) => urgency(a, now) - urgency(b, now));
    for (let at = 0; at < due.length; at += MAX_RENEW_LEASES) this.#sendOne(due.slice(at, at + MAX_RENEW_LEASES));
  }

  #sendOne(batch: readonly Kept[]): void {
    const call = ++this.#calls;
    let shortestTtlMs = Infinity;
    for (const kept of batch) {
      kept.call = call;
      shortestTtlMs = Math.min(shortestTtlMs, kept.ttlMs);
    }
    const timeoutMs = Math.min(Math.max(shortestTtlMs * ATTEMPT, MIN_ATTEMPT_MS), MAX_ATTEMPT_MS);
    this.#ports.renew(
      batch.map((kept) => kept.ref),
      timeoutMs,
      (reply) => {
        this.#answered(batch, call, reply);
      },
    );
  }

  #answered(batch: readonly Kept[], call: number, reply: RenewReply): void {
    const now = this.#ports.timeline.now();
    for (const [at, kept] of batch.entries()) {
      const ours = kept.call === call;
      if (ours) kept.call = 0;
      switch (reply.type) {
        case 'answer': {
          const result = reply.results[at];
          assert(
            result !== undefined,
            `a renewal of ${batch.length} leases came back with ${reply.results.length} results`,
          );
          if (result.type === 'ended') {
            this.#input(kept, { type: 'ended', ended: result.ended }, now);
            break;
          }
          kept.failures = 0;
          this.#input(kept, { type: 'renewed', sentAt: reply.sentAt, now }, now);
          if (kept.state.type === 'held' && kept.call === 0) {
            kept.dueAtMs = this.#dueAfter(kept.state.sentAt, kept.ttlMs);
          }
          break;
        }
        case 'failed':
          this.#input(kept, { type: 'looked', now, lateMs: 0 }, now);
          if (!ours) break;
          kept.failures++;
          kept.dueAtMs = now.monotonicMs + this.#backoffMs(kept.failures);
          break;
      }
    }
    this.#plan(now, batch);
  }

  #backoffMs(failures: number): number {
    if (failures <= 1) return 0;
    return Math.min(BACKOFF_MS * 2 ** Math.min(failures - 2, 10), MAX_BACKOFF_MS) * (0.5 + this.#ports.random() / 2);
  }

  #dueAfter(sentAt: Moment, ttlMs: number): number {
    return sentAt.monotonicMs + (ttlMs / 3) * (1 - JITTER * this.#ports.random());
  }

  #lateMs(now: Moment): number {
    return this.#plannedMs === undefined ? 0 : Math.max(0, now.monotonicMs - this.#plannedMs);
  }

  /**
   * Sets the timer to the earliest moment at which there is something to do for one of `leases`, unless it is set to
   * an earlier one already. A timer that is overdue stays: it shows that the loop stands still.
   */
  #plan(now: Moment, leases: Iterable<Kept> = this.#leases): void {
    let delayMs = Infinity;
    for (const kept of leases) {
      if (kept.state.type !== 'held' && kept.state.type !== 'jeopardy') continue;
      delayMs = Math.min(
        delayMs,
        MAX_LOOK_MS,
        kept.ttlMs / LOOKS_PER_TTL,
        leftMs(kept.state.sentAt, kept.ttlMs, now),
        kept.call === 0 ? kept.dueAtMs - now.monotonicMs : Infinity,
      );
    }
    if (delayMs === Infinity) return;
    const plannedMs = now.monotonicMs + Math.max(0, delayMs);
    if (this.#plannedMs !== undefined && this.#plannedMs <= plannedMs) return;
    this.#cancelTimer?.();
    this.#plannedMs = plannedMs;
    this.#cancelTimer = this.#ports.timers.set(plannedMs - now.monotonicMs, () => {
      this.#wake();
    });
  }
}

function urgency(kept: Kept, now: Moment): number {
  return kept.state.type === 'held' || kept.state.type === 'jeopardy'
    ? leftMs(kept.state.sentAt, kept.ttlMs, now)
    : Infinity;
}
