/** Members on loopback, with what they reported. */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { BootId, DirectoryId, Incarnation, NodeId } from '../../src/base/ids.js';
import type { Heartbeat, Member, Message } from '../../src/raft/types.js';
import type { SnapshotReader } from '../../src/replica/ports.js';
import type { Event, FormRequest, FormResponse, Hello, MemberAddress } from '../../src/replica/types.js';
import type { Transport } from '../../src/transport/transport.js';
import { createTransport } from '../../src/transport/transport.js';

export const INCARNATION = 'a'.repeat(32) as Incarnation;

/** 32 hex digits made of a number. */
export const hex = (n: number): string => n.toString(16).padStart(32, '0');

/** The member called `name`; `directory` tells several of one name apart. */
export const member = (name: string, directory = 1): Member => ({
  node: name as NodeId,
  directory: hex(directory) as DirectoryId,
});

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Waits until `condition` gives something other than undefined and false; fails after 20 s naming `what`. */
export async function until<T>(what: string, condition: () => T | undefined | false): Promise<T> {
  const end = performance.now() + 20_000;
  for (;;) {
    const value = condition();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Of<T extends Event['type']> = Extract<Event, { readonly type: T }>;

export interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, string | number>>;
}

export interface TestNodeOptions {
  readonly cluster?: string;
  readonly incarnation?: Incarnation;
  readonly directory?: number;
  readonly boot?: number;
  readonly onForm?: (request: FormRequest) => Promise<FormResponse>;
  readonly openSnapshot?: () => SnapshotReader;
  readonly onEvent?: (event: Event) => void;
}

let boots = 100;

/** One transport and everything that it said. */
export class TestNode {
  readonly self: Member;
  /** Where it listens. */
  readonly bind: string;
  readonly hello: Hello;
  readonly transport: Transport;
  readonly events: Event[] = [];
  readonly lines: Line[] = [];

  constructor(name: string, bind: string, peers: readonly MemberAddress[], options: TestNodeOptions = {}) {
    this.self = member(name, options.directory);
    this.bind = bind;
    boots += 1;
    this.hello = {
      cluster: options.cluster ?? 'test',
      incarnation: options.incarnation ?? INCARNATION,
      node: this.self.node,
      directory: this.self.directory,
      boot: hex(options.boot ?? boots) as BootId,
      format: 1,
    };
    this.transport = createTransport({
      node: this.self.node,
      peers,
      bind,
      listener: (event) => {
        this.events.push(event);
        options.onEvent?.(event);
      },
      onForm: options.onForm ?? (() => Promise.reject(new Error('does not form'))),
      openSnapshot:
        options.openSnapshot ??
        (() => {
          throw new Error('has no snapshot');
        }),
      log: (level, message, fields) => this.lines.push({ level, message, fields }),
    });
  }

  async start(): Promise<this> {
    await this.transport.listen();
    this.transport.activate(this.hello);
    return this;
  }

  all<T extends Event['type']>(type: T): Of<T>[] {
    return this.events.filter((event): event is Of<T> => event.type === type);
  }

  get messages(): Message[] {
    return this.all('message').map(({ message }) => message);
  }

  heartbeat(to: Member, round: number): Heartbeat {
    return { type: 'heartbeat', from: this.self, to, term: 1, commit: 0, round };
  }

  send(message: Message): void {
    this.transport.perform({ type: 'send', message });
  }

  /** Sends heartbeats until one arrives. */
  async reach(other: TestNode): Promise<void> {
    let round = 0;
    await until(`${this.self.node} reaches ${other.self.node}`, () => {
      round += 1;
      this.send(this.heartbeat(other.self, 1_000_000 + round));
      return other.messages.some(({ type, from }) => type === 'heartbeat' && from.node === this.self.node);
    });
  }
}

/** Addresses for these names, on free ports. */
export async function addresses(...names: string[]): Promise<MemberAddress[]> {
  return Promise.all(
    names.map(async (name) => ({ node: name as NodeId, peerAddress: `127.0.0.1:${await freePort()}` })),
  );
}

/** `list` with the address of one member replaced. */
export const redirect = (list: readonly MemberAddress[], name: string, peerAddress: string): MemberAddress[] =>
  list.map((each) => (each.node === name ? { ...each, peerAddress } : each));

export const addressOf = (list: readonly MemberAddress[], name: string): string => {
  const found = list.find(({ node }) => node === name);
  if (found === undefined) throw new Error(`no address for ${name}`);
  return found.peerAddress;
};

/** Members that know each other, listening and dialling; closed by {@link closeAll}. */
export async function cluster(
  names: readonly string[],
  options: Readonly<Record<string, TestNodeOptions>> = {},
): Promise<TestNode[]> {
  const list = await addresses(...names);
  const nodes = names.map((name) => track(new TestNode(name, addressOf(list, name), list, options[name])));
  for (const { transport } of nodes) await transport.listen();
  for (const { transport, hello } of nodes) transport.activate(hello);
  return nodes;
}

const tracked = new Set<{ close(): Promise<void> }>();

/** Ends `each` after the test. */
export function track(node: TestNode): TestNode {
  tracked.add(node.transport);
  return node;
}

/** Ends whatever has `close` after the test. */
export function closeLater<T extends { close(): Promise<void> }>(each: T): T {
  tracked.add(each);
  return each;
}

/** For `afterEach`. */
export async function closeAll(): Promise<void> {
  const all = [...tracked];
  tracked.clear();
  await Promise.all(all.map((each) => each.close()));
}
