/** Data directories that tests start, stop and kill. */
import { afterEach } from 'vitest';
import type { Store } from '../../src/replica/ports.js';
import type { Genesis, Loaded } from '../../src/replica/types.js';
import { Reports } from './fixtures.js';

/** One data directory, or its twin. */
export interface Directory {
  readonly genesis: Genesis;
  open(): Promise<Store>;
  /** The process is killed: what was handed to the kernel is there, nothing more is reported. */
  kill(store: Store): Promise<void>;
  /** The next write of `store`, or the one under way, fails. */
  breakNextWrite(store: Store): void;
}

/** A store that is open, and what it reports. */
export interface Running {
  readonly store: Store;
  readonly reports: Reports;
}

/** The stores of the tests of one suite; what a test leaves open is closed behind it. */
export class Runs {
  readonly #open: Store[] = [];

  constructor() {
    afterEach(async () => {
      for (const store of this.#open.splice(0)) await store.close().catch(() => undefined);
    });
  }

  async start(directory: Directory): Promise<Running> {
    const store = await directory.open();
    this.#open.push(store);
    const reports = new Reports();
    store.listen(reports);
    return { store, reports };
  }

  async stop(store: Store): Promise<void> {
    this.#forget(store);
    await store.close();
  }

  async kill(directory: Directory, store: Store): Promise<void> {
    this.#forget(store);
    await directory.kill(store);
  }

  /** What is found after a stop. */
  async reopened(directory: Directory, store: Store): Promise<Loaded> {
    await this.stop(store);
    return await this.#found(directory);
  }

  /** What is found after a kill. */
  async killed(directory: Directory, store: Store): Promise<Loaded> {
    await this.kill(directory, store);
    return await this.#found(directory);
  }

  async #found(directory: Directory): Promise<Loaded> {
    const { store } = await this.start(directory);
    await this.stop(store);
    return store.loaded;
  }

  #forget(store: Store): void {
    this.#open.splice(this.#open.indexOf(store), 1);
  }
}
