/** What a new leader finds beside leases (`takeover.test.ts`): waiters and cool-downs, which it takes up a few at a time. */
import { describe, expect, it } from 'vitest';
import { acquireOf, acquire, granted, release } from './helpers.js';
import { callAgain, grantOf, holderOf, scene, wait, waiters } from './queue-kit.js';
import type { Scene, Waiting } from './queue-kit.js';

const PER_TICK = 1;
const COUNT = 12;
const GRACE_MS = 3_000;
const COOL_MS = 4_000;
const DOMAINS = Array.from({ length: COUNT }, (_, at) => `d/${at}`);

/** The leader is killed; stops in the moment in which its successor begins to serve. */
async function successor({ cluster, leader }: Scene) {
  cluster.kill(leader);
  const ledBy = (node: string) => cluster.replica(node).context.leadership;
  const serves = (): string | undefined =>
    [...cluster.nodes.keys()].find((node) => node !== leader && ledBy(node)?.ready !== undefined);
  await cluster.until('another leader that serves', () => serves() !== undefined);
  const next = serves() ?? '';
  const leadership = ledBy(next);
  if (leadership?.ready === undefined) throw new Error('nobody serves');
  return { next, leadership, since: leadership.ready.since };
}

/** Every step up to {@link COUNT} is one of a tick at most. */
async function expectSteps(cluster: Scene['cluster'], known: () => number): Promise<void> {
  expect(known()).toBeLessThanOrEqual(PER_TICK);
  for (let before = known(); before < COUNT; before = known()) {
    await cluster.until('more are known', () => known() !== before);
    expect(known() - before).toBeLessThanOrEqual(PER_TICK);
  }
}

describe('a leader that finds many waiters', () => {
  /** Nobody calls for any of them any more. */
  async function left() {
    const made = await scene({ options: { timedPerTick: PER_TICK, waiterGraceMs: GRACE_MS } });
    const { cluster, leader, followers } = made;
    const waiting: Waiting[] = [];
    const leases = [];
    for (const domain of DOMAINS) {
      const lease = await granted(cluster, leader, acquireOf(domain, { ttlMs: 60_000, holder: 'first' }));
      leases.push(lease);
      waiting.push(await wait(cluster, followers[0], `w ${domain}`, { domain: lease.domain }));
    }
    for (const { call } of waiting) cluster.cancel(call);
    return { ...made, leases, waiting };
  }

  it('begins to serve before it knows them, and gets to know so many in a tick at most', async () => {
    const made = await left();
    const { leadership } = await successor(made);
    await expectSteps(made.cluster, () => leadership.waits.attachments.size);
  });

  it('counts the grace of all from its start', async () => {
    const made = await left();
    const { since } = await successor(made);
    const waits = (): number => DOMAINS.filter((domain) => waiters(made.cluster, domain).length > 0).length;
    await made.cluster.run(since + GRACE_MS - made.cluster.now - 20);
    expect(waits()).toBe(COUNT);
    await made.cluster.until('all have left', () => waits() === 0, 80);
  });

  it('holds calls for those who have not had their turn, and hands over to them', async () => {
    const made = await left();
    const { cluster, leases, waiting } = made;
    const { next, leadership } = await successor(made);
    const [called, silent] = [waiting.at(-1), waiting.at(-2)];
    const [first, second] = [leases.at(-1), leases.at(-2)];
    if (called === undefined || silent === undefined || first === undefined || second === undefined) {
      throw new RangeError(`${COUNT} expected`);
    }
    callAgain(cluster, next, called);
    const known = leadership.waits.attachments;
    expect([known.has(called.acquire.requestId), known.has(silent.acquire.requestId)]).toEqual([false, false]);
    await release(cluster, next, first);
    expect((await grantOf(cluster, called.call)).holder).toBe(called.acquire.holder);
    // Within the grace it counts as attached, whether it had its turn or not.
    await release(cluster, next, second);
    expect(holderOf(cluster, second.domain)).toBe(silent.acquire.holder);
    expect((await grantOf(cluster, callAgain(cluster, next, silent))).holder).toBe(silent.acquire.holder);
  });
});

describe('a leader that finds many cool-downs', () => {
  async function closed() {
    const made = await scene({ options: { timedPerTick: PER_TICK } });
    const { cluster, leader } = made;
    for (const domain of DOMAINS) {
      await granted(cluster, leader, acquireOf(domain, { ttlMs: 3_000, coolDownMs: COOL_MS, holder: 'gone' }));
    }
    const { lease } = cluster.replica(leader).context;
    await cluster.until('all to be closed', () => lease.coolDowns.size === COUNT, 5_000);
    return made;
  }

  it('begins to serve before it times them, and times so many in a tick at most', async () => {
    const made = await closed();
    const { leadership } = await successor(made);
    await expectSteps(made.cluster, () => leadership.cooling.size);
  });

  it('counts each in full from its start, and says so before it has its turn', async () => {
    const made = await closed();
    const { cluster } = made;
    const { next, leadership, since } = await successor(made);
    const { lease } = cluster.replica(next).context;
    const last = [...lease.coolDowns.keys()].at(-1);
    if (last === undefined) throw new RangeError('nothing is closed');
    const refused = acquire(cluster, next, acquireOf(last));
    const told = await refused;
    expect(leadership.cooling.has(last)).toBe(false);
    expect(told).toMatchObject({ reason: 'cool_down', coolDownLeftMs: expect.closeTo(COOL_MS, -2) as number });
    await cluster.run(since + COOL_MS - cluster.now - 20);
    expect(lease.coolDowns.size).toBe(COUNT);
    await cluster.until('all to be open', () => lease.coolDowns.size === 0, 80);
    await granted(cluster, next, acquireOf(last));
  });
});
