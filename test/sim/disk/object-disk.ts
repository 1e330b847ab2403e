/** The fast kind of disk: the memory twin of the store, which keeps objects, under a small model of a data directory. */
import type { DirectoryId } from '../../../src/base/ids.js';
import type { Store } from '../../../src/replica/ports.js';
import type { Genesis } from '../../../src/replica/types.js';
import type { Expected } from '../../../src/storage/directory.js';
import { DirectoryRefused, REPLACE_MEMBER } from '../../../src/storage/refused.js';
import { copyImage } from '../../../src/testing/memory-image.js';
import { MemoryDisk, openMemoryStore, type MemoryStore } from '../../../src/testing/memory-store.js';
import type { CrashHow, Disk, Found, Surroundings } from '../ports.js';
import { Device, type DiskLatency } from './device.js';
import { ProcessStore } from './process-store.js';

/** The steps in which a prepared directory becomes a member's; with the end of the last one it is. */
const FORMING_STEPS = ['stepMs', 'syncMs', 'syncMs', 'stepMs', 'syncMs'] as const;

type State =
  | { readonly type: 'empty' }
  | { readonly type: 'new'; readonly directory: DirectoryId }
  | { readonly type: 'member'; readonly directory: DirectoryId; readonly memory: MemoryDisk };

/** Everything on such a disk. */
class Copy {
  readonly state: State;

  constructor(state: State) {
    this.state = state.type === 'member' ? { ...state, memory: copied(state.memory) } : state;
  }
}

/** See the head of the file. */
export class ObjectDisk implements Disk {
  readonly #device: Device;
  readonly #expected: Expected;
  #state: State = { type: 'empty' };
  #store: MemoryStore | undefined;
  /** In the steps that make an empty directory a member's. */
  #forming = false;

  /** `expected`: the cluster's name and the node's, as the configuration of every process that uses the disk says. */
  constructor(surroundings: Surroundings, expected: Expected, latency: DiskLatency) {
    this.#device = new Device(expected.node, surroundings, latency);
    this.#expected = expected;
  }

  async inspect(): Promise<Found> {
    const state = await this.#look();
    return state.type === 'empty' ? state : { type: state.type, directory: state.directory };
  }

  async prepare(): Promise<DirectoryId> {
    const found = await this.inspect();
    if (found.type === 'member') throw this.#refused('holds a member already');
    if (found.type === 'new') return found.directory;
    this.#forming = true;
    const directory = this.#device.newDirectoryId();
    await this.#step('syncMs');
    await this.#step('syncMs', () => {
      this.#state = { type: 'new', directory };
    });
    this.#forming = false;
    return directory;
  }

  async storeGenesis(genesis: Genesis): Promise<void> {
    const state = await this.#look();
    if (state.type !== 'new' || !genesis.members.some((member) => member.directory === state.directory)) {
      throw this.#refused('is no prepared directory that the Genesis record lists');
    }
    this.#forming = true;
    for (const takes of FORMING_STEPS.slice(0, -1)) await this.#step(takes);
    await this.#step('syncMs', () => {
      this.#state = { type: 'member', directory: state.directory, memory: new MemoryDisk(genesis) };
    });
    this.#forming = false;
  }

  async open(): Promise<Store> {
    const { process } = this.#device;
    const state = await this.#look();
    if (state.type !== 'member') throw this.#refused('holds no member');
    try {
      const store = openMemoryStore(state.memory, {
        schedule: (complete) => {
          process.begin(
            { takes: 'syncMs', writes: true, whole: complete, torn: () => true, failsCleanly: true },
            () => undefined,
            (error) => {
              store.fail('code' in error && error.code === 'ENOSPC' ? 'ENOSPC' : 'EIO');
              complete();
            },
          );
        },
      });
      this.#store = store;
      return new ProcessStore(store, process, {
        closed: () => {
          this.#device.closed(process);
        },
      });
    } catch (error) {
      throw this.#refused(error instanceof Error ? error.message : String(error));
    }
  }

  crash(how: CrashHow): void {
    const device = this.#device;
    if (this.#forming && device.process.busy) device.count('crash while forming files');
    this.#forming = false;
    device.crash(how);
    // What was under way is written by now, if it is to be kept.
    this.#store?.crash({ lose: how.lose });
    this.#store = undefined;
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

  /** It keeps no rubbish. */
  leftOver(): undefined {
    return undefined;
  }

  copy(): unknown {
    return new Copy(this.#state);
  }

  restore(copy: unknown): void {
    if (!(copy instanceof Copy)) throw new Error('is no copy of such a disk');
    this.#device.count('directory restored');
    this.#device.renew();
    this.#state = new Copy(copy.state).state;
  }

  wipe(): void {
    this.#device.count('directory wiped');
    this.#device.renew();
    this.#state = { type: 'empty' };
  }

  /** There are none. */
  flip(): boolean {
    return false;
  }

  #look(): Promise<State> {
    return this.#device.process.perform({ takes: 'stepMs', writes: false, whole: () => this.#state });
  }

  #step(takes: keyof DiskLatency, whole: () => void = () => undefined): Promise<void> {
    return this.#device.process.perform({ takes, writes: true, whole });
  }

  #refused(problem: string): DirectoryRefused {
    const error = new DirectoryRefused(`disk of ${this.#expected.node}`, problem, REPLACE_MEMBER);
    this.#device.refused(error);
    return error;
  }
}

function copied(memory: MemoryDisk): MemoryDisk {
  const copy = new MemoryDisk(memory.image.genesis);
  copy.image = copyImage(memory.image);
  return copy;
}
