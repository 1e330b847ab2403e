/** What both kinds of disk have in common: how long an operation takes, what is under way, stalls and failures. */
import type { DirectoryId } from '../../../src/base/ids.js';
import { nextInt, nextUint32, type Random } from '../../../src/base/random.js';
import { DirectoryRefused } from '../../../src/storage/refused.js';
import type { CrashHow, Surroundings } from '../ports.js';
import { Countdown } from './countdown.js';

/** How long a disk takes, true milliseconds: the least and the most. */
export interface DiskLatency {
  /** Of what waits for the medium: a synced batch, a synced file, a sync. */
  readonly syncMs: readonly [number, number];
  /** Of every other operation on files, and of a write that is not synced. */
  readonly stepMs: readonly [number, number];
}

/** An operation of a process on its disk. */
export interface Work<T> {
  readonly takes: keyof DiskLatency;
  /** False for reads: they neither fail nor stall. */
  readonly writes: boolean;
  /** What it does to the disk when it is done, or when a crash finds that it was. */
  readonly whole: () => T;
  /** What a crash or a failure in the middle leaves; without it nothing. Returns whether anything was torn. */
  readonly torn?: () => boolean;
  /** A failure leaves nothing of it. Otherwise it may be on the disk all the same, in part or whole. */
  readonly failsCleanly?: boolean;
}

/** How a disk fails: it is broken, or full. */
export type FaultCode = 'EIO' | 'ENOSPC';

interface UnderWay {
  readonly work: Work<unknown>;
  readonly finish: () => void;
  cancel: () => void;
}

/** A disk of one machine; processes come and go. */
export class Device {
  readonly name: string;
  readonly surroundings: Surroundings;
  readonly latency: DiskLatency;
  /** Of operations that write. */
  readonly countdown: Countdown;
  /** The process that uses it, or the next one that will. */
  process: DiskProcess = new DiskProcess(this);
  stalled = false;
  /** Of the next write that ends. */
  fault: FaultCode | undefined;
  /** Called before each write ends: the disk is as it was left by the one before. */
  beforeWrite: () => void = nothing;

  constructor(name: string, surroundings: Surroundings, latency: DiskLatency) {
    this.name = name;
    this.surroundings = surroundings;
    this.latency = latency;
    this.countdown = new Countdown(surroundings.scheduler);
  }

  get random(): Random {
    return this.surroundings.random;
  }

  /** True in one of `times`. */
  oneIn(times: number): boolean {
    return nextInt(this.random, 1, times) === 1;
  }

  /** A time within the bounds. */
  draw([low, high]: readonly [number, number]): number {
    return low + (nextUint32(this.random) / 2 ** 32) * (high - low);
  }

  newDirectoryId(): DirectoryId {
    const words = Array.from({ length: 4 }, () => nextUint32(this.random).toString(16).padStart(8, '0'));
    return words.join('') as DirectoryId;
  }

  count(name: string): void {
    this.surroundings.coverage.count(name);
  }

  trace(line: string): void {
    this.surroundings.trace(`disk ${this.name}: ${line}`);
  }

  /** The process is gone; what it had under way is on the disk or not. */
  crash(how: CrashHow): void {
    this.process.end(how);
    this.process = new DiskProcess(this);
  }

  /** A start was refused, or failed. */
  refused(error: unknown): void {
    if (error instanceof DirectoryRefused) this.count('open refused');
    this.trace(error instanceof Error ? error.message : String(error));
  }

  /** The process has closed everything, if it is not gone already. */
  closed(process: DiskProcess): void {
    if (process !== this.process) return;
    process.leave();
    this.process = new DiskProcess(this);
  }

  stall(): void {
    if (this.stalled) return;
    this.stalled = true;
    this.count('stall');
  }

  resume(): void {
    if (!this.stalled) return;
    this.stalled = false;
    this.process.resume();
  }

  /** The machine got another one. */
  renew(): void {
    this.fault = undefined;
  }
}

/** One process as its disk sees it. */
export class DiskProcess {
  #alive = true;
  readonly #device: Device;
  readonly #underWay = new Set<UnderWay>();
  #waiting: UnderWay[] = [];
  #timers = new Set<() => void>();
  /** After a failed write everything fails, as a rule: few disks get better while a process runs. */
  #broken: FaultCode | undefined;
  #failed = false;
  /** A synced batch has ended. */
  committed = false;

  constructor(device: Device) {
    this.#device = device;
  }

  /** False once it has closed the disk, or is gone. */
  isAlive(): boolean {
    return this.#alive;
  }

  /** It has closed the disk. */
  leave(): void {
    this.#alive = false;
  }

  /** Whether a write has not ended. */
  get writing(): boolean {
    for (const { work } of this.#underWay) if (work.writes) return true;
    return false;
  }

  /** Whether anything has not ended. */
  get busy(): boolean {
    return this.#underWay.size > 0;
  }

  /** Everything that it has handed to the disk is there and reported, with the mark of it. */
  get exact(): boolean {
    return this.committed && !this.#failed && !this.writing;
  }

  /** Settles when it is done; never, once the process is gone. */
  perform<T>(work: Work<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.begin(work, resolve, reject);
    });
  }

  /** Likewise, with functions of which one is called in the task in which it ends. */
  begin<T>(work: Work<T>, done: (value: T) => void, failed: (error: Error) => void): void {
    if (!this.#alive) return;
    const device = this.#device;
    const underWay: UnderWay = {
      work,
      finish: () => {
        if (work.writes && device.stalled) {
          this.#waiting.push(underWay);
          return;
        }
        this.#underWay.delete(underWay);
        if (work.writes) device.beforeWrite();
        const code = work.writes ? this.#failure() : undefined;
        if (code !== undefined) {
          if (work.failsCleanly !== true) this.#leaveHalfDone(work);
          failed(Object.assign(new Error(`${code}: the write failed`), { code }));
          return;
        }
        let value: T;
        try {
          value = work.whole();
        } catch (error) {
          failed(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        done(value);
      },
      cancel: nothing,
    };
    this.#underWay.add(underWay);
    if (work.writes) device.countdown.began();
    underWay.cancel = device.surroundings.scheduler.after(device.draw(device.latency[work.takes]), underWay.finish);
  }

  /** Likewise, but at once unless the disk stalls or fails: for what only reaches the kernel's memory. */
  performNow(work: Work<void>): Promise<void> {
    const device = this.#device;
    const plain = this.#alive && !device.stalled && device.fault === undefined && this.#broken === undefined;
    if (!plain) return this.perform(work);
    device.beforeWrite();
    device.countdown.began();
    work.whole();
    return Promise.resolve();
  }

  /** A timer of the process. */
  after(ms: number, run: () => void): () => void {
    if (!this.#alive) return nothing;
    const cancel = this.#device.surroundings.scheduler.after(ms, () => {
      this.#timers.delete(cancel);
      run();
    });
    this.#timers.add(cancel);
    return () => {
      this.#timers.delete(cancel);
      cancel();
    };
  }

  /** See {@link Device.crash}. */
  end({ underWay }: CrashHow): void {
    this.#alive = false;
    for (const cancel of this.#timers) cancel();
    const device = this.#device;
    if (this.writing) device.count('crash while a write was under way');
    for (const { work, cancel } of this.#underWay) {
      cancel();
      if (!work.writes || underWay === 'lost') continue;
      if (underWay === 'kept') settle(work.whole);
      else if (work.torn?.() === true) device.count('write torn');
    }
    this.#underWay.clear();
    this.#waiting = [];
  }

  /** What waited for the end of a stall ends, in tasks of its own. */
  resume(): void {
    const { scheduler } = this.#device.surroundings;
    for (const underWay of this.#waiting.splice(0)) underWay.cancel = scheduler.after(0, underWay.finish);
  }

  #failure(): FaultCode | undefined {
    const device = this.#device;
    const { fault } = device;
    if (this.#broken !== undefined || fault === undefined) return this.#broken;
    device.fault = undefined;
    this.#failed = true;
    device.count(`write failed ${fault}`);
    device.trace(`a write fails with ${fault}`);
    // After some failures the next write succeeds, and says nothing of what is missing before it.
    if (device.oneIn(2)) this.#broken = fault;
    else device.count('write failed once');
    return fault;
  }

  #leaveHalfDone(work: Work<unknown>): void {
    switch (nextInt(this.#device.random, 0, 2)) {
      case 0:
        return;
      case 1:
        if (work.torn?.() === true) this.#device.count('write torn');
        return;
      default:
        settle(work.whole);
    }
  }
}

/** Nobody is left to hear that it cannot be done. */
function settle(whole: () => unknown): void {
  try {
    whole();
  } catch {
    return;
  }
}

function nothing(): void {
  return;
}

/** A promise of a process that is gone. */
export function never<T>(): Promise<T> {
  return new Promise<T>(nothing);
}
