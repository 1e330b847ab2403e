/** Data directories held in memory, to be written out again with one thing wrong. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Relative path → bytes. */
export type Image = ReadonlyMap<string, Buffer>;

/** All files below `path`. */
export function readImage(path: string): Image {
  return new Map(namesBelow(path, '').map((name) => [name, readFileSync(join(path, name))]));
}

/** Files with other bytes than in the image, or (undefined) left out. */
export type Change = ReadonlyMap<string, Buffer | undefined>;

/** A directory with the files of `image`, which can be made again and again with one thing wrong. */
export class ImageDirectory {
  readonly path = mkdtempSync(join(root(), 'case-'));
  readonly #image: Image;
  readonly #names: string;

  constructor(image: Image) {
    this.#image = image;
    this.#names = [...image.keys()].sort().join();
    this.#writeAll();
  }

  /** Makes the change. */
  apply(change: Change): void {
    for (const [name, bytes] of change) {
      if (bytes === undefined) rmSync(join(this.path, name));
      else writeFileSync(join(this.path, name), bytes);
    }
  }

  /** Whether LevelDB has opened it since: that always makes new files. */
  touched(change: Change): boolean {
    const removed = [...change.entries()].filter(([, bytes]) => bytes === undefined).map(([name]) => name);
    return [...namesBelow(this.path, ''), ...removed].sort().join() !== this.#names;
  }

  /** Undoes the change, and what was done to the directory after it. */
  restore(change: Change): void {
    if (this.touched(change)) {
      for (const name of readdirSync(this.path)) rmSync(join(this.path, name), { recursive: true });
      this.#writeAll();
    } else
      for (const name of change.keys()) writeFileSync(join(this.path, name), this.#image.get(name) ?? Buffer.alloc(0));
  }

  #writeAll(): void {
    for (const [name, bytes] of this.#image) {
      mkdirSync(dirname(join(this.path, name)), { recursive: true });
      writeFileSync(join(this.path, name), bytes);
    }
  }
}

function namesBelow(path: string, below: string): string[] {
  return readdirSync(join(path, below), { withFileTypes: true }).flatMap((item) =>
    item.isDirectory() ? namesBelow(path, join(below, item.name)) : [join(below, item.name)],
  );
}

let made: string | undefined;

/** In memory where the system has such a file system: thousands of starts sync thousands of files. */
function root(): string {
  made ??= mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'fencepost-images-'));
  return made;
}

/** Removes all directories made here. */
export function removeImages(): void {
  if (made !== undefined) rmSync(made, { recursive: true, force: true });
  made = undefined;
}
