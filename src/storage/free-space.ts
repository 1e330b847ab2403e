import { statfs } from 'node:fs/promises';

/** Bytes that this process may still write to the file system of `path` (what is reserved for root does not count). */
export async function diskFree(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
