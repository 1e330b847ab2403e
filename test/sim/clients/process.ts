/** One client process on a simulated machine: its timers and its inbox stand still while it does. */
import type { Random } from '../../../src/base/random.js';
import { nextInt } from '../../../src/base/random.js';
import { between } from '../chance.js';
import type { Machine } from '../machine.js';
import type { Scheduler } from '../scheduler.js';

/** No timer of Node fires sooner than this, in milliseconds. */
const LEAST_TIMER_MS = 1;
/** How late a timer may fire, and how long what waited for a process takes to be handled after it goes on. */
const LATE_MS = 1;

/** See the head of the file. Once ended it never does anything again. */
export class ClientProcess {
  readonly machine: Machine;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  /** What keeps it from running: it was stopped (SIGSTOP), or its machine sleeps. */
  readonly #halts = new Set<'stopped' | 'asleep'>();
  #kept: (() => void)[] = [];
  #ended = false;
  readonly #atEnd = new Set<() => void>();

  constructor(machine: Machine, scheduler: Scheduler, random: Random) {
    this.machine = machine;
    this.#scheduler = scheduler;
    this.#random = random;
  }

  /** False while it stands still, and once it has ended. */
  get runs(): boolean {
    return !this.#ended && this.#halts.size === 0;
  }

  /** True once {@link end} was called. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Calls `fire` once when the monotonic clock has counted `ms`, unless the function that it returns was called before. */
  after(ms: number, fire: () => void): () => void {
    const dueMs = this.machine.monotonicMs + Math.max(LEAST_TIMER_MS, ms);
    let open = true;
    let cancel: () => void = () => undefined;
    const close = (): void => {
      open = false;
      cancel();
    };
    const look = (): void => {
      if (!open) return;
      // The monotonic clock stood while the machine slept.
      if (this.machine.monotonicMs < dueMs) arm();
      else {
        close();
        fire();
      }
    };
    const arm = (): void => {
      const leftMs = this.machine.trueMs(dueMs - this.machine.monotonicMs);
      cancel = this.#scheduler.after(leftMs + between(this.#random, 0, LATE_MS), () => {
        this.deliver(look);
      });
    };
    arm();
    return close;
  }

  /** Something arrives: handled now, or kept until the process goes on. */
  deliver(run: () => void): void {
    if (this.#ended) return;
    if (this.#halts.size > 0) this.#kept.push(run);
    else run();
  }

  /** It stands still. */
  halt(why: 'stopped' | 'asleep'): void {
    if (!this.#ended) this.#halts.add(why);
  }

  /** It goes on, unless something else keeps it. Timers that are overdue and what arrived come in a drawn order. */
  goOn(why: 'stopped' | 'asleep'): void {
    if (!this.#halts.delete(why) || this.#halts.size > 0) return;
    const kept = this.#kept;
    this.#kept = [];
    for (let left = kept.length; left > 0; left--) {
      const [next] = kept.splice(nextInt(this.#random, 0, left - 1), 1);
      if (next === undefined) continue;
      this.#scheduler.after(between(this.#random, 0, LATE_MS), () => {
        this.deliver(next);
      });
    }
  }

  /** Calls `run` when the process ends, unless the function that it returns was called before. */
  onEnd(run: () => void): () => void {
    this.#atEnd.add(run);
    return () => {
      this.#atEnd.delete(run);
    };
  }

  /** The process is killed: nothing of it runs any more. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const run of this.#atEnd) run();
    this.#atEnd.clear();
    this.#halts.clear();
    this.#kept = [];
  }
}
