/**
 * The memory twin of the store: a disk that outlives crashes, writes that end when the test says so, and faults. One
 * suite holds it and the real one to the same behaviour.
 */
import type { LogWrite } from '../raft/types.js';
import type { SnapshotReader, Store, StoreListener } from '../replica/ports.js';
import type { Cut, Genesis, Loaded, SnapshotChunk } from '../replica/types.js';
import {
  applyBatch,
  copyImage,
  loadImage,
  newImage,
  recordText,
  replayBatch,
  sortedRecords,
  type MemoryBatch,
  type MemoryImage,
  type WrittenBatch,
} from './memory-image.js';
import { digestText } from '../base/digest.js';

/** How a write is made durable before it is reported. */
export interface MemoryStoreOptions {
  /**
   * False, or false for a kind of write: it is reported without a sync, and a crash that loses what is not synced loses
   * it, though later synced writes stay. Only for checks that must notice. Default: every write is synced.
   */
  readonly sync?: boolean | ((kind: MemoryBatch['type']) => boolean);
  /** Gets the function that completes the write under way; called once a write. Default: at once, in a microtask. */
  readonly schedule?: (complete: () => void) => void;
}

/** What a crash leaves of the disk. */
export interface CrashOptions {
  /** `unsynced`: power loss. `none`: a killed process; what was written stays without a sync. */
  readonly lose: 'unsynced' | 'none';
  /** Whether the write under way reached the disk, whole, unreported. Default: it did not. */
  readonly underWay?: 'kept' | 'lost';
}

/** A disk. Outlives its stores; one at a time is open. */
export class MemoryDisk {
  /** Everything written. */
  image: MemoryImage;
  /** Without what follows the first unsynced batch; undefined while all is synced. */
  #synced: MemoryImage | undefined;
  #since: { readonly written: WrittenBatch; readonly synced: boolean }[] = [];
  /** The store that may write. */
  owner: MemoryStore | undefined;

  constructor(genesis: Genesis) {
    this.image = newImage(genesis);
  }

  /** Carries a batch out. */
  write(batch: MemoryBatch, synced: boolean): void {
    if (!synced) this.#synced ??= copyImage(this.image);
    applyBatch(this.image, batch);
    const { count, sum } = this.image.table;
    if (this.#synced !== undefined) this.#since.push({ written: { batch, count, sum }, synced });
  }

  /** What the kernel does in the background now and then: everything written is on the disk. */
  flush(): void {
    this.#synced = undefined;
    this.#since = [];
  }

  /** Power loss: each unsynced batch is gone, later synced ones are there. */
  loseUnsynced(): void {
    if (this.#synced === undefined) return;
    const image = this.#synced;
    for (const { written, synced } of this.#since) if (synced) replayBatch(image, written);
    this.image = image;
    this.flush();
  }
}

/** A disk on which a member has just accepted `genesis`. */
export function createMemoryDisk(genesis: Genesis): MemoryDisk {
  return new MemoryDisk(genesis);
}

/** Opens the disk; a store that had it open says nothing more. Throws when a check of a start refuses. */
export function openMemoryStore(disk: MemoryDisk, options: MemoryStoreOptions = {}): MemoryStore {
  const store = new MemoryStore(disk, options);
  disk.owner = store;
  return store;
}

/** See the ports. */
export class MemoryStore implements Store {
  readonly loaded: Loaded;
  readonly #disk: MemoryDisk;
  readonly #syncs: (kind: MemoryBatch['type']) => boolean;
  readonly #schedule: (complete: () => void) => void;
  #queue: MemoryBatch[] = [];
  #listener: StoreListener | undefined;
  #fault: 'EIO' | 'ENOSPC' | undefined;
  #stalled = false;
  #completeLater: (() => void) | undefined;
  #whenIdle: (() => void)[] = [];

  constructor(disk: MemoryDisk, { sync = true, schedule = queueMicrotask }: MemoryStoreOptions) {
    this.loaded = loadImage(disk.image);
    this.#disk = disk;
    this.#syncs = typeof sync === 'function' ? sync : () => sync;
    this.#schedule = schedule;
  }

  listen(listener: StoreListener): void {
    this.#listener = listener;
  }

  write(write: LogWrite): void {
    this.#submit({ type: 'log', write });
  }

  cut(cut: Cut): void {
    this.#submit({ type: 'cut', cut });
  }

  stage(chunk: SnapshotChunk): void {
    this.#submit({ type: 'stage', chunk });
  }

  openSnapshot(): SnapshotReader {
    const { table } = this.#disk.image;
    const { snapshot, summary, count, sum } = table;
    const records = [...sortedRecords(table)];
    let done = false;
    return {
      next(maxBytes) {
        if (done) return Promise.resolve(undefined);
        const taken = [];
        for (let bytes = 0, next = records[0]; next !== undefined; next = records[0]) {
          bytes += recordText(next).length;
          if (taken.length > 0 && bytes > maxBytes) break;
          taken.push(next);
          records.shift();
        }
        done = records.length === 0;
        const total = done ? { count, digest: digestText(sum) } : undefined;
        return Promise.resolve({ meta: snapshot, summary, records: taken, total });
      },
      close() {
        done = true;
        return Promise.resolve();
      },
    };
  }

  async close(): Promise<void> {
    if (this.#queue.length > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    this.#disk.flush();
    this.#release();
  }

  /** The write under way, or the next one, fails; nothing is reported after that. */
  fail(code: 'EIO' | 'ENOSPC'): void {
    this.#fault = code;
  }

  /** No write ends until {@link resume}. */
  stall(): void {
    this.#stalled = true;
  }

  /** Ends a stall. */
  resume(): void {
    this.#stalled = false;
    const complete = this.#completeLater;
    this.#completeLater = undefined;
    complete?.();
  }

  /** The process dies: this store says nothing more, and the disk keeps what the options say. */
  crash({ lose, underWay = 'lost' }: CrashOptions = { lose: 'unsynced' }): void {
    if (this.#disk.owner !== this) return;
    const [batch] = this.#queue;
    if (batch !== undefined && underWay === 'kept') this.#disk.write(batch, true);
    if (lose === 'unsynced') this.#disk.loseUnsynced();
    this.#release();
  }

  #submit(batch: MemoryBatch): void {
    if (this.#disk.owner !== this) return;
    this.#queue.push(batch);
    if (this.#queue.length === 1) this.#begin();
  }

  #begin(): void {
    this.#schedule(() => {
      this.#complete();
    });
  }

  #complete(): void {
    const [batch] = this.#queue;
    if (this.#disk.owner !== this || batch === undefined) return;
    if (this.#stalled) {
      this.#completeLater = () => {
        this.#complete();
      };
      return;
    }
    const error = this.#perform(batch);
    if (error !== undefined) {
      this.#release();
      this.#listener?.failed(error);
      return;
    }
    this.#queue.shift();
    if (this.#queue.length > 0) this.#begin();
    this.#report(batch);
    if (this.#queue.length === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  #perform(batch: MemoryBatch): Error | undefined {
    if (this.#fault !== undefined)
      return Object.assign(new Error(`${this.#fault}: the write failed`), { code: this.#fault });
    try {
      this.#disk.write(batch, this.#syncs(batch.type));
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #report(batch: MemoryBatch): void {
    switch (batch.type) {
      case 'log':
        this.#listener?.written(batch.write.seq);
        return;
      case 'cut':
        // An older cut than the table in force was dropped.
        if (batch.cut.meta.index === this.#disk.image.table.snapshot.index)
          this.#listener?.cutWritten(batch.cut.meta.index);
        return;
      case 'stage':
        this.#listener?.staged(batch.chunk.request, batch.chunk.sequence);
        return;
    }
  }

  #release(): void {
    if (this.#disk.owner === this) this.#disk.owner = undefined;
    this.#queue = [];
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}
