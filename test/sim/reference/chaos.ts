/** Faults and clients over the memory cluster, all fixed by one seed: what the relation must accept. */
import { STATE_LIMITS } from '../../../src/base/limits.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import { createRandom, nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Call, LeaseRef } from '../../../src/base/api.js';
import type { ClusterCall } from '../../support/cluster-node.js';
import type { Fault, Observer } from '../observation.js';
import { ObservedCluster } from './observed-cluster.js';
import { Relation } from './relation.js';

/** What a run came to. */
export interface ChaosResult {
  readonly fault: Fault | undefined;
  /** Of the product: an assertion, or no service at the end. */
  readonly error: Error | undefined;
  readonly steps: number;
  readonly grants: number;
  /** Milliseconds of virtual time. */
  readonly at: number;
}

class Stop extends Error {}

/** What is asked of each domain where clients wait. */
const KINDS = [
  { waitMs: [200, 4_000], coolDownMs: 0, slots: 1 },
  { waitMs: [200, 4_000], coolDownMs: 700, slots: 1 },
  { waitMs: [200, 4_000], coolDownMs: 0, slots: 2 },
] as const;

/**
 * Runs one seed to its end or its first fault. `between` may stand between the run and the relation, to show it
 * something else than what happened. `waiting`: clients wait, walk away, take slots and close domains for a while.
 */
export async function runChaos(
  seed: number,
  virtualMs: number,
  between: (relation: Observer) => Observer = (relation) => relation,
  waiting = false,
): Promise<ChaosResult> {
  const random = createRandom(seed);
  let fault: Fault | undefined;
  let error: Error | undefined;
  const relation = new Relation((found) => {
    fault = found;
  });
  const cluster = new ObservedCluster(between(relation), {
    seed,
    nodes: [3, 5, 3, 1, 3, 4][seed % 6] ?? 3,
    limits: { ...STATE_LIMITS, finishedRequests: nextInt(random, 3, 50) },
    holdMs: nextInt(random, 0, 3) === 0 ? 2_000 : 0,
    options: {
      cutMs: nextInt(random, 10, 500),
      cutBytes: 2_000,
      logKeepBytes: nextInt(random, 200, 5_000),
      maxInflightAppends: nextInt(random, 1, 8),
      maxAppendBytes: nextInt(random, 100, 4_000),
    },
  });
  cluster.loss = nextInt(random, 0, 1) * nextInt(random, 0, 100);
  cluster.latency = [0.1, nextInt(random, 1, 30)];
  cluster.diskMs = [0.1, nextInt(random, 1, 20)];
  const clients = Array.from(
    { length: 6 },
    (_, at) => new ChaosClient(cluster, random, `d${at % 3}`, waiting ? KINDS[at % 3] : undefined),
  );
  try {
    while (cluster.now < virtualMs) {
      await cluster.run(nextInt(random, 1, 60));
      for (const client of clients) client.act();
      if (nextInt(random, 0, 29) === 0) breakSomething(cluster, random);
      if (fault !== undefined) throw new Stop();
    }
  } catch (cause) {
    if (!(cause instanceof Stop)) error = cause instanceof Error ? cause : new Error(String(cause));
  }
  let grants = 0;
  for (const client of clients) grants += client.grants;
  return { fault, error, steps: cluster.steps, grants, at: cluster.now };
}

class ChaosClient {
  grants = 0;
  readonly #cluster: ObservedCluster;
  readonly #random: Random;
  readonly #domain: Domain;
  readonly #kind: (typeof KINDS)[number] | undefined;
  #call: ClusterCall | undefined;
  #requestId: RequestId | undefined;
  #lease: LeaseRef | undefined;

  constructor(cluster: ObservedCluster, random: Random, domain: string, kind: (typeof KINDS)[number] | undefined) {
    this.#kind = kind;
    this.#cluster = cluster;
    this.#random = random;
    this.#domain = domain as Domain;
  }

  act(): void {
    if (this.#call !== undefined) {
      if (this.#call.result === undefined && this.#cluster.now - this.#call.sentAt < 2_500) {
        if (this.#kind === undefined || this.#int(0, 99) > 0) return;
        this.#cluster.cancel(this.#call);
      }
      this.#finish(this.#call);
    }
    const names = [...this.#cluster.nodes.keys()].filter((name) => this.#cluster.node(name).running !== undefined);
    const node = names[this.#int(0, names.length - 1)];
    // Long pauses let leases be checkpointed and expire.
    if (node === undefined || this.#int(0, 12) > 3) return;
    this.#call = this.#cluster.call(node, this.#next(), this.#int(300, 3_000));
  }

  #next(): Call {
    const domain = this.#domain;
    const lease = this.#lease ?? { domain, token: this.#cluster.genesis.history.base };
    const freshness = this.#int(0, 1) === 0 ? 'local' : 'linearizable';
    switch (this.#int(0, 13)) {
      case 0:
        return { type: 'verify', lease, freshness };
      case 1:
        return { type: 'get', domain, freshness };
      case 2:
        return { type: 'withdraw', domain, requestId: this.#requestId ?? this.#newId() };
      case 3:
        return { type: 'forceRelease', ...lease, note: 'chaos' };
      case 4:
        this.#lease = undefined;
        return { type: 'release', lease };
      case 5:
        return { type: 'getStatus' };
      case 6:
        return this.#int(0, 3) === 0 ? { type: 'transferLeadership', to: undefined } : { type: 'getStateHash' };
      default:
        if (this.#lease !== undefined && this.#int(0, 4) > 0) return { type: 'renew', leases: [this.#lease] };
        // Half of the attempts repeat an id.
        if (this.#requestId === undefined || this.#int(0, 1) === 0) this.#requestId = this.#newId();
        return {
          type: 'acquire',
          domain,
          requestId: this.#requestId,
          holder: 'chaos',
          ttlMs: 3_000,
          waitMs: this.#kind === undefined ? 0 : this.#int(...this.#kind.waitMs),
          metadata: [],
          coolDownMs: this.#kind?.coolDownMs ?? 0,
          slots: this.#kind?.slots ?? 1,
          seenRevision: this.#int(0, 3) === 0 ? lease.token : ZERO_REVISION,
        };
    }
  }

  #finish({ result }: ClusterCall): void {
    this.#call = undefined;
    if (result?.type !== 'answer') return;
    const { answer } = result;
    if (answer.type === 'acquire') {
      if (answer.outcome.type === 'granted') {
        this.grants++;
        this.#lease = { domain: answer.outcome.lease.domain, token: answer.outcome.lease.token };
      } else if (answer.outcome.type === 'ended') this.#requestId = undefined;
    } else if (answer.type === 'renew' && answer.results[0]?.type === 'ended') this.#lease = undefined;
  }

  #newId(): RequestId {
    const hex = Array.from({ length: 12 }, () => this.#int(0, 15).toString(16)).join('');
    return `00000000-0000-4000-8000-${hex}` as RequestId;
  }

  #int(low: number, high: number): number {
    return nextInt(this.#random, low, high);
  }
}

function breakSomething(cluster: ObservedCluster, random: Random): void {
  const names = [...cluster.nodes.keys()];
  const name = names[nextInt(random, 0, names.length - 1)] ?? '';
  const node = cluster.node(name);
  switch (nextInt(random, 0, 8)) {
    case 0:
      if (node.running !== undefined) cluster.kill(name);
      break;
    case 1:
    case 2:
      for (const each of names) if (cluster.node(each).running === undefined) cluster.start(each);
      break;
    case 3:
      if (node.running !== undefined && !node.paused) cluster.pause(name);
      break;
    case 4:
      for (const each of names) if (cluster.node(each).paused) cluster.resume(each);
      break;
    case 5:
      cluster.cut(name, ...names.filter((other) => other !== name && nextInt(random, 0, 1) === 0));
      break;
    case 6:
      cluster.heal();
      break;
    case 7:
      node.running?.store.stall();
      break;
    default:
      for (const each of names) cluster.node(each).running?.store.resume();
  }
}
