/** Data directories held in memory, to be written out again with one thing wrong. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Relative path → bytes. */
export type Image = ReadonlyMap<string, Buffer>;

/** All files below `path`. */
export function readImage(path: string, below = ''): Map<string, Buffer> {
  const image = new Map<string, Buffer>();
  for (const name of readdirSync(join(path, below))) {
    const relative = join(below, name);
    if (statSync(join(path, relative)).isDirectory())
      for (const [key, bytes] of readImage(path, relative)) image.set(key, bytes);
    else image.set(relative, readFileSync(join(path, relative)));
  }
  return image;
}

/** A directory with the files of `image`; `change` gives some of them other bytes, or (undefined) leaves them out. */
export function writeImage(image: Image, change: ReadonlyMap<string, Buffer | undefined> = new Map()): string {
  const path = mkdtempSync(join(root(), 'case-'));
  for (const [name, bytes] of image) {
    const file = join(path, name);
    mkdirSync(dirname(file), { recursive: true });
    const written = change.has(name) ? change.get(name) : bytes;
    if (written !== undefined) writeFileSync(file, written);
  }
  return path;
}

let made: string | undefined;

/** In memory where the system has such a file system: thousands of starts sync thousands of files. */
function root(): string {
  made ??= mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'fencepost-images-'));
  return made;
}

/** Removes what {@link writeImage} made. */
export function removeImages(): void {
  if (made !== undefined) rmSync(made, { recursive: true, force: true });
  made = undefined;
}
