/** A disk on which the production storage code runs, over simulated files and a simulated database, in bytes. */
import type { DirectoryId } from '../../../src/base/ids.js';
import { nextInt } from '../../../src/base/random.js';
import type { Store } from '../../../src/replica/ports.js';
import type { Genesis } from '../../../src/replica/types.js';
import { storeGenesis } from '../../../src/storage/begin.js';
import { DATABASE, inspectDirectory, prepareDirectory, type Expected } from '../../../src/storage/directory.js';
import { openStore } from '../../../src/storage/open.js';
import type { StoragePorts } from '../../../src/storage/ports.js';
import type { CrashHow, Disk, Found, Surroundings } from '../ports.js';
import { Device, type DiskLatency } from './device.js';
import { DirectoryNode, FileNode } from './file-tree.js';
import { leftOver } from './left-over.js';
import { DatabaseNode, simulatedDatabases } from './sim-database.js';
import { find, simulatedFiles } from './sim-files.js';
import { ProcessStore } from './process-store.js';

const PATH = '/data';

/** See the head of the file. */
export class ByteDisk implements Disk {
  readonly #device: Device;
  readonly #expected: Expected;
  #root = new DirectoryNode();
  /** In the steps that make an empty directory a member's. */
  #forming = false;
  /** As the process found it, or made it. */
  #directory = '' as DirectoryId;

  /** `expected`: the cluster's name and the node's, as the configuration of every process that uses the disk says. */
  constructor(surroundings: Surroundings, expected: Expected, latency: DiskLatency) {
    this.#device = new Device(expected.node, surroundings, latency);
    this.#expected = expected;
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
    await this.#counting(storeGenesis(PATH, genesis, this.#directory, ports));
    this.#forming = false;
  }

  async open(): Promise<Store> {
    const { process } = this.#device;
    const store = await this.#counting(openStore(PATH, this.#expected, this.#ports()));
    return new ProcessStore(store, process, () => {
      this.#device.closed(process);
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
    const { random } = this.#device;
    const database = find(this.#root, `${PATH}/${DATABASE}`);
    const files = ['IDENTITY', 'MARK'].filter((name) => find(this.#root, `${PATH}/${name}`) instanceof FileNode);
    const records = database instanceof DatabaseNode && files.length === 2 ? database.records : undefined;
    const keys = records === undefined ? [] : [...records.view.keys()].sort();
    const places = files.length + keys.length;
    if (places === 0) return false;
    const place = nextInt(random, 0, places - 1);
    const file = find(this.#root, `${PATH}/${files[place] ?? ''}`);
    const key = keys[place - files.length] ?? '';
    const bytes = (file instanceof FileNode ? file.bytes : records?.get(key))?.slice();
    if (bytes === undefined || bytes.length === 0) return false;
    const at = nextInt(random, 0, bytes.length - 1);
    bytes[at] = (bytes[at] ?? 0) ^ nextInt(random, 1, 255);
    if (file instanceof FileNode) file.replace(bytes);
    else records?.replace(key, bytes);
    this.#device.count('byte flipped');
    this.#device.trace(`byte ${at} of ${files[place] ?? `record ${Buffer.from(key, 'latin1').toString('hex')}`} flips`);
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
