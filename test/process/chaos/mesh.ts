/** The network of a chaos run: a proxy for each way between two nodes, and from each client process to each node. */
import { TcpProxy } from '../../support/tcp-proxy.js';
import type { ProcessNode } from '../cluster.js';

/** Who connects, and to whom. */
export interface Way {
  readonly from: string;
  readonly to: string;
  readonly proxy: TcpProxy;
}

/** See the head of the file. */
export class Mesh {
  readonly ways: readonly Way[];

  private constructor(ways: readonly Way[]) {
    this.ways = ways;
  }

  static async between(nodes: readonly ProcessNode[], clients: readonly string[]): Promise<Mesh> {
    const ways: Way[] = [];
    for (const to of nodes) {
      for (const { name } of nodes)
        if (name !== to.name)
          ways.push({ from: name, to: to.name, proxy: await TcpProxy.start(portOf(to.peerAddress)) });
      for (const name of clients)
        ways.push({ from: name, to: to.name, proxy: await TcpProxy.start(portOf(to.clientAddress)) });
    }
    return new Mesh(ways);
  }

  /** The address at which `from` finds `to`. */
  address(from: string, to: string): string {
    const way = this.ways.find((each) => each.from === from && each.to === to);
    if (way === undefined) throw new Error(`there is no way from ${from} to ${to}`);
    return way.proxy.address;
  }

  /** The proxies from the ones to the others. */
  proxies(from: readonly string[], to: readonly string[]): TcpProxy[] {
    return this.ways.filter((way) => from.includes(way.from) && to.includes(way.to)).map(({ proxy }) => proxy);
  }

  async close(): Promise<void> {
    await Promise.all(this.ways.map(({ proxy }) => proxy.close()));
  }
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1));
}
