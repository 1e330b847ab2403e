/** A disk on which the production storage code runs, over simulated files and a simulated database, in bytes. */
import type { DirectoryId } from '../../../src/base/ids.js';
import type { Store } from '../../../src/replica/ports.js';
import type { Genesis } from '../../../src/replica/types.js';
import { storeGenesis } from '../../../src/storage/begin.js';
import { DATABASE, inspectDirectory, prepareDirectory, type Expected } from '../../../src/storage/directory.js';
import { openStore } from '../../../src/storage/open.js';
import type { StoragePorts } from '../../../src/storage/ports.js';
import type { CrashHow, Disk, Found, Surroundings } from '../ports.js';
import { flipByte, placeOf } from './damage.js';
import { Device, type DiskLatency } from './device.js';
import { DirectoryNode } from './file-tree.js';
import { leftOver } from './left-over.js';
import { DatabaseNode, simulatedDatabases } from './sim-database.js';
import { find, simulatedFiles } from './sim-files.js';
import { ProcessStore } from './process-store.js';
import { Trials, type TrialOptions } from './trials.js';

const PATH = '/data';

/** See the head of the file. */
export class ByteDisk implements Disk {
  readonly #device: Device;
  readonly #expected: Expected;
  readonly #trials: Trials | undefined;
  #root = new DirectoryNode();
  /** In the steps that make an empty directory a member's. */
  #forming = false;
  /** As the process found it, or made it. */
  #directory = '' as DirectoryId;

  /**
   * `expected`: the cluster's name and the node's, as the configuration of every process that uses the disk says. With
   * `trials` it is tried what a start would find.
   */
  constructor(surroundings: Surroundings, expected: Expected, latency: DiskLatency, trials?: TrialOptions) {
    this.#device = new Device(expected.node, surroundings, latency);
    this.#expected = expected;
    this.#trials = trials && new Trials(trials, PATH, expected, () => this.#root);
    this.#device.beforeWrite = () => this.#trials?.beforeWrite();
  }

  async inspect(): Promise<Found> {
    const { files } = this.#ports();
    const found = await this.#counting(inspectDirectory(PATH, this.#expected, files));
    if (found.type === 'empty') return found;
    this.#directory = found.type === 'member' ? found.identity.directory : found.directory;
    return { type: found.type, directory: this.#directory };
  }

  async prepare(): Promise<DirectoryId> {
    this.#forming = true;
    this.#directory = await this.#counting(prepareDirectory(PATH, this.#expected, this.#ports()));
    this.#forming = false;
    return this.#directory;
  }

  async storeGenesis(genesis: Genesis): Promise<void> {
    const ports = this.#ports();
    this.#forming = true;
    this.#trials?.watchClosely();
    await this.#counting(storeGenesis(PATH, genesis, this.#directory, ports));
    this.#forming = false;
  }

  async open(): Promise<Store> {
    const { process } = this.#device;
    const store = await this.#counting(openStore(PATH, this.#expected, this.#ports()));
    return new ProcessStore(store, process, {
      handing: (rare) => {
        if (process.exact) this.#trials?.atRest();
        if (rare) this.#trials?.watchClosely();
      },
      closed: () => {
        this.#device.closed(process);
      },
    });
  }

  crash(how: CrashHow): void {
    if (this.#forming && this.#device.process.busy) this.#device.count('crash while forming files');
    this.#forming = false;
    this.#directory = '' as DirectoryId;
    this.#device.crash(how);
    if (how.lose === 'unsynced') this.#root.losePower(this.#device);
  }

  fail(code: 'EIO' | 'ENOSPC'): void {
    this.#device.fault = code;
  }

  stall(): void {
    this.#device.stall();
  }

  resume(): void {
    this.#device.resume();
  }

  atOperation(count: number, run: () => void): void {
    this.#device.countdown.set(count, run);
  }

  atNoOperation(): void {
    this.#device.countdown.clear();
  }

  leftOver(): string | undefined {
    const database = find(this.#root, `${PATH}/${DATABASE}`);
    return database instanceof DatabaseNode ? leftOver(database.records.view) : 'there is no database';
  }

  copy(): unknown {
    return this.#root.copy();
  }

  restore(copy: unknown): void {
    if (!(copy instanceof DirectoryNode)) throw new Error('is no copy of such a disk');
    this.#device.count('directory restored');
    this.#device.renew();
    this.#root = copy.copy();
  }

  wipe(): void {
    this.#device.count('directory wiped');
    this.#device.renew();
    this.#root = new DirectoryNode();
  }

  flip(): boolean {
    const directory = find(this.#root, PATH);
    const place = directory instanceof DirectoryNode ? placeOf(directory) : undefined;
    const where = place && flipByte(place, this.#device.random);
    if (where === undefined) return false;
    this.#device.count('byte flipped');
    this.#device.trace(`${where} flips`);
    return true;
  }

  /** What the current process has of the disk. */
  #ports(): StoragePorts {
    const device = this.#device;
    const { process } = device;
    return {
      files: simulatedFiles(this.#root, device, process),
      databases: simulatedDatabases(this.#root, process),
      after: (ms, run) => process.after(ms, run),
      newDirectoryId: () => device.newDirectoryId(),
    };
  }

  async #counting<T>(opening: Promise<T>): Promise<T> {
    try {
      return await opening;
    } catch (error) {
      this.#device.refused(error);
      throw error;
    }
  }
}
