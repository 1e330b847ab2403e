/** One simulated machine: its clocks, and whether it runs, stands still or sleeps. */
import type { Scheduler } from './scheduler.js';

/**
 * The clocks of a machine, each of which may be wrong in its own way. `rate` is that of monotonic clock, uptime and wall
 * clock against true time (contract 3 allows 0.99 to 1.01).
 */
export class Machine {
  readonly rate: number;
  readonly #scheduler: Scheduler;
  readonly #monotonicOffset: number;
  readonly #wallOffset: number;
  #wallJumps = 0;
  /** True milliseconds spent asleep: the monotonic clock does not count them. */
  #asleepMs = 0;
  #asleepSince: number | undefined;

  /** `monotonicOffsetMs`: what the monotonic clock shows at true time 0; `wallOffsetMs`: likewise, since 1970. */
  constructor(scheduler: Scheduler, rate: number, monotonicOffsetMs: number, wallOffsetMs: number) {
    this.#scheduler = scheduler;
    this.rate = rate;
    this.#monotonicOffset = monotonicOffsetMs;
    this.#wallOffset = wallOffsetMs;
  }

  /** Never goes back; stands while the machine sleeps. */
  get monotonicMs(): number {
    const { now } = this.#scheduler;
    const asleep = this.#asleepMs + (this.#asleepSince === undefined ? 0 : now - this.#asleepSince);
    return this.#monotonicOffset + (now - asleep) * this.rate;
  }

  /** Goes on while the machine sleeps. */
  get uptimeMs(): number {
    return this.#monotonicOffset + this.#scheduler.now * this.rate;
  }

  /** Milliseconds since 1970; goes on while the machine sleeps, and jumps. */
  get wallMs(): number {
    return this.#wallOffset + this.#wallJumps + this.#scheduler.now * this.rate;
  }

  /** The wall clock jumps by so much, either way. */
  jumpWall(ms: number): void {
    this.#wallJumps += ms;
  }

  /** The machine is suspended: the monotonic clock stands. Whoever simulates its processes stops them too. */
  sleep(): void {
    this.#asleepSince ??= this.#scheduler.now;
  }

  /** Ends a suspend. */
  wake(): void {
    if (this.#asleepSince === undefined) return;
    this.#asleepMs += this.#scheduler.now - this.#asleepSince;
    this.#asleepSince = undefined;
  }

  /** True milliseconds that it takes this machine's monotonic clock to count `ms`, while it is awake. */
  trueMs(ms: number): number {
    return ms / this.rate;
  }
}
