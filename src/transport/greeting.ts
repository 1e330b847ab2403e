/** The rules for a peer's hello: who may speak with this node at all (design 5, S3). Whom it counts, the core decides. */
import type { NodeId } from '../base/ids.js';
import type { Hello } from '../replica/types.js';

/**
 * Why nodes that introduced themselves so must not speak with each other, for people, with the next step; undefined
 * when they may. `expected` is the member that was dialled, if this node dialled. Directory ids are not judged:
 * a member answers every node of its incarnation, listed or not, or a live majority could be left without a leader.
 */
export function helloFault(self: Hello, other: Hello, expected?: NodeId): string | undefined {
  if (other.cluster !== self.cluster) {
    return `cluster name: node ${other.node} has "${other.cluster}", node ${self.node} has "${self.cluster}"; correct the peer addresses, or give both nodes the same cluster name`;
  }
  if (other.incarnation === '') {
    return `incarnation: node ${other.node} has none, node ${self.node} has ${self.incarnation}; node ${other.node} must form or be added before it opens streams`;
  }
  if (other.incarnation !== self.incarnation) {
    return `incarnation: node ${other.node} has ${other.incarnation}, node ${self.node} has ${self.incarnation}; the two were formed apart and never join: see that each runs with its own data directory and that the peer addresses are those of one cluster`;
  }
  if (other.node === self.node) {
    return `node id: both ends are called ${self.node}; correct the peer addresses, or give each node an id of its own`;
  }
  if (expected !== undefined && other.node !== expected) {
    return `node id: the address of node ${expected} was answered by node ${other.node}; correct the peer addresses`;
  }
  return undefined;
}

/** Why the second of two live processes of one node is refused (S7). */
export function secondBootFault(hello: Hello, live: Hello): string {
  const what =
    hello.directory === live.directory
      ? `data directory ${hello.directory} of node ${hello.node}`
      : `node id ${hello.node}`;
  return `two processes run with the ${what}: boot ${live.boot} is alive, boot ${hello.boot} is refused; stop one of them, and never run a copy of a data directory`;
}
