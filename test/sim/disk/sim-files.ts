/** The port `Files` over a simulated tree. Every operation takes its time, so a crash may come between any two. */
import type { Files } from '../../../src/storage/files.js';
import type { Device, DiskProcess } from './device.js';
import { nextInt } from '../../../src/base/random.js';
import { DirectoryNode, FileNode, type Node } from './file-tree.js';

/** The part of a path after its last slash, and the directory that it is in. */
function split(path: string): [directory: string, name: string] {
  const slash = path.lastIndexOf('/');
  return [path.slice(0, slash), path.slice(slash + 1)];
}

/** What `path` leads to below `root`. */
export function find(root: DirectoryNode, path: string): Node | undefined {
  let node: Node | undefined = root;
  for (const name of path.split('/')) {
    if (name === '') continue;
    if (!(node instanceof DirectoryNode)) return undefined;
    node = node.names.get(name);
  }
  return node;
}

/** The directory `path`. Throws ENOENT. */
export function directoryAt(root: DirectoryNode, path: string): DirectoryNode {
  const node = find(root, path);
  if (node instanceof DirectoryNode) return node;
  throw missing(path);
}

/** Files of the tree below `root`, for one process. */
export function simulatedFiles(root: DirectoryNode, device: Device, process: DiskProcess): Files {
  const read = <T>(whole: () => T) => process.perform({ takes: 'stepMs', writes: false, whole });
  const step = (whole: () => void, torn?: () => boolean) =>
    process.perform({ takes: 'stepMs', writes: true, whole, ...(torn && { torn }) });
  const sync = (whole: () => void, torn?: () => boolean) =>
    process.perform({ takes: 'syncMs', writes: true, whole, ...(torn && { torn }) });

  return {
    makeDirectory: (path) =>
      sync(() => {
        let directory = root;
        for (const name of path.split('/')) {
          if (name === '') continue;
          let next = directory.names.get(name);
          if (next instanceof FileNode) throw Object.assign(new Error(`ENOTDIR: ${path}`), { code: 'ENOTDIR' });
          if (next === undefined) {
            next = new DirectoryNode();
            directory.change([[name, next]]);
            directory.sync();
          }
          directory = next;
        }
      }),
    list: (path) =>
      read(() => {
        const node = find(root, path);
        return node instanceof DirectoryNode ? [...node.names.keys()] : undefined;
      }),
    read: (path) =>
      read(() => {
        const node = find(root, path);
        return node instanceof FileNode ? node.bytes.slice() : undefined;
      }),
    writeSynced(path, bytes) {
      const [above, name] = split(path);
      const write = (contents: Uint8Array) => {
        const directory = directoryAt(root, above);
        const old = directory.names.get(name);
        if (old instanceof FileNode) old.replace(contents);
        else directory.change([[name, new FileNode(contents)]]);
      };
      const copy = bytes.slice();
      return sync(
        () => {
          write(copy);
        },
        () => {
          write(copy.slice(0, nextInt(device.random, 0, copy.length - 1)));
          return true;
        },
      );
    },
    rename: (from, to) =>
      step(() => {
        const [above, name] = split(from);
        const [, other] = split(to);
        const directory = directoryAt(root, above);
        const node = directory.names.get(name);
        if (node === undefined) throw missing(from);
        directory.change([
          [name, undefined],
          [other, node],
        ]);
      }),
    syncDirectory: (path) =>
      sync(() => {
        directoryAt(root, path).sync();
      }),
    remove(path) {
      const [above, name] = split(path);
      const whole = () => {
        const directory = directoryAt(root, above);
        if (directory.names.has(name)) directory.change([[name, undefined]]);
      };
      // A directory is emptied name by name.
      const torn = () => {
        const node = find(root, path);
        if (!(node instanceof DirectoryNode)) return false;
        for (const inside of [...node.names.keys()]) if (device.oneIn(2)) node.change([[inside, undefined]]);
        return true;
      };
      return step(whole, torn);
    },
    openInPlace: (path) =>
      read(() => {
        const file = find(root, path);
        if (!(file instanceof FileNode)) throw missing(path);
        return {
          write(bytes, position) {
            const copy = bytes.slice();
            const work = {
              takes: 'stepMs' as const,
              writes: true,
              whole() {
                file.write(copy, position);
              },
            };
            // It reaches the kernel's memory at once, as a rule.
            return device.oneIn(4) ? process.perform(work) : process.performNow(work);
          },
          sync: () =>
            sync(() => {
              file.sync();
            }),
          close: () => step(() => undefined),
        };
      }),
  };
}

function missing(path: string): Error {
  return Object.assign(new Error(`ENOENT: no such file or directory: ${path}`), { code: 'ENOENT' });
}
