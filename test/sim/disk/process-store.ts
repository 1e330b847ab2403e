/** A store as its process has it: silent once the process is gone. */
import type { LogWrite } from '../../../src/raft/types.js';
import type { SnapshotReader, Store, StoreListener } from '../../../src/replica/ports.js';
import type { Cut, Loaded, SnapshotChunk } from '../../../src/replica/types.js';
import { never, type DiskProcess } from './device.js';

/** Whom it tells. */
interface Watcher {
  /** The process hands something over; `rare`: a write that cuts the log, or replaces it. */
  readonly handing?: (rare: boolean) => void;
  /** The process has closed the store, however that ended. */
  readonly closed: () => void;
}

/** See the head of the file. */
export class ProcessStore implements Store {
  readonly #store: Store;
  readonly #process: DiskProcess;
  readonly #watcher: Watcher;

  constructor(store: Store, process: DiskProcess, watcher: Watcher) {
    this.#store = store;
    this.#process = process;
    this.#watcher = watcher;
  }

  get loaded(): Loaded {
    return this.#store.loaded;
  }

  listen(listener: StoreListener): void {
    const process = this.#process;
    this.#store.listen({
      written(seq) {
        if (process.isAlive()) listener.written(seq);
      },
      cutWritten(index) {
        if (process.isAlive()) listener.cutWritten(index);
      },
      staged(request, sequence) {
        if (process.isAlive()) listener.staged(request, sequence);
      },
      failed(error) {
        if (process.isAlive()) listener.failed(error);
      },
    });
  }

  write(write: LogWrite): void {
    if (!this.#process.isAlive()) return;
    this.#watcher.handing?.(write.cutFrom !== undefined || write.install !== undefined);
    this.#store.write(write);
  }

  cut(cut: Cut): void {
    if (!this.#process.isAlive()) return;
    this.#watcher.handing?.(false);
    this.#store.cut(cut);
  }

  stage(chunk: SnapshotChunk): void {
    if (this.#process.isAlive()) this.#store.stage(chunk);
  }

  openSnapshot(): SnapshotReader {
    const process = this.#process;
    const reader = this.#store.openSnapshot();
    return {
      next: (maxBytes) => (process.isAlive() ? reader.next(maxBytes) : never()),
      close: () => (process.isAlive() ? reader.close() : never()),
    };
  }

  async close(): Promise<void> {
    if (!this.#process.isAlive()) return never();
    try {
      await this.#store.close();
    } finally {
      // Nobody hears of it when the process is gone meanwhile.
      if (!this.#process.isAlive()) await never();
      this.#watcher.closed();
    }
  }
}
