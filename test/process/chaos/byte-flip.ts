/** Damage to the files of a stopped node. */
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import { pick } from './fault.js';

/** What was done, and how to undo it. */
export interface Flipped {
  readonly what: string;
  /** Puts all files back as they were. */
  restore(): Promise<void>;
  /** Deletes the copy. */
  forget(): Promise<void>;
}

/** Flips up to three bits in one file of the directory; the node must not run. */
export async function flipBytes(directory: string, random: Random): Promise<Flipped> {
  const copy = await mkdtemp(join(tmpdir(), 'fencepost-intact-'));
  await cp(directory, copy, { recursive: true });
  const names = (await readdir(directory, { recursive: true })).sort();
  const files: string[] = [];
  for (const name of names) {
    const { size } = await stat(join(directory, name));
    if (size > 0 && (await stat(join(directory, name))).isFile()) files.push(name);
  }
  const name = pick(random, files);
  const path = join(directory, name);
  const bytes = await readFile(path);
  const places = Array.from({ length: nextInt(random, 1, 3) }, () => nextInt(random, 0, bytes.byteLength - 1));
  for (const place of places) bytes[place] = (bytes[place] ?? 0) ^ (1 << nextInt(random, 0, 7));
  await writeFile(path, bytes);
  return {
    what: `${name} at ${places.join(', ')} of ${bytes.byteLength}`,
    restore: async () => {
      // The directory itself may be a mount.
      for (const each of await readdir(directory)) await rm(join(directory, each), { recursive: true });
      await cp(copy, directory, { recursive: true });
    },
    forget: () => rm(copy, { recursive: true, force: true }),
  };
}
