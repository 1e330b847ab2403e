/**
 * The file operations beside the database, each durable when it says so. A port, so that tests can end the process
 * between any two of them.
 */
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** An open file that is written in place. */
export interface OpenFile {
  /** Writes all of `bytes` at `position`; not synced. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Waits until everything written is on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** What the store needs of a file system. */
export interface Files {
  /** Makes the directory and its parents. */
  makeDirectory(path: string): Promise<void>;
  /** Names in a directory; undefined when there is none. */
  list(path: string): Promise<readonly string[] | undefined>;
  /** A file's bytes; undefined when there is none. */
  read(path: string): Promise<Uint8Array | undefined>;
  /** Writes a whole file and syncs it. */
  writeSynced(path: string, bytes: Uint8Array): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Makes names in a directory durable. */
  syncDirectory(path: string): Promise<void>;
  /** Removes a file or a whole directory; nothing when there is none. */
  remove(path: string): Promise<void>;
  /** Opens an existing file for writing in place. */
  openInPlace(path: string): Promise<OpenFile>;
}

/** The real ones. */
export const nodeFiles: Files = {
  async makeDirectory(path) {
    const first = await mkdir(path, { recursive: true });
    if (first !== undefined) await nodeFiles.syncDirectory(dirname(first));
  },
  list: (path) => readdir(path).catch(undefinedIfMissing),
  read: (path) => readFile(path).catch(undefinedIfMissing),
  async writeSynced(path, bytes) {
    const file = await open(path, 'w');
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
  },
  rename,
  async syncDirectory(path) {
    const directory = await open(path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  },
  remove: (path) => rm(path, { recursive: true, force: true }),
  async openInPlace(path) {
    const file = await open(path, 'r+');
    return {
      async write(bytes, position) {
        const { bytesWritten } = await file.write(bytes, 0, bytes.length, position);
        if (bytesWritten !== bytes.length)
          throw new Error(`${path}: only ${bytesWritten} of ${bytes.length} bytes were written`);
      },
      sync: () => file.datasync(),
      close: () => file.close(),
    };
  },
};

/** Puts `bytes` in place of the file `name` in `directory`: after a crash the old contents are there, or the new. */
export async function replaceFile(files: Files, directory: string, name: string, bytes: Uint8Array): Promise<void> {
  const temporary = join(directory, `${name}.tmp`);
  await files.writeSynced(temporary, bytes);
  await files.rename(temporary, join(directory, name));
  await files.syncDirectory(directory);
}

function undefinedIfMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
  throw error;
}
