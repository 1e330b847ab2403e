/**
 * The world of the lease scenarios: whole replicas, clients, and time that passes only when the scenario says so.
 * Messages between cores go over the same network as in the raft scenarios; calls that one member passes to another,
 * and snapshots, arrive at once where the link is up.
 */
import type { Call, LeaseRef } from '../../src/base/api.js';
import type { NodeId } from '../../src/base/ids.js';
import { FINISHED_REQUESTS } from '../../src/base/limits.js';
import type { Entry, Message } from '../../src/raft/types.js';
import type { CallResult, Effect, Event } from '../../src/replica/types.js';
import { sortedRecords } from '../../src/testing/memory-image.js';
import { digestText } from '../../src/base/digest.js';
import { commandCodec } from '../../src/wire/command.js';
import { deepFreeze } from './freeze.js';
import { Invariants } from './invariants.js';
import { LeaseOracle } from './lease-oracle.js';
import type { Packet } from './network.js';
import { Network } from './network.js';
import type { Carry } from './raft-world.js';
import { BASE, genesisOf, ReplicaNode } from './replica-node.js';
import { member, messageText } from './text.js';

/** A client's call. */
export interface Operation {
  readonly name: string;
  readonly number: number;
  readonly node: ReplicaNode;
  readonly call: Call;
  readonly sentAt: number;
  /** False while it is still on its way to the node. */
  arrived: boolean;
  /** The client never gets the answer. */
  readonly deaf: boolean;
  outcome: string;
  lease: LeaseRef | undefined;
}

/** How entries are shown: the command's type, and the domains that it names. */
export function commandText(entry: Entry): string {
  if (entry.kind !== 'command') return '';
  const command = commandCodec.decode(entry.payload);
  const domains =
    'domain' in command ? [command.domain] : 'leases' in command ? command.leases.map((each) => each.domain) : [];
  return [command.type, ...domains].join('-');
}

/** Heartbeats and empty appends are the clockwork: a trace with them in it shows nothing else. */
function isDull(message: Message): boolean {
  const { type } = message;
  return type === 'heartbeat' || type === 'heartbeatReply' || (type === 'append' && message.entries.length === 0);
}

const MOST_EVENTS = 5000;
const TICK_MS = 10;

/** See the file's comment. */
export class ReplicaWorld {
  readonly nodes = new Map<string, ReplicaNode>();
  readonly network = new Network();
  readonly invariants = new Invariants();
  readonly oracle = new LeaseOracle();
  readonly operations = new Map<string, Operation>();
  now = 0;
  trace: string[] = [];
  sentBefore = 0;
  /** Fixed before the members start; bytes, but for the first and the last. */
  readonly settings = {
    finishedRequests: FINISHED_REQUESTS,
    logKeepBytes: 1_000_000,
    maxUncommittedBytes: 100_000,
    holdMs: 0,
    seed: 1,
  };
  readonly #carry: Carry;
  #calls = 0;
  /** What reaches a member next, in order. */
  readonly #due: { readonly node: ReplicaNode; readonly run: number; readonly event: Event }[] = [];

  constructor(carry: Carry) {
    this.#carry = carry;
  }

  print(line: string): void {
    this.trace.push(line);
  }

  node(name: string): ReplicaNode {
    const node = this.nodes.get(name);
    if (node === undefined) throw new Error(`no member ${name}`);
    return node;
  }

  /** Numbers calls. */
  nextNumber(): number {
    this.#calls++;
    return this.#calls;
  }

  startAll(names: readonly string[]): void {
    const genesis = genesisOf(
      names.map((name) => member(name)),
      this.settings,
    );
    for (const [at, self] of genesis.members.entries()) {
      this.nodes.set(
        self.node,
        new ReplicaNode(self, genesis, { ...this.settings, seed: this.settings.seed * 1000 + at * 100 }),
      );
    }
    for (const node of this.nodes.values()) this.start(node);
  }

  start(node: ReplicaNode): void {
    node.start((event) => {
      this.#due.push({ node, run: node.run, event });
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
    const before = node.up().context.leadership?.term;
    for (const effect of node.step(this.now, events)) this.#perform(node, effect);
    const { leadership, lease, applied, raft } = node.up().context;
    if (leadership?.term !== before) {
      this.print(
        leadership === undefined
          ? `${node.name} leads no longer`
          : `${node.name} leads t${raft.hard.term} at ${this.now} ms`,
      );
    }
    this.oracle.applied(node.name, lease, applied, this.now);
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
        if (due.node.run === due.run) this.#arrive(due.node, due.event);
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
    for (const operation of this.operations.values()) {
      if (operation.node === node && operation.arrived && operation.outcome === 'pending')
        this.#answer(operation, 'lost');
    }
    for (const other of this.nodes.values()) {
      for (const type of ['streamEnded', 'unreachable', 'forwardLost', 'forwarderLost'] as const) {
        this.#later(other, { type, node: node.member.node });
      }
    }
  }

  #later(node: ReplicaNode, event: Event): void {
    if (node.running !== undefined) this.#due.push({ node, run: node.run, event });
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

  #perform(node: ReplicaNode, effect: Effect): void {
    switch (effect.type) {
      case 'send':
        this.invariants.sent(effect.message, node.diskView(), node.view());
        this.#send(effect.message);
        return;
      case 'persist':
        node.running?.store.write(effect.write);
        return;
      case 'cut':
        node.running?.store.cut(effect.cut);
        this.print(`${node.name} cuts at ${effect.cut.meta.index}`);
        return;
      case 'stage':
        node.running?.store.stage(effect.chunk);
        return;
      case 'answer': {
        const operation = [...this.operations.values()].find((candidate) => candidate.number === effect.id);
        if (operation !== undefined) this.#answer(operation, effect.result);
        return;
      }
      case 'forward': {
        const { to, id, principal, timeoutMs, call } = effect;
        this.#pass(node, to, { type: 'forwarded', from: node.member.node, id, principal, timeoutMs, call }, () => {
          this.#streamEnds(node, this.node(to));
        });
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
        this.#sendSnapshot(node, effect);
        return;
      case 'chunksDone':
      case 'refuseChunks': {
        const { index } = node.disk.image.table.snapshot;
        const event = { type: 'snapshotSent', to: node.member, index, ok: effect.type === 'chunksDone' } as const;
        this.#later(this.node(effect.from.node), event);
        return;
      }
      case 'log':
        if (effect.level === 'audit')
          this.print(`${node.name}: ${effect.message} ${Object.values(effect.fields).join(' ')}`);
        return;
      case 'abortSnapshot':
      case 'serving':
      case 'stopped':
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

  #sendSnapshot(node: ReplicaNode, { to, term, request }: Extract<Effect, { type: 'sendSnapshot' }>): void {
    const { snapshot: meta, summary, count, sum } = node.disk.image.table;
    const chunk = {
      term,
      request,
      sequence: 0,
      meta,
      summary,
      records: [...sortedRecords(node.disk.image.table)],
      total: { count, digest: digestText(sum) },
    };
    this.print(`${node.name}>${to.node} snapshot at ${meta.index}`);
    this.#pass(node, to.node, { type: 'chunk', from: node.member, chunk }, () => {
      this.#later(node, { type: 'snapshotSent', to, index: meta.index, ok: false });
    });
  }

  #answer(operation: Operation, result: CallResult | 'lost'): void {
    operation.outcome = result === 'lost' ? 'lost' : outcomeText(result);
    this.print(
      `${operation.call.type} ${operation.name}: ${operation.outcome}${operation.deaf ? ', which its client does not get' : ''}`,
    );
    if (result === 'lost' || result.type !== 'answer') return;
    const { answer } = result;
    const { oracle, now } = this;
    if (answer.type === 'acquire' && answer.outcome.type === 'granted') {
      const { lease } = answer.outcome;
      operation.lease = lease;
      oracle.granted(answer.requestId, lease.domain, lease.token, operation.sentAt, now);
      if (!operation.deaf) oracle.held(lease.domain, lease.token, operation.sentAt, lease.ttlMs, now);
    }
    if (answer.type !== 'renew' || operation.call.type !== 'renew' || operation.deaf) return;
    for (const [at, { domain, token }] of operation.call.leases.entries()) {
      const state = answer.results[at];
      if (state?.type === 'live') oracle.held(domain, token, operation.sentAt, state.ttlMs, now);
    }
  }
}

/** One answer in a few words: tokens as offsets from the base. */
function outcomeText(result: CallResult): string {
  if (result.type === 'notLeader') return 'notLeader';
  if (result.type === 'failure') return `failed ${result.failure.reason} ${result.failure.outcome}`;
  const { answer } = result;
  switch (answer.type) {
    case 'acquire':
      if (answer.outcome.type === 'granted') return `granted ${answer.outcome.lease.token - BASE}`;
      return answer.outcome.type === 'ended' ? `ended ${answer.outcome.ended.reason}` : answer.outcome.reason;
    case 'renew':
      return answer.results.map((state) => (state.type === 'live' ? 'live' : `ended ${state.ended.reason}`)).join(' ');
    case 'verify':
      return answer.outcome.type === 'live' ? 'live' : `ended ${answer.outcome.ended.reason}`;
    case 'release':
      return answer.released ? 'released' : `ended ${answer.ended?.reason ?? ''}`;
    case 'get':
      return answer.lease === undefined ? 'free' : `held ${answer.lease.token - BASE}`;
    case 'withdraw':
    case 'forceRelease':
    case 'transferLeadership':
    case 'getStatus':
    case 'getStateHash':
      return 'done';
  }
}
