/** What a node stands on: disk, network and clocks of this machine, or what a test server has in their place. */
import { performance } from 'node:perf_hooks';
import type { Replica } from '../replica/replica.js';
import type { Event, Time } from '../replica/types.js';
import { storeGenesis } from '../storage/begin.js';
import { inspectDirectory, prepareDirectory } from '../storage/directory.js';
import { diskFree } from '../storage/free-space.js';
import { openStore } from '../storage/open.js';
import { createTransport } from '../transport/transport.js';

/** See the head of the file. */
export interface NodePorts {
  /** Reads both clocks. */
  readonly time: () => Time;
  readonly createTransport: typeof createTransport;
  readonly inspectDirectory: typeof inspectDirectory;
  readonly prepareDirectory: typeof prepareDirectory;
  readonly storeGenesis: typeof storeGenesis;
  readonly openStore: typeof openStore;
  readonly diskFree: typeof diskFree;
  /** Told once of the replica, when it begins to run, and of the way to it. */
  readonly runs: (replica: Replica, dispatch: (event: Event) => void) => void;
}

/** Those of `fencepost start`. */
export const systemPorts: NodePorts = {
  time: () => ({ nowMs: performance.now(), unixMs: Date.now() }),
  createTransport,
  inspectDirectory,
  prepareDirectory,
  storeGenesis,
  openStore,
  diskFree,
  runs: () => undefined,
};
