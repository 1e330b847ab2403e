/**
 * One member of a replica scenario: the whole replica under the executor of production, over a memory disk, in the
 * hands of the scenario.
 */
import type { Incarnation } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Executor } from '../../src/node/executor.js';
import { createExecutor } from '../../src/node/executor.js';
import type { Member } from '../../src/raft/types.js';
import type { PeerEffect, Store } from '../../src/replica/ports.js';
import type { Replica } from '../../src/replica/replica.js';
import { createReplica } from '../../src/replica/replica.js';
import type { CallId, CallResult, Event, Genesis, ReplicaOptions } from '../../src/replica/types.js';
import type { MemoryDisk, MemoryStore } from '../../src/testing/memory-store.js';
import { createMemoryDisk, openMemoryStore } from '../../src/testing/memory-store.js';
import { commandCodec } from '../../src/wire/command.js';
import type { DiskView, NodeView } from './invariants.js';
import { viewOf } from './node-view.js';
import { STATE_LIMITS, WATCH_LIMITS } from '../../src/base/limits.js';

/** Tokens of a scenario are small: the base, and the index of the entry. */
export const BASE = 1000;
/** The holder of every lease. */
export const HOLDER = 'client';
/** The wall clock at time 0. */
export const START_UNIX_MS = 1_800_000_000_000;
/** The time-outs of the product, and cuts only when the scenario asks. */
const TIMES = { heartbeatMs: 100, electionMinMs: 500, electionMaxMs: 1000, tickMs: 10, cutMs: 1_000_000 };
const LIMITS = {
  diskFloorBytes: 0,
  maxAppendBytes: 10_000,
  maxInflightAppends: 16,
  maxInflightBytes: 100_000,
  maxUnappliedEntries: 1_000,
  timedPerTick: 1_000,
  cutBytes: 1_000_000,
  logKeepTransferBytes: 1_000_000,
  maxHeldCalls: 100,
  waiterGraceMs: 5_000,
  limits: STATE_LIMITS,
  auditGrants: false,
  auditReleases: false,
  watch: WATCH_LIMITS,
};

/** The record that begins the history of a scenario. */
export function genesisOf(
  members: readonly Member[],
  settings: { readonly finishedRequests: number; readonly holdMs: number },
): Genesis {
  return {
    incarnation: 'f'.repeat(32) as Incarnation,
    cluster: 'scenario',
    history: { base: BASE as Revision, start: 0 },
    startTerm: 0,
    holdMs: settings.holdMs,
    limits: { ...STATE_LIMITS, finishedRequests: settings.finishedRequests },
    members,
    stateDigest: '',
  };
}

/** What a node needs of the world around it. */
export interface NodeSurroundings {
  /** Virtual milliseconds. */
  readonly now: () => number;
  /** The node wants {@link ReplicaNode.take} before any message arrives. */
  readonly wanted: () => void;
  /** An effect for the other members. */
  readonly perform: (effect: PeerEffect) => void;
  readonly answer: (id: CallId, result: CallResult) => void;
  /** What was handed to the store, and lines for the log. */
  readonly say: (line: string) => void;
  /** The disk refused a write: the process has to end. */
  readonly refused: (error: Error) => void;
}

interface Running {
  readonly replica: Replica;
  readonly store: MemoryStore;
  readonly executor: Executor;
  /** The turn that the executor wants. */
  turn: (() => void) | undefined;
}

/** See the file's comment. */
export class ReplicaNode {
  readonly name: string;
  readonly member: Member;
  readonly disk: MemoryDisk;
  running: Running | undefined;
  run = 0;
  paused = false;
  /** No write ends until the scenario lets it. */
  stalled = false;
  /** How far its wall clock is off. */
  wallOffsetMs = 0;
  /** What arrived while it was paused. */
  readonly inbox: Event[] = [];
  /** Ends the write under way. */
  complete: (() => void) | undefined;
  readonly #options: ReplicaOptions;

  constructor(
    member: Member,
    genesis: Genesis,
    own: Pick<ReplicaOptions, 'seed' | 'logKeepBytes' | 'maxUncommittedBytes'>,
  ) {
    this.name = member.node;
    this.member = member;
    this.disk = createMemoryDisk(genesis);
    const addresses = genesis.members.map(({ node }) => ({ node, peerAddress: `${node}:1` }));
    this.#options = { self: member, addresses, ...TIMES, ...LIMITS, ...own };
  }

  /** Starts the process from its disk. */
  start(world: NodeSurroundings): void {
    const store = openMemoryStore(this.disk, {
      schedule: (complete) => {
        this.complete = complete;
      },
    });
    this.run++;
    const { loaded } = store;
    const replica = createReplica({ ...this.#options, seed: this.#options.seed + this.run }, commandCodec, loaded);
    const executor = createExecutor(replica, {
      store: this.#announced(store, world),
      peers: { perform: world.perform, chunkStaged: () => undefined },
      clients: {
        answer: (id, _header, result) => {
          world.answer(id, result);
        },
      },
      watchers: {
        perform: ({ id }) => {
          throw new Error(`no scenario watches, and watch ${id} is answered`);
        },
      },
      time: () => ({ nowMs: world.now(), unixMs: START_UNIX_MS + this.wallOffsetMs + world.now() }),
      schedule: (turn) => {
        running.turn = turn;
        world.wanted();
      },
      observer: {
        log: ({ level, message, fields: { domain, token, holder } }) => {
          if (level === 'audit') world.say([`${this.name}: ${message}`, domain, token, holder].join(' '));
        },
        serving: () => undefined,
        stopped: () => undefined,
        failed: (cause, error) => {
          if (cause === 'assertion') throw error;
          world.refused(error);
        },
      },
    });
    const running: Running = { replica, store, executor, turn: undefined };
    this.running = running;
    this.paused = false;
    this.stalled = false;
  }

  /** The process ends; `lose` also loses the write under way. */
  crash(lose: boolean): void {
    this.running?.executor.halt();
    this.running?.store.crash({ lose: 'unsynced', underWay: lose ? 'lost' : 'kept' });
    this.running = undefined;
    this.complete = undefined;
    this.inbox.length = 0;
  }

  /** Hands a batch over, for the next turn. */
  dispatch(events: readonly Event[]): void {
    for (const event of events) this.running?.executor.dispatch(event);
  }

  /** Takes the turn that the executor wants, if it wants one. */
  take(): void {
    const { running } = this;
    const turn = running?.turn;
    if (running !== undefined) running.turn = undefined;
    turn?.();
  }

  /** The store, which says what of interest is handed to it. */
  #announced(store: MemoryStore, world: NodeSurroundings): Store {
    return {
      loaded: store.loaded,
      listen: (listener) => {
        store.listen(listener);
      },
      write: (write) => {
        store.write(write);
      },
      cut: (cut) => {
        store.cut(cut);
        world.say(`${this.name} cuts at ${cut.meta.index}`);
      },
      stage: (chunk) => {
        store.stage(chunk);
      },
      openSnapshot: () => store.openSnapshot(),
      close: () => store.close(),
    };
  }

  /** The running replica; throws where a scenario speaks of a stopped one. */
  up(): Replica {
    if (this.running === undefined) throw new Error(`${this.name} is not running`);
    return this.running.replica;
  }

  /** What the invariants look at. */
  view(): NodeView {
    const { raft, applied } = this.up().context;
    return viewOf(raft, { member: this.member, run: this.run, applied });
  }

  /** The durable part. */
  diskView(): DiskView {
    const { hard, anchor, entries, table } = this.disk.image;
    return {
      member: this.member,
      hard,
      last: entries.at(-1)?.index ?? anchor.index,
      cut: table.snapshot.index,
      termAt: (index) => (index === anchor.index ? anchor.term : entries[index - anchor.index - 1]?.term),
    };
  }
}
