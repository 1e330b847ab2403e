/**
 * The world of the lease scenarios: whole replicas, clients, and time that passes only when the scenario says so.
 * Messages between cores go over the same network as in the raft scenarios; calls that one member passes to another
 * arrive at once where the link is up, and so do the chunks of snapshots unless the scenario holds them.
 */
import type { NodeId } from '../../src/base/ids.js';
import { FINISHED_REQUESTS } from '../../src/base/limits.js';
import type { Message } from '../../src/raft/types.js';
import type { PeerEffect } from '../../src/replica/ports.js';
import type { Event, Genesis } from '../../src/replica/types.js';
import { deepFreeze } from './freeze.js';
import { Invariants } from './invariants.js';
import type { Packet } from './network.js';
import { Network } from './network.js';
import type { Carry } from './raft-world.js';
import type { Operation } from './replica-clients.js';
import { ReplicaClients } from './replica-clients.js';
import { ReplicaNode } from './replica-node.js';
import { commandText, isDull } from './replica-text.js';
import { Transfers } from './replica-transfers.js';
import { messageText } from './text.js';

const MOST_EVENTS = 5000;
const TICK_MS = 10;

/** See the file's comment. */
export class ReplicaWorld {
  readonly nodes = new Map<string, ReplicaNode>();
  readonly network = new Network();
  /** Of the present history. */
  invariants = new Invariants();
  readonly clients: ReplicaClients;
  /** How many were formed. */
  histories = 0;
  now = 0;
  trace: string[] = [];
  sentBefore = 0;
  /** Snapshots under way. */
  readonly transfers: Transfers;
  /** Fixed before the members start. Bytes, milliseconds; `chunkRecords`: records in a chunk of a snapshot. */
  readonly settings = {
    finishedRequests: FINISHED_REQUESTS,
    chunkRecords: 1000,
    logKeepBytes: 1_000_000,
    maxUncommittedBytes: 100_000,
    holdMs: 0,
    seed: 1,
  };
  readonly #carry: Carry;
  /** What comes next, in order, and at which run of which member. */
  readonly #due: { readonly node: ReplicaNode; readonly run: number; readonly go: () => void }[] = [];

  constructor(carry: Carry) {
    this.#carry = carry;
    this.clients = new ReplicaClients(
      () => this.now,
      (line) => {
        this.print(line);
      },
    );
    this.transfers = new Transfers({
      isCut: (from, to) => this.network.isCut(from.name, to.name),
      print: (line) => {
        this.print(line);
      },
      later: (node, event) => {
        this.#later(node, event);
      },
      arrive: (node, event) => {
        this.#arrive(node, event);
      },
    });
  }

  print(line: string): void {
    this.trace.push(line);
  }

  node(name: string): ReplicaNode {
    const node = this.nodes.get(name);
    if (node === undefined) throw new Error(`no member ${name}`);
    return node;
  }

  /** Starts the members of `genesis` on new disks. */
  startAll(genesis: Genesis): void {
    for (const [at, self] of genesis.members.entries()) {
      this.nodes.set(
        self.node,
        new ReplicaNode(self, genesis, { ...this.settings, seed: this.settings.seed * 1000 + at * 100 }),
      );
    }
    for (const node of this.nodes.values()) this.start(node);
  }

  /** The disks are lost, and with them everything that a later history can be held against but its tokens. */
  wipe(names: readonly string[]): void {
    for (const name of names) {
      this.crash(this.node(name), true);
      this.nodes.delete(name);
    }
    this.invariants = new Invariants();
    this.clients.oracle.begunAnew();
  }

  start(node: ReplicaNode): void {
    node.start({
      now: () => this.now,
      wanted: () => {
        this.#soon(node, () => {
          if (!node.paused) this.#turn(node);
        });
      },
      perform: (effect) => {
        this.#perform(node, effect);
      },
      answer: (id, result) => {
        this.clients.answered(id, result);
      },
      say: (line) => {
        this.print(line);
      },
      refused: (error) => {
        this.print(`${node.name} ends: ${error.message}`);
        this.crash(node, true);
      },
    });
    this.invariants.restored(node.member, node.run, node.up().context.applied);
  }

  /** The member that leads in the greatest term and serves. */
  leader(): ReplicaNode | undefined {
    const ready = [...this.nodes.values()].filter(
      (node) => node.running?.replica.context.leadership?.ready !== undefined,
    );
    return ready.sort((a, b) => b.view().term - a.view().term)[0];
  }

  /** Hands `events` to `node` in one batch. */
  step(node: ReplicaNode, events: readonly Event[]): void {
    node.up();
    node.dispatch(events);
    this.#turn(node);
  }

  #turn(node: ReplicaNode): void {
    const before = node.up().context.leadership?.term;
    node.take();
    const { leadership, lease, applied, raft } = node.up().context;
    if (leadership?.term !== before) {
      this.print(
        leadership === undefined
          ? `${node.name} leads no longer`
          : `${node.name} leads t${raft.hard.term} at ${this.now} ms`,
      );
    }
    this.clients.oracle.applied(node.name, lease, applied, this.now);
    this.check();
  }

  check(): void {
    const nodes = [...this.nodes.values()];
    this.invariants.observe(
      nodes.filter((node) => node.running !== undefined).map((node) => node.view()),
      nodes.map((node) => node.diskView()),
    );
  }

  /** Lets everything happen that nobody holds. */
  settle(): void {
    for (let events = 0; events < MOST_EVENTS; events++) {
      const due = this.#due.shift();
      const writing = [...this.nodes.values()].find(
        (node) => node.complete !== undefined && !node.stalled && !node.paused,
      );
      const packet = due === undefined && writing === undefined ? this.network.flying.shift() : undefined;
      if (due !== undefined) {
        if (due.node.run === due.run && due.node.running !== undefined) due.go();
      } else if (writing !== undefined) this.sync(writing);
      else if (packet !== undefined) this.deliver(packet);
      else return;
    }
    throw new Error(`no rest after ${MOST_EVENTS} events`);
  }

  /** The write under way at `node` is durable. */
  sync(node: ReplicaNode): void {
    const { complete } = node;
    node.complete = undefined;
    complete?.();
  }

  /** Time passes: all running members tick. */
  pass(ms: number): void {
    for (const end = this.now + ms; this.now < end;) {
      this.now += TICK_MS;
      for (const node of this.nodes.values())
        if (node.running !== undefined && !node.paused) this.step(node, [{ type: 'tick' }]);
      this.settle();
    }
  }

  deliver(packet: Packet): void {
    const node = this.node(packet.message.to.node);
    if (!isDull(packet.message))
      this.print(`${messageText(packet.message, commandText)}${node.running === undefined ? ' lost' : ''}`);
    this.#arrive(node, { type: 'message', message: packet.message });
  }

  lost(): void {
    // Nobody waits for it.
  }

  #arrive(node: ReplicaNode, event: Event): void {
    if (node.running === undefined) return;
    if (node.paused) node.inbox.push(event);
    else this.step(node, [event]);
  }

  /** Ends a process; its peers notice that its streams are gone. */
  crash(node: ReplicaNode, lose: boolean): void {
    node.crash(lose);
    this.transfers.ended(node);
    this.clients.lost(node);
    for (const other of this.nodes.values()) {
      for (const type of ['streamEnded', 'unreachable', 'forwardLost', 'forwarderLost'] as const) {
        this.#later(other, { type, node: node.member.node });
      }
    }
  }

  #soon(node: ReplicaNode, go: () => void): void {
    this.#due.push({ node, run: node.run, go });
  }

  #later(node: ReplicaNode, event: Event): void {
    if (node.running === undefined) return;
    this.#soon(node, () => {
      this.#arrive(node, event);
    });
  }

  /** Sends calls that wait for `arrive`, all in one batch at each node. */
  arrive(operations: readonly Operation[]): void {
    for (const node of new Set(operations.map((operation) => operation.node))) {
      const events = operations
        .filter((operation) => operation.node === node)
        .map((operation): Event => {
          operation.arrived = true;
          const principal = { name: 'addr:test', authenticated: false };
          return { type: 'call', id: operation.number, principal, timeoutMs: 60_000, call: operation.call };
        });
      this.step(node, events);
    }
  }

  /** A client is gone: its call is told nothing any more. */
  leave(operation: Operation): void {
    operation.outcome = 'left';
    this.step(operation.node, [{ type: 'cancel', id: operation.number }]);
  }

  #perform(node: ReplicaNode, effect: PeerEffect): void {
    switch (effect.type) {
      case 'send':
        this.invariants.sent(effect.message, node.diskView(), node.view());
        this.#send(effect.message);
        return;
      case 'forward': {
        const { to, id, term, principal, timeoutMs, holdMs, call } = effect;
        this.#pass(
          node,
          to,
          { type: 'forwarded', from: node.member.node, id, term, principal, timeoutMs, holdMs, call },
          () => {
            this.#streamEnds(node, this.node(to));
          },
        );
        return;
      }
      case 'forwardCancel':
        this.#pass(node, effect.to, { type: 'forwardCancelled', from: node.member.node, id: effect.id });
        return;
      case 'forwardResult':
        this.#pass(
          node,
          effect.to,
          {
            type: 'forwardResult',
            from: node.member.node,
            id: effect.id,
            result: effect.result,
          },
          () => {
            this.#streamEnds(this.node(effect.to), node);
          },
        );
        return;
      case 'probe':
        this.#later(node, {
          type: 'probed',
          node: effect.node,
          outcome: this.node(effect.node).running === undefined ? 'refused' : 'other',
        });
        return;
      case 'sendSnapshot':
        this.transfers.begin(node, this.node(effect.to.node), effect, this.settings.chunkRecords);
        return;
      case 'abortSnapshot':
        this.transfers.aborted(node, effect.to);
        return;
      case 'chunksDone':
        this.transfers.done(node, effect.from);
        return;
      case 'refuseChunks':
        this.transfers.refused(node, effect.from, effect.reason);
        return;
    }
  }

  #send(message: Message): void {
    const packet = this.network.register(deepFreeze(this.#carry(message)), undefined);
    const fate = this.network.fate(packet);
    if (fate === 'held') {
      this.network.held.push(packet);
      if (!isDull(message)) this.print(`${messageText(message, commandText)} held m${packet.id}`);
    } else if (fate === 'flying') this.network.flying.push(packet);
  }

  /** What one node says to another outside the core. */
  #pass(from: ReplicaNode, to: NodeId, event: Event, otherwise: () => void = () => undefined): void {
    const target = this.node(to);
    if (target.running === undefined || this.network.isCut(from.name, to)) otherwise();
    else this.#later(target, event);
  }

  /** The stream on which `from` passes calls to `to` breaks: both notice. */
  #streamEnds(from: ReplicaNode, to: ReplicaNode): void {
    this.#later(from, { type: 'forwardLost', node: to.member.node });
    this.#later(to, { type: 'forwarderLost', node: from.member.node });
  }
}
