/**
 * The client's clocks, read and combined (design 9, S11). No single clock of Node can be trusted to measure a lease:
 * the monotonic one stops while the machine is suspended, the uptime has coarse steps, the wall clock jumps. So the
 * time that has passed is the greatest of what the three say. What freezes all three at once (a paused virtual machine)
 * no client can see; there only the token protects.
 */
import { performance } from 'node:perf_hooks';
import { uptime } from 'node:os';

/** The three clocks at one moment, in milliseconds. */
export interface Reading {
  /** Never goes back; stops while the machine is suspended. */
  readonly monotonicMs: number;
  /** Time since the machine started; runs on while it is suspended. */
  readonly uptimeMs: number;
  /** Milliseconds since 1970; runs on while the machine is suspended, but may jump either way. */
  readonly wallMs: number;
}

/** Where readings come from. */
export interface Clocks {
  read(): Reading;
  /** The coarseness of `uptimeMs`, in milliseconds: it may be behind the truth by this much. */
  uptimeStepMs(): number;
}

/** A moment on the client's own line of time; made by {@link Timeline.now}, compared by {@link elapsedMs}. */
export interface Moment {
  readonly monotonicMs: number;
  readonly uptimeMs: number;
  /** The wall clock, without its backward steps: where it went back, it is carried on from where it stood. */
  readonly wallMs: number;
  /** The sum of the backward steps that were taken out of `wallMs`. */
  readonly wallBackMs: number;
  readonly uptimeStepMs: number;
}

/**
 * Backward steps of the wall clock against the monotonic one below this are the coarseness of the readings and the
 * correction of the rate by a time service, not steps.
 */
const WALL_NOISE_MS = 5;

/** Samples the clocks. One for each client: the more often it is asked, the less a backward step of the wall clock hides. */
export class Timeline {
  readonly #clocks: Clocks;
  #last: Reading | undefined;
  #wallBackMs = 0;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
  }

  /** Reads the clocks now. */
  now(): Moment {
    const reading = this.#clocks.read();
    if (this.#last !== undefined) {
      const wall = reading.wallMs - this.#last.wallMs;
      const monotonic = reading.monotonicMs - this.#last.monotonicMs;
      // Re-base: otherwise a later forward step that only undoes this one would hide the time it stands for.
      if (wall < monotonic - WALL_NOISE_MS) this.#wallBackMs += monotonic - wall;
    }
    this.#last = reading;
    return {
      monotonicMs: reading.monotonicMs,
      uptimeMs: reading.uptimeMs,
      wallMs: reading.wallMs + this.#wallBackMs,
      wallBackMs: this.#wallBackMs,
      uptimeStepMs: this.#clocks.uptimeStepMs(),
    };
  }
}

/** Milliseconds from one moment to a later one: the greatest of what the three clocks say. */
export function elapsedMs(from: Moment, to: Moment): number {
  const monotonic = to.monotonicMs - from.monotonicMs;
  const uptimeDelta = to.uptimeMs - from.uptimeMs;
  // After a suspend the uptime alone is right, and it may be short by one of its steps.
  const uptimeMs = uptimeDelta > monotonic + to.uptimeStepMs ? uptimeDelta + to.uptimeStepMs : uptimeDelta;
  return Math.max(monotonic, uptimeMs, to.wallMs - from.wallMs);
}

/** By how many milliseconds the clocks disagree about the time from one moment to a later one. */
export function disagreementMs(from: Moment, to: Moment): number {
  const ahead = elapsedMs(from, to) - (to.monotonicMs - from.monotonicMs);
  return Math.max(ahead, to.wallBackMs - from.wallBackMs);
}

/** Whole seconds: what `os.uptime()` has where the system has no finer counter. */
const COARSE_UPTIME_STEP_MS = 1_000;
/** `/proc/uptime` has steps of 10 ms, the tick counter of Windows 16 ms. */
const FINE_UPTIME_STEP_MS = 16;

/** The clocks of this process. */
export function systemClocks(): Clocks {
  let stepMs = COARSE_UPTIME_STEP_MS;
  return {
    read() {
      const uptimeMs = Math.round(uptime() * 1_000);
      // One fraction of a second shows that the counter is a fine one.
      if (uptimeMs % 1_000 !== 0) stepMs = FINE_UPTIME_STEP_MS;
      return { monotonicMs: performance.now(), uptimeMs, wallMs: Date.now() };
    },
    uptimeStepMs: () => stepMs,
  };
}
