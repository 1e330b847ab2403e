/** What the storage code needs of the machine. A port, so that tests can put a simulated one in its place. */
import { randomBytes } from 'node:crypto';
import type { DirectoryId } from '../base/ids.js';
import type { Databases } from './database.js';
import { nodeFiles, type Files } from './files.js';
import { levelDatabases } from './leveldb.js';

/** See the head of the file. */
export interface StoragePorts {
  readonly files: Files;
  readonly databases: Databases;
  /** Calls `run` in `ms` milliseconds, unless the function that it returns was called before. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** An id that no directory ever had. */
  readonly newDirectoryId: () => DirectoryId;
}

/** The real ones. */
export const nodeStorage: StoragePorts = {
  files: nodeFiles,
  databases: levelDatabases,
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => {
      clearTimeout(timer);
    };
  },
  newDirectoryId: () => randomBytes(16).toString('hex') as DirectoryId,
};
