/**
 * A whole cluster in one process and in virtual time: the production replica and executor over a memory network and
 * memory disks. One seed fixes everything. Every effect is carried out by the executor as in production.
 */
import type { Call } from '../../src/base/api.js';
import type { BootId, DirectoryId, Incarnation, NodeId } from '../../src/base/ids.js';
import { STATE_LIMITS, TICK_MS } from '../../src/base/limits.js';
import { createRandom, nextInt, nextUint32 } from '../../src/base/random.js';
import type { Random } from '../../src/base/random.js';
import type { Revision } from '../../src/base/revision.js';
import { createExecutor } from '../../src/node/executor.js';
import type { Executor } from '../../src/node/executor.js';
import type { Member } from '../../src/raft/types.js';
import type { PeerEffect } from '../../src/replica/ports.js';
import { createReplica } from '../../src/replica/replica.js';
import type { Replica } from '../../src/replica/replica.js';
import type { CallResult, Event, Genesis } from '../../src/replica/types.js';
import { createMemoryDisk, openMemoryStore } from '../../src/testing/memory-store.js';
import { commandCodec } from '../../src/wire/command.js';
import type { ClusterCall, ClusterNode, ClusterSettings } from './cluster-node.js';
import { MemoryTransfers } from './memory-transfers.js';
import { MemoryWatches } from './memory-watches.js';
import { defaultOptions } from './replica-options.js';
import { VirtualTime } from './virtual-time.js';

/** The wall clock at virtual time 0. */
export const START_UNIX_MS = Date.UTC(2026, 11, 1, 12);

/** See the head of the file. */
export class MemoryCluster {
  readonly nodes = new Map<NodeId, ClusterNode>();
  readonly genesis: Genesis;
  /** Directed links that are cut, as `from>to`. */
  readonly cutLinks = new Set<string>();
  /** Milliseconds that a message is under way at least and at most. */
  latency: readonly [number, number] = [0.1, 0.4];
  /** Chance in 1 000 that a core message is lost. */
  loss = 0;
  /** How long a disk takes to sync, at least and at most. */
  diskMs: readonly [number, number] = [0.3, 1];
  readonly watches = new MemoryWatches((name, event) => {
    this.dispatchTo(this.node(name), event);
  });
  readonly #settings: ClusterSettings;
  readonly #random: Random;
  readonly #clock = new VirtualTime();
  #nextCall = 1;
  readonly #calls = new Map<number, ClusterCall>();
  readonly #transfers = new MemoryTransfers({
    after: (ms, task) => {
      this.after(ms, task);
    },
    delay: () => this.#between(this.latency),
    isCut: (from, to) => this.cutLinks.has(`${from.member.node}>${to.member.node}`),
    dispatchTo: (node, event) => {
      this.dispatchTo(node, event);
    },
  });

  constructor(settings: ClusterSettings = {}) {
    this.#settings = settings;
    this.#random = createRandom(settings.seed ?? 1);
    const members: Member[] = Array.from({ length: settings.nodes ?? 3 }, (_, at) => ({
      node: `n${at + 1}` as NodeId,
      directory: hex(this.#random) as DirectoryId,
    }));
    this.genesis = {
      incarnation: hex(this.#random) as Incarnation,
      cluster: 'test',
      history: { base: (START_UNIX_MS * 1_000) as Revision, start: 0 },
      startTerm: 0,
      holdMs: settings.holdMs ?? 0,
      limits: { ...STATE_LIMITS, ...settings.limits },
      members,
      stateDigest: '',
    };
    for (const member of members) {
      this.nodes.set(member.node, {
        member,
        disk: createMemoryDisk(this.genesis),
        running: undefined,
        paused: false,
        inbox: [],
        logs: [],
        failed: undefined,
      });
      this.start(member.node);
    }
  }

  /** Virtual milliseconds since the start. */
  get now(): number {
    return this.#clock.now;
  }

  node(name: string): ClusterNode {
    const node = this.nodes.get(name as NodeId);
    if (node === undefined) throw new Error(`no node ${name}`);
    return node;
  }

  replica(name: string): Replica {
    const { running } = this.node(name);
    if (running === undefined) throw new Error(`${name} does not run`);
    return running.replica;
  }

  /** Starts a node from what its disk holds. */
  start(name: string): void {
    const node = this.node(name);
    if (node.running !== undefined) throw new Error(`${name} runs already`);
    const store = openMemoryStore(node.disk, {
      sync: this.#settings.sync ?? true,
      schedule: (complete) => {
        this.after(this.#between(this.diskMs), () => {
          if (node.running?.store === store) complete();
        });
      },
    });
    const replica = createReplica(
      { ...defaultOptions(node.member, this.genesis), ...this.#settings.options, seed: nextUint32(this.#random) },
      commandCodec,
      store.loaded,
    );
    const boot = hex(this.#random) as BootId;
    const executor = createExecutor(replica, {
      store,
      time: () => ({ nowMs: this.now, unixMs: START_UNIX_MS + Math.floor(this.now) }),
      schedule: (turn) => {
        this.after(0, () => {
          if (node.running?.executor === executor && !node.paused) turn();
          else if (node.running?.executor === executor) this.#whenResumed(node, turn);
        });
      },
      peers: {
        perform: (effect) => {
          this.#perform(node, effect);
        },
        chunkStaged: () => undefined,
      },
      clients: {
        answer: (id, _header, result) => {
          const call = this.#calls.get(id);
          if (call === undefined) return;
          call.result = result;
          call.answeredAt = this.now;
        },
      },
      watchers: {
        perform: (effect) => {
          this.watches.perform(name, effect);
        },
      },
      observer: {
        log: ({ level, message, fields }) => {
          node.logs.push({ level, message, fields });
        },
        serving: () => undefined,
        stopped: () => {
          this.stop(name);
        },
        failed: (cause, error) => {
          node.failed = { cause, error };
        },
      },
    });
    node.running = { executor, replica, store, boot };
    node.failed = undefined;
    for (const other of this.nodes.values()) {
      if (other.running === undefined || other === node) continue;
      this.#greet(node, other);
      this.#greet(other, node);
    }
    this.#tick(node, executor);
  }

  /** Kills a node; what was not synced is lost. */
  kill(name: string): void {
    const node = this.node(name);
    node.running?.store.crash();
    this.stop(name);
  }

  /** Ends a node's process without losing what the kernel has. */
  stop(name: string): void {
    const node = this.node(name);
    node.running?.executor.halt();
    node.running = undefined;
    node.paused = false;
    this.watches.nodeGone(name);
    for (const other of this.nodes.values()) {
      if (other === node) continue;
      this.dispatchTo(other, { type: 'streamEnded', node: node.member.node });
      this.dispatchTo(other, { type: 'unreachable', node: node.member.node });
      this.dispatchTo(other, { type: 'forwardLost', node: node.member.node });
      this.dispatchTo(other, { type: 'forwarderLost', node: node.member.node });
    }
  }

  /** Stops a node's clock of turns; what arrives waits in its inbox. */
  pause(name: string): void {
    this.node(name).paused = true;
  }

  resume(name: string): void {
    const node = this.node(name);
    node.paused = false;
    for (const event of node.inbox.splice(0)) node.running?.executor.dispatch(event);
    for (const turn of this.#held.get(node)?.splice(0) ?? []) turn();
  }

  /** Cuts both directions between `left` and each of `right`. */
  cut(left: string, ...right: string[]): void {
    for (const other of right) {
      this.cutLinks.add(`${left}>${other}`);
      this.cutLinks.add(`${other}>${left}`);
    }
  }

  heal(): void {
    this.cutLinks.clear();
  }

  /** Sends a call to a node, as a client of it. */
  call(name: string, call: Call, timeoutMs = 10_000): ClusterCall {
    const node = this.node(name);
    const pending: ClusterCall = {
      id: this.#nextCall++,
      node: node.member.node,
      sentAt: this.now,
      result: undefined,
      answeredAt: undefined,
    };
    this.#calls.set(pending.id, pending);
    this.dispatchTo(node, {
      type: 'call',
      id: pending.id,
      principal: { name: 'addr:test', authenticated: false },
      timeoutMs,
      call,
    });
    return pending;
  }

  /** The client of a call goes away. */
  cancel(call: ClusterCall): void {
    this.#calls.delete(call.id);
    this.dispatchTo(this.node(call.node), { type: 'cancel', id: call.id });
  }

  /** Runs virtual time forward by `ms`. */
  async run(ms: number): Promise<void> {
    await this.#runUntil(this.now + ms, () => false);
  }

  /** Runs until `condition` holds; throws when it does not within `limitMs` of virtual time. */
  async until(what: string, condition: () => boolean, limitMs = 20_000): Promise<void> {
    await this.#runUntil(this.now + limitMs, condition);
    if (!condition()) throw new Error(`not within ${limitMs} ms of virtual time: ${what}`);
  }

  /** The answer of a call, once there. */
  async answered(call: ClusterCall, limitMs = 20_000): Promise<CallResult> {
    await this.until(`an answer to call ${call.id}`, () => call.result !== undefined, limitMs);
    if (call.result === undefined) throw new Error('no result');
    return call.result;
  }

  /** The one ready leader of the highest term, if there is one. */
  leader(): NodeId | undefined {
    let best: { node: NodeId; term: number } | undefined;
    for (const [name, { running, paused }] of this.nodes) {
      const leadership = running?.replica.context.leadership;
      if (paused || leadership?.ready === undefined) continue;
      if (best === undefined || leadership.term > best.term) best = { node: name, term: leadership.term };
    }
    return best?.node;
  }

  async untilLeader(): Promise<NodeId> {
    await this.until('a leader', () => this.leader() !== undefined);
    const leader = this.leader();
    if (leader === undefined) throw new Error('no leader');
    return leader;
  }

  /** Runs `task` after `ms` of virtual time. */
  after(ms: number, task: () => void): void {
    this.#clock.after(ms, task);
  }

  dispatchTo(node: ClusterNode, event: Event): void {
    if (node.running === undefined) return;
    if (node.paused) node.inbox.push(event);
    else node.running.executor.dispatch(event);
  }

  readonly #held = new Map<ClusterNode, (() => void)[]>();

  #whenResumed(node: ClusterNode, turn: () => void): void {
    const held = this.#held.get(node) ?? [];
    held.push(turn);
    this.#held.set(node, held);
  }

  async #runUntil(end: number, condition: () => boolean): Promise<void> {
    while (!condition()) {
      for (const { failed, member } of this.nodes.values()) {
        if (failed?.cause === 'assertion')
          throw new Error(`${member.node}: ${failed.error.message}`, { cause: failed.error });
      }
      this.#transfers.check();
      if (!this.#clock.runNext(end)) return;
      // A snapshot's reader is asynchronous: let it go on before time does.
      if (this.#transfers.underWay > 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #tick(node: ClusterNode, executor: Executor): void {
    this.after(TICK_MS, () => {
      if (node.running?.executor !== executor) return;
      if (!node.paused) executor.dispatch({ type: 'tick' });
      this.#tick(node, executor);
    });
  }

  #greet(from: ClusterNode, to: ClusterNode): void {
    const boot = from.running?.boot;
    if (boot === undefined) return;
    this.#deliver(from, to, { type: 'hello', node: from.member.node, directory: from.member.directory, boot });
  }

  #deliver(from: ClusterNode, to: ClusterNode, event: Event): void {
    const { running } = to;
    this.after(this.#between(this.latency), () => {
      if (to.running !== running || this.cutLinks.has(`${from.member.node}>${to.member.node}`)) return;
      this.dispatchTo(to, event);
    });
  }

  #perform(from: ClusterNode, effect: PeerEffect): void {
    switch (effect.type) {
      case 'send': {
        if (nextInt(this.#random, 0, 999) < this.loss) return;
        const to = this.nodes.get(effect.message.to.node);
        if (to?.member.directory === effect.message.to.directory)
          this.#deliver(from, to, { type: 'message', message: effect.message });
        return;
      }
      case 'forward': {
        const { to, ...passed } = effect;
        const node = this.node(to);
        if (node.running === undefined) this.dispatchTo(from, { type: 'forwardLost', node: to });
        else this.#deliver(from, node, { ...passed, type: 'forwarded', from: from.member.node });
        return;
      }
      case 'forwardCancel':
        this.#deliver(from, this.node(effect.to), { type: 'forwardCancelled', from: from.member.node, id: effect.id });
        return;
      case 'forwardResult':
        this.#deliver(from, this.node(effect.to), {
          type: 'forwardResult',
          from: from.member.node,
          id: effect.id,
          result: effect.result,
        });
        return;
      case 'probe': {
        const refused = this.node(effect.node).running === undefined;
        this.after(this.#between(this.latency), () => {
          this.dispatchTo(from, { type: 'probed', node: effect.node, outcome: refused ? 'refused' : 'other' });
        });
        return;
      }
      case 'sendSnapshot':
        this.#transfers.send(from, this.node(effect.to.node), effect);
        return;
      case 'abortSnapshot':
      case 'refuseChunks':
      case 'chunksDone':
        this.#transfers.end(from, effect);
    }
  }

  #between([low, high]: readonly [number, number]): number {
    return low + (nextUint32(this.#random) / 2 ** 32) * (high - low);
  }
}

function hex(random: Random): string {
  return Array.from({ length: 4 }, () => nextUint32(random).toString(16).padStart(8, '0')).join('');
}
