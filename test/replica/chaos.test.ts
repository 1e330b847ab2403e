import { describe, expect, it } from 'vitest';
import { ELECTION_MAX_MS } from '../../src/base/limits.js';
import { createRandom, nextInt } from '../../src/base/random.js';
import type { Random } from '../../src/base/random.js';
import type { RequestId } from '../../src/base/ids.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import type { ClusterCall } from '../support/cluster-node.js';
import { acquireOf, expectEqualStates, newRequestId } from './helpers.js';

/** One client of the chaos: acquires, renews, releases, and counts its safe time as the five rules say. */
interface Client {
  readonly name: string;
  call: ClusterCall | undefined;
  doing: 'nothing' | 'acquire' | 'renew' | 'release';
  requestId: RequestId | undefined;
  domain: string;
  lease: { readonly token: number; safeUntil: number } | undefined;
}

interface Hold {
  readonly client: string;
  readonly token: number;
  readonly from: number;
  until: number;
}

const TTL_MS = 3_000;

/** Faults and clients until the time is over, then a healthy end in which everything must be served again. */
async function run(seed: number): Promise<number> {
  const random = createRandom(seed);
  const cluster = new MemoryCluster({
    seed,
    nodes: seed % 4 === 0 ? 5 : 3,
    limits: { finishedRequests: nextInt(random, 3, 50) },
    // Tiny limits make rare paths common.
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
  const holds = new Map<string, Hold[]>();
  const clients: Client[] = Array.from({ length: 6 }, (_, at) => ({
    name: `c${at}`,
    call: undefined,
    doing: 'nothing',
    requestId: undefined,
    domain: `d${at % 2}`,
    lease: undefined,
  }));
  const end = cluster.now + 30_000;
  while (cluster.now < end) {
    await cluster.run(nextInt(random, 1, 60));
    for (const client of clients) act(cluster, random, client, holds);
    if (nextInt(random, 0, 39) === 0) fault(cluster, random);
    checkOneLeaderATerm(cluster);
  }
  cluster.heal();
  cluster.loss = 0;
  for (const [name, node] of cluster.nodes) {
    if (node.paused) cluster.resume(name);
    if (node.running === undefined) cluster.start(name);
    node.running?.store.resume();
  }
  await cluster.until(
    `service after all faults ended (seed ${seed})`,
    () => cluster.leader() !== undefined,
    10 * ELECTION_MAX_MS,
  );
  await cluster.run(12_000);
  const count = checkHolds(holds);
  await expectEqualStates(cluster);
  return count;
}

function act(cluster: MemoryCluster, random: Random, client: Client, holds: Map<string, Hold[]>): void {
  if (client.call !== undefined) {
    if (client.call.result !== undefined) finish(client, client.call, holds, cluster.now);
    else if (cluster.now - client.call.sentAt > 4_000) client.call = undefined;
    else return;
  }
  if (client.lease !== undefined && cluster.now > client.lease.safeUntil) client.lease = undefined;
  const names = [...cluster.nodes.keys()].filter((name) => cluster.node(name).running !== undefined);
  const node = names[nextInt(random, 0, names.length - 1)];
  if (node === undefined || nextInt(random, 0, 3) === 0) return;
  const { lease } = client;
  if (lease === undefined) {
    // Half of the attempts repeat an id whose outcome is not known.
    const again = client.doing === 'acquire' && client.requestId !== undefined && nextInt(random, 0, 1) === 0;
    client.requestId = again ? client.requestId : newRequestId();
    client.doing = 'acquire';
    const requestId = client.requestId ?? newRequestId();
    client.call = cluster.call(
      node,
      acquireOf(client.domain, { holder: client.name, ttlMs: TTL_MS, requestId }),
      3_500,
    );
    return;
  }
  const ref = { ...acquireOf(client.domain), token: lease.token };
  const target = { domain: ref.domain, token: lease.token as never };
  if (nextInt(random, 0, 9) === 0) {
    client.doing = 'release';
    client.lease = undefined;
    lease.safeUntil = cluster.now;
    const hold = holds.get(client.domain)?.find((each) => each.token === lease.token && each.client === client.name);
    if (hold !== undefined) hold.until = Math.min(hold.until, cluster.now);
    client.call = cluster.call(node, { type: 'release', lease: target }, 3_500);
  } else {
    client.doing = 'renew';
    client.call = cluster.call(node, { type: 'renew', leases: [target] }, 1_500);
  }
}

function finish(client: Client, call: ClusterCall, holds: Map<string, Hold[]>, now: number): void {
  client.call = undefined;
  const { result } = call;
  if (result?.type !== 'answer') return;
  const { answer } = result;
  const safeUntil = call.sentAt + TTL_MS * 0.99 - 50;
  if (answer.type === 'acquire' && answer.outcome.type === 'granted') {
    client.doing = 'nothing';
    if (now >= safeUntil) return;
    const { token } = answer.outcome.lease;
    client.lease = { token, safeUntil };
    const all = holds.get(client.domain) ?? [];
    all.push({ client: client.name, token, from: call.answeredAt ?? now, until: safeUntil });
    holds.set(client.domain, all);
  } else if (
    answer.type === 'renew' &&
    client.lease !== undefined &&
    answer.results[0]?.type === 'live' &&
    now < client.lease.safeUntil
  ) {
    client.lease.safeUntil = Math.max(client.lease.safeUntil, safeUntil);
    const { token } = client.lease;
    const hold = holds.get(client.domain)?.find((each) => each.token === token && each.client === client.name);
    if (hold !== undefined) hold.until = client.lease.safeUntil;
  } else if (answer.type === 'renew' && answer.results[0]?.type === 'ended') client.lease = undefined;
  else if (answer.type === 'acquire') client.doing = 'nothing';
}

function fault(cluster: MemoryCluster, random: Random): void {
  const names = [...cluster.nodes.keys()];
  const name = names[nextInt(random, 0, names.length - 1)] ?? '';
  const node = cluster.node(name);
  switch (nextInt(random, 0, 6)) {
    case 0:
      if (node.running !== undefined) cluster.kill(name);
      break;
    case 1:
    case 2:
      if (node.running === undefined) cluster.start(name);
      break;
    case 3:
      if (node.paused) cluster.resume(name);
      else if (node.running !== undefined) cluster.pause(name);
      break;
    case 4:
      if (cluster.cutLinks.size > 0) cluster.heal();
      else cluster.cut(name, ...names.filter((other) => other !== name && nextInt(random, 0, 1) === 0));
      break;
    case 5:
      if (node.running !== undefined) node.running.store.stall();
      break;
    default:
      node.running?.store.resume();
  }
}

function checkOneLeaderATerm(cluster: MemoryCluster): void {
  const terms: number[] = [];
  for (const { running } of cluster.nodes.values()) {
    const leadership = running?.replica.context.leadership;
    if (leadership !== undefined) terms.push(leadership.term);
  }
  expect(new Set(terms).size, `leaders of terms ${terms.join(', ')}`).toBe(terms.length);
}

/** Safe times of one domain never overlap, and whoever held later has the greater token. Returns how many were looked at. */
function checkHolds(holds: Map<string, Hold[]>): number {
  let count = 0;
  for (const [domain, all] of holds) {
    const sorted = [...all].sort((left, right) => left.from - right.from);
    for (const [at, hold] of sorted.entries()) {
      count++;
      const next = sorted[at + 1];
      if (next === undefined || next.token === hold.token) continue;
      expect(
        next.from,
        `${domain}: ${hold.client} (${hold.token}) and ${next.client} (${next.token})`,
      ).toBeGreaterThanOrEqual(hold.until);
      expect(next.token).toBeGreaterThan(hold.token);
    }
  }
  return count;
}

describe('chaos in virtual time', () => {
  const SEEDS = 10;
  it.each([1, 11, 21, 31])(
    'one leader a term, no overlap of safe time, tokens grow, all end equal: ten seeds from %i',
    async (first) => {
      let held = 0;
      for (let seed = first; seed < first + SEEDS; seed++) {
        try {
          held += await run(seed);
        } catch (error) {
          throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
        }
      }
      // They were about something: clients held leases. In a single run most disks may stand still from beginning to end.
      expect(held).toBeGreaterThan(10 * SEEDS);
    },
  );
});
