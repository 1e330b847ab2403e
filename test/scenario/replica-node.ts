/** One member of a replica scenario: the whole replica over a memory disk, in the hands of the scenario. */
import type { Incarnation } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Member } from '../../src/raft/types.js';
import type { Replica } from '../../src/replica/replica.js';
import { createReplica } from '../../src/replica/replica.js';
import type { Effect, Event, Genesis, ReplicaOptions } from '../../src/replica/types.js';
import type { MemoryDisk, MemoryStore } from '../../src/testing/memory-store.js';
import { createMemoryDisk, openMemoryStore } from '../../src/testing/memory-store.js';
import { commandCodec } from '../../src/wire/command.js';
import type { DiskView, NodeView } from './invariants.js';
import { viewOf } from './node-view.js';

/** Tokens of a scenario are small: the base, and the index of the entry. */
export const BASE = 1000;
/** The wall clock at time 0. */
const START_UNIX_MS = 1_800_000_000_000;
/** The time-outs of the product, and cuts only when the scenario asks. */
const TIMES = { heartbeatMs: 100, electionMinMs: 500, electionMaxMs: 1000, tickMs: 10, cutMs: 1_000_000 };
const LIMITS = {
  diskFloorBytes: 0,
  maxAppendBytes: 10_000,
  maxInflightAppends: 16,
  maxInflightBytes: 100_000,
  maxUnappliedEntries: 1_000,
  cutBytes: 1_000_000,
  logKeepTransferBytes: 1_000_000,
  maxHeldCalls: 100,
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
    limits: { finishedRequests: settings.finishedRequests },
    members,
    stateDigest: '',
  };
}

/** See the file's comment. */
export class ReplicaNode {
  readonly name: string;
  readonly member: Member;
  readonly disk: MemoryDisk;
  running: { readonly replica: Replica; readonly store: MemoryStore } | undefined;
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

  /** Starts the process from its disk; `report` gets what the disk reports. */
  start(report: (event: Event) => void): void {
    const store = openMemoryStore(this.disk, {
      schedule: (complete) => {
        this.complete = complete;
      },
    });
    store.listen({
      written: (seq) => {
        report({ type: 'written', seq });
      },
      cutWritten: (index) => {
        report({ type: 'cutWritten', index });
      },
      staged: (request, sequence) => {
        report({ type: 'staged', request, sequence });
      },
      failed: (error) => {
        throw error;
      },
    });
    this.run++;
    this.running = {
      replica: createReplica({ ...this.#options, seed: this.#options.seed + this.run }, commandCodec, store.loaded),
      store,
    };
    this.paused = false;
    this.stalled = false;
  }

  /** The process ends; `lose` also loses the write under way. */
  crash(lose: boolean): void {
    this.running?.store.crash({ lose: 'unsynced', underWay: lose ? 'lost' : 'kept' });
    this.running = undefined;
    this.complete = undefined;
    this.inbox.length = 0;
  }

  /** Hands a batch to the replica. */
  step(nowMs: number, events: readonly Event[]): Effect[] {
    return this.up().step({ nowMs, unixMs: START_UNIX_MS + this.wallOffsetMs + nowMs }, events);
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
