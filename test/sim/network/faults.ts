/** Shapes of partitions and other faults of a network, made of its directed cuts. */
import type { NodeId } from '../../../src/base/ids.js';
import { nextInt } from '../../../src/base/random.js';
import type { Surroundings } from '../ports.js';
import type { SimNetwork } from './network.js';

/** See the head of the file. Each lasts until {@link SimNetwork.heal}, or as long as it says, and adds to those before. */
export class NetworkFaults {
  readonly #surroundings: Surroundings;
  readonly #network: SimNetwork;
  readonly #nodes: readonly NodeId[];

  /** `nodes`: all members. */
  constructor(surroundings: Surroundings, network: SimNetwork, nodes: readonly NodeId[]) {
    this.#surroundings = surroundings;
    this.#network = network;
    this.#nodes = nodes;
  }

  /** Nothing gets from one to the other; the way back stays open. */
  oneWay(from: NodeId, to: NodeId): void {
    this.#count('link cut one way');
    this.#network.cut(from, to);
  }

  /** One random link, one way. */
  anyOneWay(): void {
    const [from, to] = this.#shuffled();
    if (from !== undefined && to !== undefined) this.oneWay(from, to);
  }

  /** Two groups that do not hear each other: a random split, each group at least one node. */
  halves(): void {
    this.#count('partition halves');
    const nodes = this.#shuffled();
    const middle = nextInt(this.#surroundings.random, 1, nodes.length - 1);
    this.#part(nodes.slice(0, middle), nodes.slice(middle));
  }

  /** One node that nobody hears and that hears nobody. */
  isolate(node: NodeId): void {
    this.#count('isolated node');
    this.#part(
      [node],
      this.#nodes.filter((each) => each !== node),
    );
  }

  /** As {@link isolate}, of the node that leads. */
  isolateLeader(leader: NodeId): void {
    this.#count('isolated leader');
    this.isolate(leader);
  }

  /** Two groups that do not hear each other, and one node that hears both. */
  bridge(): void {
    this.#count('partition bridge');
    const [, ...others] = this.#shuffled();
    const middle = Math.ceil(others.length / 2);
    this.#part(others.slice(0, middle), others.slice(middle));
  }

  /** One node hears all; the others hear that one only. */
  star(middle: NodeId): void {
    this.#count('partition star');
    for (const node of this.#nodes)
      this.#part(
        [node],
        this.#nodes.filter((other) => other > node && other !== middle && node !== middle),
      );
  }

  /** Each node hears its two neighbours only; of three nodes, each hears the one before it only. */
  ring(): void {
    this.#count('partition ring');
    const nodes = this.#shuffled();
    const count = nodes.length;
    nodes.forEach((from, at) => {
      nodes.forEach((to, other) => {
        const ahead = (other - at + count) % count;
        const joined = ahead === 1 || (ahead === count - 1 && count > 3);
        if (from !== to && !joined) this.#network.cut(from, to);
      });
    });
  }

  /** Each direction of each link is cut with this chance, per mille. */
  randomGraph(chance: number): void {
    this.#count('partition random graph');
    for (const from of this.#nodes)
      for (const to of this.#nodes)
        if (from !== to && nextInt(this.#surroundings.random, 0, 999) < chance) this.#network.cut(from, to);
  }

  /** The links of one node are cut one after another and mended one after another, each at a random time within `ms`. */
  swizzle(node: NodeId, ms: number): void {
    this.#count('swizzle');
    const { scheduler, random } = this.#surroundings;
    const half = Math.floor(ms / 2);
    for (const other of this.#nodes) {
      if (other === node) continue;
      scheduler.after(nextInt(random, 0, half), () => {
        this.#part([node], [other]);
      });
      scheduler.after(nextInt(random, half + 1, ms), () => {
        this.#network.mend(node, other);
        this.#network.mend(other, node);
      });
    }
  }

  /** One random link delivers nothing for so long, one way, and then all of it. */
  clog(ms: number): void {
    const [from, to] = this.#shuffled();
    if (from !== undefined && to !== undefined) this.#network.clog(from, to, ms);
  }

  #part(left: readonly NodeId[], right: readonly NodeId[]): void {
    for (const one of left)
      for (const other of right) {
        this.#network.cut(one, other);
        this.#network.cut(other, one);
      }
  }

  #shuffled(): NodeId[] {
    const nodes = [...this.#nodes];
    for (let at = nodes.length - 1; at > 0; at--) {
      const other = nextInt(this.#surroundings.random, 0, at);
      const one = nodes[at];
      const two = nodes[other];
      if (one === undefined || two === undefined) continue;
      nodes[at] = two;
      nodes[other] = one;
    }
    return nodes;
  }

  #count(name: string): void {
    this.#surroundings.coverage.count(name);
  }
}
