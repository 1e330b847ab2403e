/**
 * A cluster in memory, driven by chance from one seed: messages are lost, doubled and reordered, members crash and lose
 * what was not synced, logs are compacted, snapshots sent, leadership handed over. Every step checks what must hold.
 */
import { createRandom, nextInt } from '../../src/base/random.js';
import { createRaft, hashState, settle, step } from '../../src/raft/raft.js';
import type { Raft } from '../../src/raft/raft.js';
import { keyOf, sameMember } from '../../src/raft/member.js';
import type {
  Effect,
  Input,
  LogWrite,
  Member,
  Message,
  Position,
  Restored,
  SnapshotMeta,
} from '../../src/raft/types.js';
import { configurationAt, isInstalling, lastIndex, stableIndex, termOf } from '../../src/raft/view.js';
import { configurationOf, fresh, member, optionsFor } from './kit.js';
import { afterWrite, check, checkLogs, Rules, Violation } from './rules.js';
import type { Watched } from './rules.js';

interface Node extends Watched {
  raft: Raft | undefined;
  disk: Restored;
  write: LogWrite | undefined;
  /** What the state machine has applied up to. */
  applied: number;
  /** Reads that wait: round → the greatest index that was committed anywhere when they came. */
  reads: { readonly round: number; readonly committed: number }[];
}

type Packet =
  | { readonly type: 'message'; readonly message: Message }
  | {
      readonly type: 'snapshot';
      readonly from: Member;
      readonly to: Member;
      readonly term: number;
      readonly meta: SnapshotMeta;
      readonly request: number;
    }
  | {
      readonly type: 'snapshotSent';
      readonly from: Member;
      readonly to: Member;
      readonly index: number;
      readonly ok: boolean;
    };

/** What a run went through; a run that meets nothing proves nothing. */
export interface Coverage {
  leaders: number;
  commits: number;
  crashes: number;
  cuts: number;
  installs: number;
  confirmed: number;
  handovers: number;
}

export class Cluster {
  readonly nodes: Node[];
  readonly coverage: Coverage = {
    leaders: 0,
    commits: 0,
    crashes: 0,
    cuts: 0,
    installs: 0,
    confirmed: 0,
    handovers: 0,
  };
  /** Digests of the states in turn, if asked for: equal for equal seeds. */
  readonly hashes: string[] = [];
  readonly #random;
  readonly #packets: Packet[] = [];
  readonly #rules = new Rules();
  readonly #configuration;
  readonly #hashed: boolean;
  #proposals = 0;
  /** Cut off from all others. */
  #isolated: Node | undefined;

  constructor(size: number, seed: number, hashed = false) {
    this.#hashed = hashed;
    this.#random = createRandom(seed);
    const members = ['A', 'B', 'C', 'D', 'E'].slice(0, size).map((name) => member(name));
    this.#configuration = configurationOf(members);
    this.nodes = members.map((self) => ({
      self,
      raft: undefined,
      disk: fresh(this.#configuration),
      write: undefined,
      applied: 0,
      reads: [],
    }));
    for (const node of this.nodes) this.#start(node);
  }

  /** So many random events. */
  disturb(events: number): void {
    for (let event = 0; event < events; event++) {
      if (event % 250 === 0) this.#isolated = nextInt(this.#random, 0, 2) > 0 ? this.#pick(this.nodes) : undefined;
      const node = this.#pick(this.nodes);
      const dice = nextInt(this.#random, 0, 999);
      if (node.raft === undefined) {
        if (dice < 300) this.#start(node);
      } else if (dice < 120) this.#feed(node, this.#batch(node));
      else if (dice < 350) this.#complete(node);
      else if (dice < 450) this.#propose(node);
      else if (dice < 480) this.#feed(node, [{ type: 'confirm' }]);
      else if (dice < 520) this.#cut(node);
      else if (dice < 523) this.#crash(node);
      else if (dice < 530) this.#feed(node, [{ type: 'transfer', to: undefined }]);
      else if (dice < 535) this.#feed(node, [{ type: 'unreachable', to: this.#pick(this.nodes).self }]);
      else if (dice < 536)
        this.#feed(node, [
          { type: 'stalled', stalled: true },
          { type: 'stalled', stalled: false },
        ]);
      else if (dice < 539) this.#suspect(node);
      else for (let message = nextInt(this.#random, 1, 5); message > 0; message--) this.#deliver();
      if (event % 50 === 0) checkLogs(this.nodes);
    }
  }

  /** No more faults: the cluster must agree on one leader, catch everybody up and come to rest. */
  recover(): void {
    this.#isolated = undefined;
    for (let round = 0; round < 600; round++) {
      for (const node of this.nodes) {
        if (node.raft === undefined) this.#start(node);
        this.#feed(node, [{ type: 'tick' }, { type: 'applied', index: node.applied }]);
      }
      for (let guard = 0; this.#packets.length > 0 || this.nodes.some((node) => node.write !== undefined); guard++) {
        check(guard < 20_000, 'the cluster does not come to rest');
        const packet = this.#packets.shift();
        if (packet !== undefined) this.#take(packet);
        for (const node of this.nodes) this.#complete(node);
      }
      if (this.#isAtRest()) return;
    }
    throw new Violation(`no agreement: ${this.nodes.map((node) => this.#describe(node)).join('; ')}`);
  }

  #isAtRest(): boolean {
    const leader = this.nodes.find((node) => node.raft?.role.type === 'leader');
    const last = leader?.raft === undefined ? 0 : lastIndex(leader.raft);
    for (const { raft } of this.nodes) {
      if (raft?.hard.term !== leader?.raft?.hard.term || raft?.commit !== last || lastIndex(raft) !== last)
        return false;
      check(stableIndex(raft) === last && raft.persistence.held.length === 0, 'something is held at rest');
    }
    const role = leader?.raft?.role;
    if (role?.type !== 'leader') return false;
    check(role.uncommittedBytes === 0, `${role.uncommittedBytes} bytes are charged at rest`);
    for (const peer of role.peers.values()) {
      // The reply to its last append may have been lost: a heartbeat reply will set that going.
      if (peer.flow.type !== 'replicate' || peer.match < last) return false;
      check(peer.flow.bytes === 0 && peer.flow.inflight.length === 0, `${peer.key} has appends under way at rest`);
    }
    return true;
  }

  #describe({ self, raft }: Node): string {
    if (raft === undefined) return `${self.node} down`;
    return `${self.node} ${raft.role.type} t${raft.hard.term} commit ${raft.commit} last ${lastIndex(raft)}`;
  }

  #pick<T>(list: readonly T[]): T {
    const picked = list[nextInt(this.#random, 0, list.length - 1)];
    check(picked !== undefined, 'nothing to pick from');
    return picked;
  }

  #batch(node: Node): Input[] {
    const ticks = Array.from({ length: nextInt(this.#random, 1, 3) }, () => ({ type: 'tick' }) as const);
    return nextInt(this.#random, 0, 1) === 0 ? ticks : [...ticks, { type: 'applied', index: node.applied }];
  }

  #start(node: Node): void {
    node.raft = createRaft(optionsFor(node.self, { seed: nextInt(this.#random, 0, 1_000_000) }), node.disk);
    node.applied = node.disk.snapshot.index;
  }

  /** Loses everything in memory, and the write under way unless it just got through. */
  #crash(node: Node): void {
    this.coverage.crashes++;
    if (nextInt(this.#random, 0, 1) === 0) this.#sync(node);
    node.raft = undefined;
    node.write = undefined;
    node.reads = [];
  }

  #propose(node: Node): void {
    const payload = new Uint8Array(nextInt(this.#random, 0, 40)).fill(++this.#proposals % 256);
    this.#feed(node, [{ type: 'propose', payload }]);
  }

  #suspect(node: Node): void {
    if (node.raft?.leader === undefined) return;
    this.#feed(node, [{ type: 'peerDown', leader: node.raft.leader, term: node.raft.hard.term }]);
  }

  #sync(node: Node): void {
    if (node.write !== undefined) node.disk = afterWrite(node.disk, node.write);
  }

  #complete(node: Node): void {
    const { write } = node;
    if (write === undefined || node.raft === undefined) return;
    this.#sync(node);
    node.write = undefined;
    this.#feed(node, [{ type: 'written', seq: write.seq }]);
  }

  /** A cut of the state at what is applied, and some of the log behind it forgotten. */
  #cut(node: Node): void {
    const { raft, applied, write } = node;
    if (raft === undefined || write !== undefined || applied > stableIndex(raft) || applied <= node.disk.snapshot.index)
      return;
    this.coverage.cuts++;
    const term = termOf(raft, applied);
    check(term !== undefined, `${node.self.node} has applied ${applied} and does not know its term`);
    const { configuration, index: configurationIndex } = configurationAt(raft, applied);
    const meta = { index: applied, term, configuration, configurationIndex };
    const anchorIndex = nextInt(this.#random, raft.log.anchor.index, applied);
    const anchor = { index: anchorIndex, term: termOf(raft, anchorIndex) ?? 0 };
    const kept = node.disk.entries.filter(({ index }) => index > anchorIndex);
    node.disk = { ...node.disk, snapshot: meta, anchor, entries: kept };
    this.#feed(node, [
      { type: 'applied', index: applied },
      { type: 'snapshotTaken', meta },
      { type: 'compact', index: anchorIndex },
    ]);
  }

  #deliver(): void {
    if (this.#packets.length === 0) return;
    const dice = nextInt(this.#random, 0, 99);
    // Mostly near the front, so that the network is slow rather than broken.
    const at = nextInt(this.#random, 0, Math.min(this.#packets.length - 1, dice < 70 ? 3 : 1_000));
    const [packet] =
      dice < 95 || this.#packets[at]?.type !== 'message' ? this.#packets.splice(at, 1) : [this.#packets[at]];
    if (packet === undefined || (dice < 8 && packet.type === 'message')) return;
    const { from, to } = packet.type === 'message' ? packet.message : packet;
    const cutOff = [from, to].some((end) => sameMember(end, this.#isolated?.self));
    if (!cutOff || packet.type === 'snapshotSent') this.#take(packet);
    else if (packet.type === 'snapshot')
      this.#packets.push({ type: 'snapshotSent', from: to, to: from, index: packet.meta.index, ok: false });
  }

  #take(packet: Packet): void {
    const to = this.nodes.find(
      (node) => keyOf(node.self) === keyOf(packet.type === 'message' ? packet.message.to : packet.to),
    );
    if (packet.type === 'snapshot') {
      const ok = to?.raft !== undefined && !isInstalling(to.raft) && nextInt(this.#random, 0, 9) > 0;
      const { from, meta, term, request } = packet;
      this.#packets.push({ type: 'snapshotSent', from: packet.to, to: from, index: meta.index, ok });
      if (!ok) return;
      this.#feed(to, [
        { type: 'message', message: { type: 'installSnapshot', from, to: to.self, term, meta, request } },
      ]);
    } else if (to?.raft === undefined) {
      return;
    } else if (packet.type === 'snapshotSent') {
      this.#feed(to, [{ type: 'snapshotSent', to: packet.from, index: packet.index, ok: packet.ok }]);
    } else {
      this.#feed(to, [{ type: 'message', message: packet.message }]);
    }
  }

  #feed(node: Node, inputs: readonly Input[]): void {
    const { raft } = node;
    if (raft === undefined) return;
    const before: Position & { commit: number } = { index: lastIndex(raft), term: raft.hard.term, commit: raft.commit };
    for (const input of inputs) for (const effect of step(raft, input)) this.#perform(node, raft, effect);
    for (const effect of settle(raft)) this.#perform(node, raft, effect);
    check(raft.hard.term >= before.term, `the term of ${node.self.node} fell from ${before.term}`);
    check(raft.commit >= before.commit, `the commit index of ${node.self.node} fell from ${before.commit}`);
    check(raft.commit <= lastIndex(raft) && raft.applied <= raft.commit, `order of indexes: ${this.#describe(node)}`);
    check(stableIndex(raft) <= lastIndex(raft), `${node.self.node} is durable beyond its end`);
    if (raft.role.type === 'leader' && this.#rules.leads(node, raft)) this.coverage.leaders++;
    if (this.#hashed) this.hashes.push(hashState(raft));
  }

  #perform(node: Node, raft: Raft, effect: Effect): void {
    switch (effect.type) {
      case 'send':
        Object.freeze(effect.message);
        if (effect.message.type === 'timeoutNow') this.coverage.handovers++;
        this.#rules.sent(node, effect.message);
        this.#packets.push({ type: 'message', message: effect.message });
        return;
      case 'persist':
        check(node.write === undefined, `${node.self.node} has two writes under way`);
        node.write = effect.write;
        return;
      case 'committed':
        this.coverage.commits += this.#rules.committed(node, raft, effect.index, this.nodes);
        node.applied = effect.index;
        return;
      case 'restored':
        this.coverage.installs++;
        this.#rules.restored(effect.meta);
        node.applied = effect.meta.index;
        return;
      case 'sendSnapshot': {
        const meta = node.disk.snapshot;
        check(meta.index >= effect.meta.index, 'the durable cut is older than the one to send');
        this.#packets.push({
          type: 'snapshot',
          from: node.self,
          to: effect.to,
          term: raft.hard.term,
          meta,
          request: effect.request,
        });
        return;
      }
      case 'pendingRound':
        node.reads.push({ round: effect.round, committed: this.#rules.end });
        return;
      case 'confirmed':
        this.coverage.confirmed++;
        for (const read of node.reads) {
          if (read.round > effect.round) continue;
          check(raft.commit >= read.committed, `a read at ${node.self.node} misses what was committed before it (RD2)`);
        }
        node.reads = node.reads.filter((read) => read.round > effect.round);
        return;
      case 'roleChanged':
        node.reads = [];
        return;
      case 'logShrank':
        throw new Violation(
          `${effect.member.node} is said to have lost entries: ${effect.acknowledged} > ${effect.durable}`,
        );
      case 'proposed':
      case 'rejected':
      case 'snapshotRefused':
      case 'transferAborted':
      case 'notMember':
    }
  }
}
