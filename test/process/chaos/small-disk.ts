/** A tmpfs for one node's data, with room to spare until it is taken away. Needs root and `mount`. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, statfsSync } from 'node:fs';

const ROOM = '256m';
/** What is left when it is filled: a few blocks of the log. */
const LEFT_BYTES = 64 * 1024;

/** See the head of the file. */
export class SmallDisk {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Mounts it; a text says why that is not possible. */
  static mount(path: string): SmallDisk | string {
    if (process.getuid?.() !== 0) return 'not root';
    mkdirSync(path);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${ROOM}`, 'tmpfs', path], { stdio: 'pipe' });
    } catch (error) {
      return `no mount: ${String(error)}`;
    }
    return new SmallDisk(path);
  }

  /** Takes the room away. */
  fill(): void {
    const { bsize, blocks, bfree } = statfsSync(this.path);
    this.#resize(`${(blocks - bfree) * bsize + LEFT_BYTES}`);
  }

  /** Gives it back. */
  empty(): void {
    this.#resize(ROOM);
  }

  /** Its files are gone as soon as nobody has them open. */
  unmount(): void {
    execFileSync('umount', ['--lazy', this.path], { stdio: 'pipe' });
  }

  #resize(size: string): void {
    execFileSync('mount', ['-o', `remount,size=${size}`, this.path], { stdio: 'pipe' });
  }
}
