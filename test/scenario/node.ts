/**
 * One member of a raft scenario: the real core between a simulated disk, the network and a toy state machine that
 * keeps the list of what it applied.
 */
import { createRaft, entriesBetween, settle, step } from '../../src/raft/raft.js';
import type { Effect, Entry, Input, Member, Message, RaftOptions } from '../../src/raft/types.js';
import * as view from '../../src/raft/view.js';
import type { AppliedState, Cut, Image } from './disk.js';
import { Disk } from './disk.js';
import type { DiskView, Invariants, NodeView } from './invariants.js';
import { viewOf } from './node-view.js';
import { contentText, logText, member, memberText, positionText } from './text.js';

/** The core's state, opaque here. */
export type Raft = ReturnType<typeof createRaft>;

/** What a node needs of the world around it. */
export interface Surroundings {
  readonly invariants: Invariants;
  print(line: string): void;
  send(message: Message, cut: Cut | undefined): void;
  /** Effects that answer clients, after each step. */
  answered(node: SimNode, effect: Effect): void;
  applied(node: SimNode, entry: Entry): void;
}

/** A process with its memory: gone after a crash. */
interface Running {
  readonly raft: Raft;
  state: AppliedState;
  appliedIndex: number;
  committed: number;
  /** Snapshots received and not installed, by their position. */
  readonly staged: Map<string, Cut>;
  described: string;
}

/** See the file's comment. */
export class SimNode {
  readonly name: string;
  member: Member;
  disk: Disk;
  running: Running | undefined;
  run = 0;
  paused = false;
  applyHeld = false;
  /** Ticks since a leader's message arrived in this run: so that `elect` lets stickiness run out and no more. */
  quiet = Infinity;
  readonly inbox: (() => void)[] = [];
  readonly #world: Surroundings;
  readonly #options: RaftOptions;
  readonly #empty: Image;
  readonly #inputs: Input[] = [];

  constructor(options: RaftOptions, image: Image, empty: Image, world: Surroundings) {
    this.name = memberText(options.self);
    this.member = options.self;
    this.disk = new Disk(image);
    this.#options = options;
    this.#empty = empty;
    this.#world = world;
  }

  /** Starts the process from what the disk holds. */
  start(): void {
    const { hard, anchor, entries, cut } = this.disk.image;
    const self = this.member;
    this.run++;
    const raft = createRaft(
      { ...this.#options, self, seed: this.#options.seed + this.run },
      { hard, snapshot: cut.meta, anchor, entries },
    );
    const { index } = cut.meta;
    this.running = { raft, state: cut.state, appliedIndex: index, committed: index, staged: new Map(), described: '' };
    this.paused = false;
    this.applyHeld = false;
    this.quiet = Infinity;
    this.#world.invariants.restored(self, this.run, index);
    this.#describe();
  }

  /** The process ends; `lose` also loses what was not synced. */
  crash(lose: boolean): void {
    this.running = undefined;
    this.disk.crash(lose);
    this.inbox.length = 0;
    this.#inputs.length = 0;
  }

  /** A new, empty data directory under the same name, with the configuration that the cluster began with. */
  wipe(): void {
    const generation = (Number.parseInt(this.member.directory, 16) % 256) + 1;
    this.member = member(this.member.node, generation);
    this.disk = new Disk(this.#empty);
  }

  /** Hands one input to the core, then lets it settle; follows up until nothing more comes. */
  input(first: Input): void {
    this.#inputs.push(first);
    for (let input = this.#inputs.shift(); input !== undefined; input = this.#inputs.shift()) {
      const running = this.running;
      if (running === undefined) return;
      for (const effect of step(running.raft, input)) this.#perform(running, effect);
      for (const effect of settle(running.raft)) this.#perform(running, effect);
      this.#describe();
      this.applyCommitted();
    }
  }

  /** A message arrives. An installSnapshot comes with what has been staged. */
  receive(message: Message, cut: Cut | undefined): void {
    if (message.type === 'append' || message.type === 'heartbeat' || message.type === 'installSnapshot') this.quiet = 0;
    if (cut !== undefined) this.running?.staged.set(positionText(cut.meta), cut);
    this.input({ type: 'message', message });
  }

  /** The oldest write reaches the disk and is reported. */
  sync(): void {
    const failing = this.disk.failing;
    if (failing) {
      this.#world.print(`${this.name} ends: its disk refused a write`);
      this.crash(true);
      return;
    }
    const done = this.disk.sync();
    if (done === undefined) return;
    if (this.disk.stalled)
      this.#world.print(`${this.name} synced ${done.type === 'log' ? String(done.write.seq) : 'its cut'}`);
    if (done.type === 'log') this.input({ type: 'written', seq: done.write.seq });
    else this.input({ type: 'snapshotTaken', meta: done.cut.meta });
  }

  /** Writes the state as it is applied now to the disk's queue. */
  cut(): void {
    const { raft, state, appliedIndex } = this.up();
    const { configuration, index } = view.configurationAt(raft, appliedIndex);
    const meta = {
      index: appliedIndex,
      term: view.termOf(raft, appliedIndex) ?? 0,
      configuration,
      configurationIndex: index,
    };
    this.disk.pending.push({ type: 'cut', cut: { meta, state } });
  }

  /** The running process; throws where a scenario speaks of a stopped one. */
  up(): Running {
    if (this.running === undefined) throw new Error(`${this.name} is not running`);
    return this.running;
  }

  /** Applies what is committed, unless the apply worker is held. */
  applyCommitted(): void {
    const running = this.running;
    if (running === undefined || this.applyHeld || running.committed <= running.appliedIndex) return;
    for (const entry of entriesBetween(running.raft, running.appliedIndex, running.committed)) {
      this.#world.invariants.applied(this.member, this.run, entry);
      running.appliedIndex = entry.index;
      if (entry.kind === 'command') running.state = [...running.state, contentText(entry)];
      this.#world.applied(this, entry);
    }
    this.input({ type: 'applied', index: running.appliedIndex });
  }

  #perform(running: Running, effect: Effect): void {
    const print = (line: string): void => {
      this.#world.print(line);
    };
    switch (effect.type) {
      case 'send':
        this.#world.invariants.sent(effect.message, this.diskView(), this.view());
        this.#world.send(effect.message, undefined);
        return;
      case 'persist': {
        const { write } = effect;
        const staged = write.install === undefined ? undefined : running.staged.get(positionText(write.install));
        this.disk.pending.push({ type: 'log', write, staged });
        const vote = write.hard.vote === undefined ? '' : ` vote ${memberText(write.hard.vote)}`;
        const install = write.install === undefined ? '' : ` install ${positionText(write.install)}`;
        const cut = write.cutFrom === undefined ? '' : ` cut from ${write.cutFrom}`;
        const entries = write.entries.length === 0 ? '' : ` ${logText(write.entries)}`;
        print(`${this.name} writes ${write.seq}: t${write.hard.term}${vote}${install}${cut}${entries}`);
        return;
      }
      case 'committed':
        running.committed = Math.max(running.committed, effect.index);
        print(`${this.name} commits ${effect.index}`);
        return;
      case 'sendSnapshot': {
        const { cut } = this.disk.image;
        const { to, request } = effect;
        const { term } = running.raft.hard;
        this.#world.send({ type: 'installSnapshot', from: this.member, to, term, meta: cut.meta, request }, cut);
        return;
      }
      case 'restored': {
        const cut = running.staged.get(positionText(effect.meta));
        if (cut === undefined) throw new Error(`${this.name} restores a snapshot that was not staged`);
        running.state = cut.state;
        running.appliedIndex = effect.meta.index;
        running.committed = Math.max(running.committed, effect.meta.index);
        this.#world.invariants.restored(this.member, this.run, effect.meta.index);
        print(`${this.name} restores ${positionText(effect.meta)}`);
        return;
      }
      case 'proposed':
      case 'pendingRound':
      case 'rejected':
      case 'confirmed':
      case 'roleChanged':
        this.#world.answered(this, effect);
        return;
      case 'snapshotRefused':
      case 'transferAborted':
      case 'notMember':
      case 'logShrank':
        print(`${this.name} reports ${effect.type}`);
        return;
    }
  }

  /** Prints role, term and leader when they changed. */
  #describe(): void {
    const running = this.running;
    if (running === undefined) return;
    const { raft } = running;
    const leader = view.leaderOf(raft);
    const role = view.roleName(raft);
    const follows = role === 'follower' && leader !== undefined ? ` of ${memberText(leader)}` : '';
    const described = `${role}${follows} t${raft.hard.term}`;
    if (described !== running.described) this.#world.print(`${this.name} is ${described}`);
    running.described = described;
  }

  /** What the invariants look at. */
  view(): NodeView {
    const { raft, appliedIndex: applied } = this.up();
    return viewOf(raft, { member: this.member, run: this.run, applied });
  }

  /** The durable part. */
  diskView(): DiskView {
    const { hard, anchor, entries, cut } = this.disk.image;
    return {
      member: this.member,
      hard,
      last: this.disk.last,
      cut: cut.meta.index,
      termAt: (index) => (index === anchor.index ? anchor.term : entries[index - anchor.index - 1]?.term),
    };
  }
}
