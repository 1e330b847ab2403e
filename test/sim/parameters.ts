/**
 * The parameters of one run, drawn from its seed: each run is another kind of world (swarm testing). Small limits make
 * rare paths common. There is one distribution, for clean runs and for the detection gate alike.
 */
import type { Random } from '../../src/base/random.js';
import { STATE_LIMITS } from '../../src/base/limits.js';
import { WATCH_LIMITS } from '../../src/base/limits.js';
import { nextInt } from '../../src/base/random.js';
import type { StateLimits } from '../../src/lease/types.js';
import type { ReplicaOptions } from '../../src/replica/types.js';
import { between, chance, skewed, skewedInt, stream, weighted } from './chance.js';
import { FAULT_WEIGHTS } from './fault-kinds.js';
import type { FaultKind } from './fault-kinds.js';
import type { NetworkParameters } from './network/parameters.js';

/** What a replica is run with but for who it is. */
export type ReplicaParameters = Omit<ReplicaOptions, 'self' | 'addresses' | 'seed' | 'limits'>;

/** Disks: how long a sync, and any other operation, takes at least and at most. */
export interface DiskParameters {
  readonly syncMs: readonly [number, number];
  readonly stepMs: readonly [number, number];
  /** One in so many operations of a disk of bytes is preceded by a trial: what would a start find now? */
  readonly trialEvery: number;
}

/** The clients and what they do. */
export interface ClientParameters {
  /** Processes that run the production client. */
  readonly workers: number;
  /** Sessions that speak the protocol themselves. */
  readonly raws: number;
  readonly domains: number;
  readonly ttlMs: readonly [number, number];
  /** Milliseconds between two acts of one client, at least and at most. */
  readonly pauseMs: readonly [number, number];
  /** Milliseconds to a node, at least and at most. */
  readonly latencyMs: readonly [number, number];
  /** In 1 000 calls: how many, or whose answers, get lost. */
  readonly loss: number;
  /** In 1 000 leases of a worker: in how many its machine sleeps. */
  readonly sleeps: number;
  /** In 1 000 grants of a session: how many leases it leaves to their end, to be there when it comes. */
  readonly toTheEnd: number;
  /** In 1 000 acquires: how many may wait, and for how long, in milliseconds at least and at most. */
  readonly waits: number;
  readonly waitMs: readonly [number, number];
  /** In 1 000 acquires: how many ask for a cool-down, and of how many milliseconds, at least and at most. */
  readonly coolDowns: number;
  readonly coolDownMs: readonly [number, number];
  /** How many slots each domain has: 1 for one that does not count. */
  readonly slots: readonly number[];
  /** Processes that observe with the production client; few, since each is told everything. */
  readonly watchers: number;
  /** In 1 000 observations of a watcher: after how many it reads nothing for a while. */
  readonly naps: number;
  /** Messages that are on their way to a watcher before the node waits for it to read. */
  readonly window: number;
  /** Mean milliseconds between two changes of the limits by an operator; 0 for none. */
  readonly limitsEveryMs: number;
}

/** Everything that a run is. */
export interface Parameters {
  readonly seed: number;
  readonly nodes: number;
  /** Every message and record goes through the real codecs, and the disk holds bytes. */
  readonly codecs: boolean;
  readonly replica: ReplicaParameters;
  readonly network: Omit<NetworkParameters, 'codecs'>;
  readonly disk: DiskParameters;
  readonly clients: ClientParameters;
  readonly limits: StateLimits;
  readonly holdMs: number;
  /** Milliseconds between the arrival of an event at a process and the turn that handles it, at most. */
  readonly turnMs: number;
  /** Rate of each machine's clocks; the contract covers 0.99 to 1.01. */
  readonly rates: readonly number[];
  /** How far each member's wall clock is off at the start, in milliseconds. */
  readonly wallOffsetsMs: readonly number[];
  /** All members start within so many true milliseconds. */
  readonly startsMs: number;
  /** The first one, which writes the record of a new history, starts behind all others: it need not ask any of them twice. */
  readonly firstStartsLast: boolean;
  /** True milliseconds of the safety phase. */
  readonly durationMs: number;
  /** The end waits for the leases that nobody released, too. */
  readonly toTheLastLease: boolean;
  /** Mean true milliseconds between two faults. */
  readonly faultEveryMs: number;
  /** How long a fault lasts at least and at most, true milliseconds. */
  readonly faultMs: readonly [number, number];
  readonly faultWeights: readonly (readonly [FaultKind, number])[];
}

const NODES = [
  [3, 73],
  [5, 6],
  [1, 6],
  [2, 5],
  [4, 3],
  [7, 1],
  [6, 1],
] as const;

/** The parameters of a run about everything; `profiles/draw.ts` says which runs are. */
export function drawParameters(seed: number): Parameters {
  const random = stream(seed, 'parameters');
  const nodes = weighted(random, NODES);
  const scale = weighted(random, [
    [0.2, 7],
    [0.4, 1.7],
    [1, 0.3],
  ] as const);
  const replica = { ...drawReplica(random, scale), watch: drawWatch(stream(seed, 'watch')) };
  const clients = { ...drawClients(random, replica), ...drawWatchers(stream(seed, 'watchers')) };
  return {
    seed,
    nodes,
    codecs: chance(random, 280),
    replica,
    network: drawNetwork(random, replica),
    disk: {
      syncMs: [0.1, skewed(random, 0.3, replica.electionMinMs / 12)],
      stepMs: [0.01, skewed(random, 0.05, 2)],
      trialEvery: skewedInt(random, 20, 300),
    },
    clients: { ...clients, limitsEveryMs: drawLimitsEvery(stream(seed, 'limits operator'), clients.ttlMs[0]) },
    limits: drawLimits(stream(seed, 'limits')),
    holdMs: chance(random, 100) ? nextInt(random, 100, 2_000) : 0,
    turnMs: chance(random, 400) ? skewed(random, 0.1, replica.tickMs) : 0,
    rates: Array.from({ length: nodes }, () => drawRate(random)),
    wallOffsetsMs: drawWallOffsets(random, nodes),
    ...drawStarts(random, replica),
    durationMs: between(random, 1, 1.6) * clients.ttlMs[0],
    toTheLastLease: chance(random, 300),
    faultEveryMs: skewed(random, 150, 2_500),
    // From less than a heartbeat to more than a lease.
    faultMs: [replica.heartbeatMs / 2, 1.5 * clients.ttlMs[1]],
    faultWeights: FAULT_WEIGHTS.map(([kind, weight]) => [
      kind,
      chance(random, 450) ? 0 : weight * skewed(random, 0.3, 3),
    ]),
  };
}

/** The rate of a machine's clocks: the corners of what the contract covers are where it breaks. */
export function drawRate(random: Random): number {
  const kind = weighted(random, [
    ['true', 1],
    ['fast', 2],
    ['slow', 2],
    ['some', 2],
  ] as const);
  switch (kind) {
    case 'true':
      return 1;
    case 'fast':
      return 1.01;
    case 'slow':
      return 0.99;
    case 'some':
      return between(random, 0.99, 1.01);
  }
}

/** Mostly so that a cluster forms at once: what a run is about comes after that. */
function drawStarts(
  random: Random,
  { electionMaxMs }: ReplicaParameters,
): Pick<Parameters, 'startsMs' | 'firstStartsLast'> {
  return chance(random, 300)
    ? { startsMs: 2 * electionMaxMs, firstStartsLast: false }
    : { startsMs: 20, firstStartsLast: true };
}

function drawReplica(random: Random, scale: number): Omit<ReplicaParameters, 'watch'> {
  const electionMinMs = 500 * scale;
  // Now and then next to no spread: votes split (E6).
  const electionMaxMs = electionMinMs * (chance(random, 100) ? 1.1 : 2);
  return {
    tickMs: 50 * scale,
    heartbeatMs: 125 * scale,
    electionMinMs,
    electionMaxMs,
    diskFloorBytes: 1_000,
    maxAppendBytes: skewedInt(random, 1, 100_000),
    maxInflightAppends: skewedInt(random, 1, 64),
    maxInflightBytes: skewedInt(random, 100, 1_000_000),
    maxUncommittedBytes: chance(random, 200) ? skewedInt(random, 200, 5_000) : 16 * 1024 * 1024,
    maxUnappliedEntries: chance(random, 200) ? skewedInt(random, 2, 50) : 50_000,
    // Fewer than a new leader finds: some are called for, or end, before they are timed.
    timedPerTick: 1,
    cutBytes: skewedInt(random, 100, 5_000),
    cutMs: skewedInt(random, 5, 500),
    logKeepBytes: skewedInt(random, 20, 4_000),
    logKeepTransferBytes: chance(random, 300) ? skewedInt(random, 500, 5_000) : 1_000_000,
    maxHeldCalls: chance(random, 200) ? skewedInt(random, 1, 10) : 10_000,
    // From less than an election to about as long as a lease.
    waiterGraceMs: skewedInt(random, 40, 3 * electionMaxMs),
    auditGrants: chance(random, 500),
    auditReleases: chance(random, 500),
  };
}

function drawNetwork(
  random: Random,
  { electionMinMs }: Pick<ReplicaParameters, 'electionMinMs'>,
): Omit<NetworkParameters, 'codecs'> {
  const bad = chance(random, 600);
  return {
    latencyMs: [0.05, skewed(random, 0.2, electionMinMs / 12)],
    spikeChance: chance(random, 500) ? nextInt(random, 0, 50) : 0,
    loss: bad && chance(random, 500) ? skewedInt(random, 1, 300) : 0,
    duplicate: bad && chance(random, 500) ? skewedInt(random, 1, 500) : 0,
    replay: bad && chance(random, 500) ? skewedInt(random, 1, 200) : 0,
    reorder: bad && chance(random, 500),
    chunkTwice: 0,
    keepAliveMs: between(random, 2, 10) * electionMinMs,
    chunkBytes: skewedInt(random, 1, 4_000),
    room: skewedInt(random, 4, 1_000),
  };
}

function drawClients(
  random: Random,
  { electionMaxMs }: Pick<ReplicaParameters, 'electionMaxMs'>,
): Omit<ClientParameters, keyof Watchers | 'limitsEveryMs'> {
  const least = 3 * electionMaxMs;
  const domains = weighted(random, [
    [1, 1],
    [8, 3],
    [20, 5],
  ] as const);
  const counts = chance(random, 450) ? 300 : 0;
  return {
    workers: nextInt(random, 1, 3),
    raws: nextInt(random, 1, 4),
    domains,
    ttlMs: [least, least * skewed(random, 1.1, 2)],
    pauseMs: [1, electionMaxMs * skewed(random, 0.02, 0.12)],
    latencyMs: [0.05, skewed(random, 0.2, electionMaxMs / 16)],
    loss: chance(random, 500) ? skewedInt(random, 1, 100) : 0,
    sleeps: chance(random, 400) ? skewedInt(random, 20, 300) : 0,
    toTheEnd: skewedInt(random, 10, 100),
    waits: chance(random, 850) ? skewedInt(random, 150, 900) : 0,
    waitMs: [20, 2 * least],
    coolDowns: chance(random, 400) ? skewedInt(random, 50, 600) : 0,
    coolDownMs: [1, least],
    slots: Array.from({ length: domains }, () => (chance(random, counts) ? nextInt(random, 2, 4) : 1)),
  };
}

/** What watchers do. */
type Watchers = Pick<ClientParameters, 'watchers' | 'naps' | 'window'>;

function drawWatchers(random: Random): Watchers {
  return {
    watchers: weighted(random, [
      [0, 6],
      [1, 3],
      [2, 1],
    ] as const),
    naps: chance(random, 600) ? skewedInt(random, 10, 400) : 0,
    window: nextInt(random, 1, 3),
  };
}

/** What is kept for watchers, and how much of it goes into a message: mostly next to nothing. */
function drawWatch(random: Random): ReplicaParameters['watch'] {
  // More than any one change of a run takes, as with the real limits; often less than an end, a grant and a queue take.
  const messageBytes = chance(random, 600) ? nextInt(random, 190, 350) : skewedInt(random, 350, 10_000);
  return {
    ...WATCH_LIMITS,
    ringBytes: skewedInt(random, 200, 100_000),
    batchBytes: skewedInt(random, 100, messageBytes),
    messageBytes,
  };
}

/** What the state machine is limited by: mostly only how much it remembers, now and then everything. */
function drawLimits(random: Random): StateLimits {
  const finishedRequests = chance(random, 700) ? skewedInt(random, 3, 40) : 65_536;
  if (!chance(random, 150)) return { ...STATE_LIMITS, finishedRequests };
  return {
    finishedRequests,
    queue: skewedInt(random, 1, 5),
    leasesPerPrincipal: skewedInt(random, 2, 8),
    waitersPerPrincipal: skewedInt(random, 1, 5),
    countingNames: nextInt(random, 0, 4),
    prefixes: [{ prefix: 'd1', leases: nextInt(random, 1, 4), waiters: nextInt(random, 0, 3) }],
  };
}

/** In some runs an operator changes them, a few times to some ten times in each. */
function drawLimitsEvery(random: Random, leastTtlMs: number): number {
  return chance(random, 120) ? skewed(random, leastTtlMs / 20, leastTtlMs / 3) : 0;
}

/** Mostly close together; now and then too far apart to form. */
function drawWallOffsets(random: Random, nodes: number): number[] {
  const spreadMs = weighted(random, [
    [10, 5],
    [3_000, 3],
    [9_000, 2],
    [15_000, 1],
  ] as const);
  return Array.from({ length: nodes }, () => between(random, 0, spreadMs));
}
