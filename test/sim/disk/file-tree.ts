/**
 * Files and directories with what is on the medium apart from what processes see. A name is durable only once its
 * directory was synced, contents written in place only once the file was.
 */
import { nextInt } from '../../../src/base/random.js';
import type { Device } from './device.js';

/** A change of a directory that is not synced: name → what it leads to now, undefined for nothing. */
type NameChange = readonly (readonly [name: string, node: Node | undefined])[];

/** What a name may lead to. */
export type Node = FileNode | DirectoryNode;

/** Which node of a fork stands for which of the original: two names may lead to one. */
type Forks = Map<Node, Node>;

/** A file. */
export class FileNode {
  #bytes: Uint8Array;
  #synced: Uint8Array;
  /** Writes in place since the last sync, the oldest first. */
  #since: { readonly bytes: Uint8Array; readonly position: number }[] = [];

  /** With synced contents. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes.slice();
    this.#synced = bytes;
  }

  /** As processes see it; not to be kept over a write. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Takes other contents, synced. */
  replace(bytes: Uint8Array): void {
    this.#bytes = bytes.slice();
    this.#synced = bytes;
    this.#since = [];
  }

  write(bytes: Uint8Array, position: number): void {
    this.#bytes = put(this.#bytes, bytes, position);
    this.#since.push({ bytes, position });
  }

  sync(): void {
    if (this.#since.length > 0) this.replace(this.#bytes.slice());
  }

  /** Power loss: of the writes to each place one is on the medium, or none; at one place another one in part over it. */
  losePower(device: Device): void {
    if (this.#since.length === 0) return;
    let bytes: Uint8Array = this.#synced.slice();
    // As a rule the kernel has written back nothing of the last second.
    const early = device.oneIn(2);
    let torn = false;
    for (const position of new Set(this.#since.map((write) => write.position))) {
      const versions = this.#since.filter((write) => write.position === position).map((write) => write.bytes);
      const kept = early ? 0 : nextInt(device.random, 0, versions.length);
      const version = versions[kept - 1];
      if (version !== undefined) bytes = put(bytes, version, position);
      const next = versions[kept];
      if (next === undefined) continue;
      device.count('mark lost');
      if (torn || !device.oneIn(3)) continue;
      torn = true;
      bytes = put(bytes, next.subarray(0, nextInt(device.random, 1, next.length - 1)), position);
      device.count('mark torn');
    }
    this.replace(bytes);
  }

  /** As processes see it. */
  copy(): FileNode {
    return new FileNode(this.#bytes.slice());
  }

  /** With what is not synced still unsynced. */
  fork(): FileNode {
    const fork = new FileNode(this.#synced);
    fork.#bytes = this.#bytes.slice();
    fork.#since = [...this.#since];
    return fork;
  }
}

/** A directory. */
export class DirectoryNode {
  names = new Map<string, Node>();
  #synced: ReadonlyMap<string, Node> = new Map();
  #since: NameChange[] = [];

  change(change: NameChange): void {
    apply(this.names, change);
    this.#since.push(change);
  }

  sync(): void {
    if (this.#since.length === 0) return;
    this.#synced = new Map(this.names);
    this.#since = [];
  }

  /** Power loss: each change that was not synced is there or not, whatever became of the others. */
  losePower(device: Device): void {
    if (this.#since.length > 0) {
      const names = new Map(this.#synced);
      let lost = false;
      for (const change of this.#since) {
        if (device.oneIn(2)) apply(names, change);
        else lost = true;
      }
      if (lost) device.count('file name lost');
      this.names = names;
      this.sync();
    }
    for (const node of this.names.values()) node.losePower(device);
  }

  /** As processes see it. */
  copy(): DirectoryNode {
    return this.copyTo(new DirectoryNode());
  }

  /** With what is not synced still unsynced: both may lose power, each in its own way. */
  fork(forks: Forks = new Map()): DirectoryNode {
    return this.forkTo(new DirectoryNode(), forks);
  }

  protected forkTo<T extends DirectoryNode>(other: T, forks: Forks): T {
    const forked = (node: Node): Node => {
      const known = forks.get(node) ?? (node instanceof FileNode ? node.fork() : node.fork(forks));
      forks.set(node, known);
      return known;
    };
    other.names = new Map([...this.names].map(([name, node]) => [name, forked(node)]));
    other.#synced = new Map([...this.#synced].map(([name, node]) => [name, forked(node)]));
    other.#since = this.#since.map((change) => change.map(([name, node]) => [name, node && forked(node)] as const));
    return other;
  }

  protected copyTo<T extends DirectoryNode>(other: T): T {
    other.change([...this.names].map(([name, node]) => [name, node.copy()] as const));
    other.sync();
    return other;
  }
}

function apply(names: Map<string, Node>, change: NameChange): void {
  for (const [name, node] of change) {
    if (node === undefined) names.delete(name);
    else names.set(name, node);
  }
}

/** Puts `bytes` into `under`, at `position`, with zeros in a gap; returns `under`, or a longer array in its place. */
function put(under: Uint8Array, bytes: Uint8Array, position: number): Uint8Array {
  const end = position + bytes.length;
  const result = end > under.length ? new Uint8Array(end) : under;
  if (result !== under) result.set(under);
  result.set(bytes, position);
  return result;
}
