/** Short ways to say who waits for what, and what became of it. */
import type { AcquireAnswer, AcquireCall, LeaseView } from '../../src/base/api.js';
import type { Domain } from '../../src/base/ids.js';
import { queueOf } from '../../src/lease/lookup.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import type { ClusterCall, ClusterSettings } from '../support/cluster-node.js';
import { acquireOf, answerOf, granted, others } from './helpers.js';

/** TTL of every lease: long enough that none ends by itself in a test that does not say so. */
export const TTL_MS = 60_000;
/** What `acquireOf` takes for a waiter. */
export const WAITING = { ttlMs: TTL_MS, waitMs: 600_000 } as const;

/** A cluster with a leader and the names of its nodes. */
export interface Scene {
  readonly cluster: MemoryCluster;
  readonly leader: string;
  readonly followers: readonly [string, string];
}

/** Three nodes; one leads. */
export async function scene(settings: ClusterSettings = {}): Promise<Scene> {
  const cluster = new MemoryCluster(settings);
  const leader = await cluster.untilLeader();
  const [one, two] = others(cluster, leader);
  if (one === undefined || two === undefined) throw new Error('three nodes expected');
  return { cluster, leader, followers: [one, two] };
}

/** A scene in which somebody holds `d`. */
export async function heldScene(settings: ClusterSettings = {}): Promise<Scene & { readonly lease: LeaseView }> {
  const made = await scene(settings);
  const lease = await granted(made.cluster, made.leader, acquireOf('d', { ttlMs: TTL_MS, holder: 'first' }));
  return { ...made, lease };
}

/** A request that waits, with its newest call. */
export interface Waiting {
  readonly acquire: AcquireCall;
  call: ClusterCall;
}

/** Calls an acquire that waits for `domain`, and lets it get into the queue. */
export async function wait(
  cluster: MemoryCluster,
  node: string,
  holder: string,
  more: Partial<AcquireCall> = {},
  timeoutMs = 100_000,
): Promise<Waiting> {
  const acquire = acquireOf('d', { ...WAITING, holder, ...more });
  const call = cluster.call(node, acquire, timeoutMs);
  await cluster.until(`${holder} to wait`, () => waiters(cluster, acquire.domain).includes(holder));
  await cluster.run(5);
  return { acquire, call };
}

/** Calls again with the same id. */
export function callAgain(cluster: MemoryCluster, node: string, waiting: Waiting, timeoutMs = 100_000): ClusterCall {
  waiting.call = cluster.call(node, waiting.acquire, timeoutMs);
  return waiting.call;
}

/** Who waits for `domain`, as the leader has it. */
export function waiters(cluster: MemoryCluster, domain = 'd'): string[] {
  const leader = cluster.leader();
  if (leader === undefined) return [];
  return queueOf(cluster.replica(leader).context.lease, domain as Domain).map(({ holder }) => holder);
}

/** Who holds `domain`, as the leader has it. */
export function holderOf(cluster: MemoryCluster, domain = 'd'): string | undefined {
  const leader = cluster.leader();
  if (leader === undefined) return undefined;
  return cluster.replica(leader).context.lease.leases.get(domain as Domain)?.holder;
}

/** What the call came to; undefined while it is open. */
export function outcome(call: ClusterCall): AcquireAnswer['outcome'] | undefined {
  if (call.result === undefined) return undefined;
  const answer = answerOf(call.result);
  if (answer.type !== 'acquire') throw new Error(`an acquire was answered by ${answer.type}`);
  return answer.outcome;
}

/** What the call comes to. */
export async function outcomeOf(
  cluster: MemoryCluster,
  call: ClusterCall,
  limitMs = 30_000,
): Promise<AcquireAnswer['outcome']> {
  await cluster.answered(call, limitMs);
  const found = outcome(call);
  if (found === undefined) throw new Error('no outcome');
  return found;
}

/** The call must be granted. */
export async function grantOf(cluster: MemoryCluster, call: ClusterCall, limitMs = 30_000): Promise<LeaseView> {
  const found = await outcomeOf(cluster, call, limitMs);
  if (found.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(found)}`);
  return found.lease;
}
