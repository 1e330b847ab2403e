/** Disks for tests, and the loop that runs their time. */
import type { NodeId } from '../../../src/base/ids.js';
import { createRandom } from '../../../src/base/random.js';
import type { Store } from '../../../src/replica/ports.js';
import { EXPECTED, genesisFor } from '../../storage/fixtures.js';
import { Coverage } from '../coverage.js';
import type { Disk, Surroundings } from '../ports.js';
import { Scheduler } from '../scheduler.js';
import { ByteDisk } from './byte-disk.js';
import { ObjectDisk } from './object-disk.js';

export const LATENCY = { syncMs: [0.3, 5], stepMs: [0.01, 0.1] } as const;

export const KINDS = [
  ['ByteDisk', ByteDisk],
  ['ObjectDisk', ObjectDisk],
] as const;

export type Kind = (typeof KINDS)[number][1];

/** A disk with a time of its own. */
export class DiskWorld {
  readonly scheduler = new Scheduler();
  readonly coverage: Coverage;
  readonly lines: string[] = [];
  readonly disk: Disk;
  readonly surroundings: Surroundings;

  constructor(kind: Kind, seed: number, coverage = new Coverage()) {
    this.coverage = coverage;
    this.surroundings = {
      scheduler: this.scheduler,
      random: createRandom(seed),
      coverage,
      trace: (line) => {
        this.lines.push(`${this.scheduler.now.toFixed(3)} ${line}`);
      },
    };
    this.disk = this.another(kind);
  }

  /** A second disk in the same time. */
  another(kind: Kind, node: NodeId = EXPECTED.node): Disk {
    return new kind(this.surroundings, { ...EXPECTED, node }, LATENCY);
  }

  /** One task, and all that promises make of it; false when there is none. */
  async step(): Promise<boolean> {
    if (!this.scheduler.runNext(Infinity)) return false;
    await drained();
    return true;
  }

  /** At most `count` tasks. */
  async steps(count: number): Promise<void> {
    await drained();
    for (let done = 0; done < count; done++) if (!(await this.step())) return;
  }

  /** Runs the time until `promise` settles. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let settled = false as boolean;
    const end = () => {
      settled = true;
    };
    promise.then(end, end);
    await drained();
    while (!settled) {
      if (!(await this.step())) throw new Error('nothing is left to do, and the promise has not settled');
    }
    return promise;
  }

  /** An empty disk becomes a member's. */
  async form(): Promise<void> {
    const directory = await this.until(this.disk.prepare());
    await this.until(this.disk.storeGenesis(genesisFor(directory)));
  }

  open(): Promise<Store> {
    return this.until(this.disk.open());
  }
}

function drained(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
