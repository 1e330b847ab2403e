/**
 * The world of the raft scenarios: members, network, clients; everything happens in one fixed order, so a scenario
 * prints the same lines every time.
 */
import type { Configuration, Message } from '../../src/raft/types.js';
import * as view from '../../src/raft/view.js';
import { Clients } from './clients.js';
import type { Cut, Image } from './disk.js';
import { deepFreeze } from './freeze.js';
import { Invariants } from './invariants.js';
import type { Packet } from './network.js';
import { Network } from './network.js';
import { SimNode } from './node.js';
import { contentText, member, memberText, messageText } from './text.js';

/** Fixed before the members start. */
export interface Settings {
  readonly heartbeatTicks: number;
  readonly electionMinTicks: number;
  readonly electionMaxTicks: number;
  readonly maxAppendBytes: number;
  readonly maxInflightAppends: number;
  readonly maxInflightBytes: number;
  readonly maxUncommittedBytes: number;
  readonly maxUnappliedEntries: number;
  readonly seed: number;
}

/** Small enough that a scenario reaches every limit that it does not mention only on purpose. */
export const SETTINGS: Settings = {
  heartbeatTicks: 2,
  electionMinTicks: 10,
  electionMaxTicks: 50,
  maxAppendBytes: 1000,
  maxInflightAppends: 16,
  maxInflightBytes: 10_000,
  maxUncommittedBytes: 10_000,
  maxUnappliedEntries: 1000,
  seed: 1,
};

/** Events that one command may set off before it counts as a livelock. */
const MOST_EVENTS = 5000;

/** Carries a message as the wire would; the identity in the plain run. */
export type Carry = (message: Message) => Message;

/** See the file's comment. */
export class RaftWorld {
  readonly nodes = new Map<string, SimNode>();
  readonly network = new Network();
  readonly invariants = new Invariants();
  readonly clients: Clients;
  /** What happened since the last command. */
  trace: string[] = [];
  /** First packet of the last command, for claims about what was sent. */
  sentBefore = 0;
  settings = SETTINGS;
  /** Disks that were set up before the members start. */
  readonly images = new Map<string, Image>();
  readonly #carry: Carry;
  /** Reports to members about snapshot transfers, due before anything else happens. */
  readonly #later: (() => void)[] = [];

  constructor(carry: Carry) {
    this.#carry = carry;
    this.clients = new Clients(this.invariants, (line) => {
      this.print(line);
    });
  }

  print(line: string): void {
    this.trace.push(line);
  }

  /** The node `name`; throws when the scenario has none of that name. */
  node(name: string): SimNode {
    const node = this.nodes.get(name);
    if (node === undefined) throw new Error(`no member ${name}`);
    return node;
  }

  /** The running member that leads in the greatest term. */
  leader(): SimNode | undefined {
    const leaders = [...this.nodes.values()].filter(
      (node) => node.running !== undefined && view.isLeader(node.up().raft),
    );
    return leaders.sort((a, b) => b.view().term - a.view().term)[0];
  }

  /** Starts every member of `configuration` in term `term`, from its set-up disk where it has one. */
  startAll(configuration: Configuration, term: number): void {
    const all = [...configuration.voters, ...configuration.outgoing, ...configuration.learners];
    const names = [...new Set(all.map((m) => m.node as string))].sort();
    for (const [at, name] of names.entries()) {
      const self = all.find((m) => m.node === name) ?? member(name);
      const set = this.images.get(name);
      const image = this.emptyImage(configuration, term);
      const meta = { ...image.cut.meta, configuration };
      const node = new SimNode(
        { ...this.settings, self, seed: this.settings.seed * 1000 + at * 100 },
        set === undefined ? image : { ...set, cut: { meta, state: [] } },
        image,
        {
          invariants: this.invariants,
          print: (line) => {
            this.print(line);
          },
          send: (message, cut) => {
            this.send(message, cut);
          },
          answered: (from, effect) => {
            this.clients.answered(from, effect);
          },
          applied: (from, entry) => {
            if (entry.kind === 'command') this.print(`${from.name} applies ${contentText(entry)}`);
            this.clients.applied(from, entry);
          },
        },
      );
      this.nodes.set(name, node);
    }
    for (const node of this.nodes.values()) node.start();
  }

  /** The disk of a member that begins with `configuration` and an empty log. */
  emptyImage(configuration: Configuration, term: number): Image {
    const meta = { index: 0, term: 0, configuration, configurationIndex: 0 };
    return { hard: { term, vote: undefined }, anchor: { index: 0, term: 0 }, entries: [], cut: { meta, state: [] } };
  }

  /** A message leaves its sender, or is forged by a scenario. */
  send(message: Message, cut: Cut | undefined): void {
    const packet = this.network.register(deepFreeze(this.#carry(message)), cut);
    const fate = this.network.fate(packet);
    if (fate === 'flying') this.network.flying.push(packet);
    else this.print(`${messageText(packet.message)} ${fate === 'held' ? `held m${packet.id}` : 'cut off'}`);
    if (fate === 'held') this.network.held.push(packet);
    if (fate === 'cut') this.snapshotEnded(packet, false);
  }

  /** Tells a snapshot's sender what became of the transfer. */
  snapshotEnded({ message, cut }: Packet, ok: boolean): void {
    if (cut === undefined) return;
    const sender = this.nodes.get(message.from.node);
    const report = { type: 'snapshotSent', to: message.to, index: cut.meta.index, ok } as const;
    this.#later.push(() => sender?.input(report));
  }

  /** A packet never arrives. */
  lost(packet: Packet): void {
    this.snapshotEnded(packet, false);
  }

  /** A packet reaches the member it names, whatever the links do. */
  deliver(packet: Packet): void {
    const target = this.nodes.get(packet.message.to.node);
    if (target?.running === undefined) {
      this.print(`${messageText(packet.message)} lost`);
      this.snapshotEnded(packet, false);
      return;
    }
    if (target.paused) {
      target.inbox.push(() => {
        this.deliver(packet);
      });
      return;
    }
    this.print(messageText(packet.message));
    target.receive(packet.message, packet.cut);
    this.snapshotEnded(packet, true);
  }

  /** Lets everything happen that nobody holds: reports, disks, messages, in this order. */
  settle(): void {
    for (let events = 0; events < MOST_EVENTS; events++) {
      const report = this.#later.shift();
      const syncing = [...this.nodes.values()].find((n) => !n.disk.stalled && !n.paused && n.disk.pending.length > 0);
      const packet = report === undefined && syncing === undefined ? this.network.flying.shift() : undefined;
      if (report !== undefined) report();
      else if (syncing !== undefined) syncing.sync();
      else if (packet !== undefined) this.deliver(packet);
      else return;
      this.check();
    }
    throw new Error(`no rest after ${MOST_EVENTS} events`);
  }

  /** The invariants, after one event. */
  check(): void {
    const nodes = [...this.nodes.values()];
    const running = nodes.filter((node) => node.running !== undefined);
    this.invariants.observe(
      running.map((node) => node.view()),
      nodes.map((node) => node.diskView()),
    );
  }

  /** The process of `node` ends; what its clients wait for has an unknown outcome. */
  crash(node: SimNode, lose: boolean): void {
    this.clients.stopped(node);
    node.crash(lose);
  }

  /** All members that run, in order of their names. */
  runningNodes(): SimNode[] {
    return [...this.nodes.values()].filter((node) => node.running !== undefined && !node.paused);
  }

  /** One tick at `node`, without letting the network move. */
  tick(node: SimNode): void {
    node.quiet++;
    node.input({ type: 'tick' });
    this.check();
  }

  /** The vote that `node` has made durable or spoken of in `term`. */
  voteIn(name: string, term: number): string {
    const spoken = this.network.sent.find(
      ({ message }) =>
        memberText(message.from) === name &&
        message.term === term &&
        (message.type === 'vote' || (message.type === 'voteReply' && message.granted)),
    );
    if (spoken === undefined) return 'none';
    return memberText(spoken.message.type === 'vote' ? spoken.message.from : spoken.message.to);
  }
}
