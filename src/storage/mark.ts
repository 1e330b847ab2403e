/** The open MARK file: written after every synced write, synced once a second, lowered before a write that cuts. */
import { join } from 'node:path';
import { decodeMarkFile, encodeMarkSlot, MARK_SLOT_OFFSETS, type Mark, type NumberedMark } from '../wire/disk-mark.js';
import { MARK_FILE } from './directory.js';
import { replaceFile, type Files, type OpenFile } from './files.js';
import type { StoragePorts } from './ports.js';

/** A killed process leaves the mark exact; only power loss leaves it as old as this. */
export const MARK_SYNC_MS = 1_000;

/** Makes the file of a new member, durable. */
export async function createMark(files: Files, directory: string, mark: Mark): Promise<void> {
  await replaceFile(files, directory, MARK_FILE, encodeMarkSlot({ ...mark, counter: 0 }));
}

/** The mark that holds, or undefined without the file. Throws `CorruptBytes`. */
export async function readMark(files: Files, directory: string): Promise<NumberedMark | undefined> {
  const bytes = await files.read(join(directory, MARK_FILE));
  return bytes === undefined ? undefined : decodeMarkFile(bytes);
}

/** Writes marks. One call at a time, but for the sync that a timer starts. */
export class MarkFile {
  readonly #file: OpenFile;
  readonly #after: StoragePorts['after'];
  readonly #failed: (error: unknown) => void;
  #counter: number;
  #cancelSync: (() => void) | undefined;
  #syncing: Promise<void> | undefined;

  private constructor(file: OpenFile, after: StoragePorts['after'], counter: number, failed: (error: unknown) => void) {
    this.#file = file;
    this.#after = after;
    this.#counter = counter;
    this.#failed = failed;
  }

  /**
   * `held` is the mark that holds. It is written into the other slot and synced first: a power loss may have torn that
   * one, and the next may tear the one that holds. `failed` hears of a sync that a timer started.
   */
  static async open(
    { files, after }: Pick<StoragePorts, 'files' | 'after'>,
    directory: string,
    held: NumberedMark,
    failed: (error: unknown) => void,
  ): Promise<MarkFile> {
    const mark = new MarkFile(await files.openInPlace(join(directory, MARK_FILE)), after, held.counter, failed);
    try {
      await mark.#put(held);
      await mark.#file.sync();
    } catch (error) {
      await mark.#file.close();
      throw error;
    }
    return mark;
  }

  /** Hands the mark to the operating system. */
  async write(mark: Mark): Promise<void> {
    await this.#put(mark);
    this.#cancelSync ??= this.#after(MARK_SYNC_MS, () => {
      this.#cancelSync = undefined;
      this.#syncing = this.#file.sync().catch(this.#failed);
    });
  }

  /**
   * Makes a lower mark durable: it must be on the disk before the write that cuts the log is issued (S2.1). In both
   * slots: a power loss may tear the next write to one of them before the other one's is on the disk.
   */
  async lower(mark: Mark): Promise<void> {
    await this.#put(mark);
    await this.#put(mark);
    await this.#file.sync();
  }

  /** Syncs and closes. */
  async close(): Promise<void> {
    this.#cancelSync?.();
    await this.#syncing;
    try {
      await this.#file.sync();
    } finally {
      await this.#file.close();
    }
  }

  async #put(mark: Mark): Promise<void> {
    this.#counter++;
    await this.#file.write(
      encodeMarkSlot({ ...mark, counter: this.#counter }),
      MARK_SLOT_OFFSETS[this.#counter % 2 === 0 ? 0 : 1],
    );
  }
}
