/** The port `Database` over simulated records: what LevelDB does for the store, in the time that a disk takes. */
import { CorruptBytes } from '../../../src/wire/corrupt.js';
import {
  refusing,
  type Database,
  type DatabaseIterator,
  type DatabaseView,
  type Databases,
  type Operation,
} from '../../../src/storage/database.js';
import type { KeyRange } from '../../../src/wire/disk.js';
import { never, type Device, type DiskProcess } from './device.js';
import { DirectoryNode, FileNode, type Node } from './file-tree.js';
import { bytesOf, changesOf, Records, textOf, type Change, type KeyText, type View } from './records.js';
import { directoryAt, find } from './sim-files.js';

/** The names without which a database cannot be opened. */
const NAMES = ['MANIFEST-000002', '000003.log', 'CURRENT'];
/** LevelDB removes a range in pieces. */
const CLEARED_TOGETHER = 4;

/** The directory of a database; its files are there for their names, its records are in `records`. */
export class DatabaseNode extends DirectoryNode {
  readonly records: Records;
  /** The process that has it open. */
  user: DiskProcess | undefined;

  constructor(records = new Records()) {
    super();
    this.records = records;
  }

  override losePower(device: Device): void {
    super.losePower(device);
    this.records.losePower(device);
  }

  override copy(): DatabaseNode {
    return this.copyTo(new DatabaseNode(new Records(this.records.view)));
  }

  override fork(forks: Map<Node, Node>): DatabaseNode {
    return this.forkTo(new DatabaseNode(this.records.fork()), forks);
  }
}

/** Databases below `root`, for one process. */
export function simulatedDatabases(root: DirectoryNode, process: DiskProcess): Databases {
  return {
    create(location) {
      const slash = location.lastIndexOf('/');
      const create = (names: readonly string[]) => {
        const above = directoryAt(root, location.slice(0, slash));
        const name = location.slice(slash + 1);
        if (above.names.has(name)) throw new Error(`${location}: exists (error_if_exists is true)`);
        const node = new DatabaseNode();
        above.change([[name, node]]);
        for (const file of names) node.change([[file, new FileNode(new Uint8Array(0))]]);
        return node;
      };
      return process.perform({
        takes: 'syncMs',
        writes: true,
        whole: () => new SimulatedDatabase(create(NAMES), process),
        torn() {
          create(NAMES.slice(0, 1));
          return true;
        },
      });
    },
    open: (location) =>
      refusing(location, () =>
        process.perform({
          takes: 'stepMs',
          writes: false,
          whole: () => {
            const node = find(root, location);
            if (!(node instanceof DatabaseNode)) throw new CorruptBytes('CURRENT', 'is missing');
            for (const name of NAMES) if (!node.names.has(name)) throw new CorruptBytes(name, 'is missing');
            if (node.user?.isAlive() === true) throw new Error(`${location}: is open`);
            // What the write-ahead log held is in a table now, and synced.
            node.records.flush();
            return new SimulatedDatabase(node, process);
          },
        }),
      ),
  };
}

class SimulatedView implements DatabaseView {
  readonly view: View;

  constructor(view: View) {
    this.view = view;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** One database that a process has open. Reads are answered at once, from memory. */
class SimulatedDatabase implements Database {
  readonly #node: DatabaseNode;
  readonly #records: Records;
  readonly #process: DiskProcess;

  constructor(node: DatabaseNode, process: DiskProcess) {
    this.#node = node;
    this.#records = node.records;
    this.#process = process;
    node.user = process;
  }

  get(key: Uint8Array, options?: { readonly snapshot: DatabaseView }): Promise<Uint8Array | undefined> {
    return this.#answer(this.#viewOf(options?.snapshot).get(textOf(key))?.slice());
  }

  batch(operations: Operation[], { sync }: { readonly sync: boolean }): Promise<void> {
    const changes = changesOf(operations);
    return this.#process.perform({
      takes: sync ? 'syncMs' : 'stepMs',
      writes: true,
      whole: () => {
        this.#records.apply(changes, sync);
        if (sync) this.#process.committed = true;
      },
      // Its checksum is wrong: it is as if it had never been written.
      torn: () => true,
    });
  }

  iterator(selection: KeyRange & { readonly snapshot?: DatabaseView }): DatabaseIterator {
    const view = this.#viewOf(selection.snapshot);
    const keys = keysIn(view, selection);
    let at = 0;
    const next = (size: number) =>
      keys.slice(at, (at += size)).map((key): [Uint8Array, Uint8Array] => [bytesOf(key), copyOf(view.get(key))]);
    return {
      nextv: (size) => this.#answer(next(size)),
      close: () => this.#answer(undefined),
      [Symbol.asyncIterator]: () => ({
        next: () => {
          const [value] = next(1);
          return this.#answer(
            value === undefined ? { done: true as const, value: undefined } : { done: false as const, value },
          );
        },
      }),
    };
  }

  keys({ limit, reverse, ...range }: KeyRange & { readonly limit: number; readonly reverse?: boolean }): {
    all(): Promise<Uint8Array[]>;
  } {
    const keys = keysIn(this.#records.view, range);
    if (reverse === true) keys.reverse();
    return { all: () => this.#answer(keys.slice(0, limit).map(bytesOf)) };
  }

  clear({ limit, ...range }: KeyRange & { readonly limit?: number }): Promise<void> {
    const keys = keysIn(this.#records.view, range).slice(0, limit);
    if (keys.length === 0) return this.#answer(undefined);
    const pieces: Change[][] = [];
    for (const [at, key] of keys.entries()) {
      if (at % CLEARED_TOGETHER === 0) pieces.push([]);
      pieces.at(-1)?.push({ key, value: undefined });
    }
    const clear = (count: number) => {
      for (const piece of pieces.slice(0, count)) this.#records.apply(piece, false);
    };
    return this.#process.perform({
      takes: 'stepMs',
      writes: true,
      whole: () => {
        clear(pieces.length);
      },
      torn: () => {
        clear(pieces.length >> 1);
        return pieces.length > 1;
      },
    });
  }

  snapshot(): DatabaseView {
    return new SimulatedView(this.#records.view);
  }

  close(): Promise<void> {
    if (this.#process.isAlive()) this.#node.user = undefined;
    return this.#answer(undefined);
  }

  #viewOf(snapshot: DatabaseView | undefined): View {
    return snapshot instanceof SimulatedView ? snapshot.view : this.#records.view;
  }

  #answer<T>(value: T): Promise<T> {
    return this.#process.isAlive() ? Promise.resolve(value) : never();
  }
}

function keysIn(view: View, { gte, lt }: KeyRange): KeyText[] {
  const [from, to] = [textOf(gte), textOf(lt)];
  return [...view.keys()].filter((key) => key >= from && key < to).sort();
}

function copyOf(value: Uint8Array | undefined): Uint8Array {
  return value?.slice() ?? new Uint8Array(0);
}
