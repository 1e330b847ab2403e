/** The store of one member: port `Store` over an open data directory. */
import type { LogWrite } from '../raft/types.js';
import type { SnapshotReader, Store, StoreListener } from '../replica/ports.js';
import type { Cut, Loaded, SnapshotChunk } from '../replica/types.js';
import type { DiskState } from './disk-state.js';
import { WriteQueue } from './queue.js';
import { TableReader } from './snapshot-reader.js';
import { encodeCut } from './write-table.js';

/** See the port for each method. */
export class LevelStore implements Store {
  readonly loaded: Loaded;
  readonly #disk: DiskState;
  readonly #queue: WriteQueue;

  /** `queue` is that of `disk`. */
  constructor(disk: DiskState, queue: WriteQueue, loaded: Loaded) {
    this.loaded = loaded;
    this.#disk = disk;
    this.#queue = queue;
  }

  listen(listener: StoreListener): void {
    this.#queue.listen(listener);
  }

  write(write: LogWrite): void {
    this.#queue.log(write);
  }

  cut(cut: Cut): void {
    this.#queue.cut(encodeCut(cut));
  }

  stage(chunk: SnapshotChunk): void {
    this.#queue.stage(chunk);
  }

  openSnapshot(): SnapshotReader {
    return new TableReader(this.#disk.database);
  }

  async close(): Promise<void> {
    await this.#queue.idle();
    // The mark last: should closing fail, what it says is on the disk all the same.
    await this.#disk.database.close();
    await this.#disk.mark.close();
  }
}
