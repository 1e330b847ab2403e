/** While an EndWait is open nothing is answered for its request, and a grant in between is taken back (F7). */
import { describe, expect, it } from 'vitest';
import type { ReplicaOptions } from '../../src/replica/types.js';
import type { ClusterCall } from '../support/cluster-node.js';
import { acquireOf, expectEqualStates, get, refOf } from './helpers.js';
import { callAgain, grantOf, heldScene, holderOf, outcome, outcomeOf, wait, waiters, WAITING } from './queue-kit.js';
import type { Scene, Waiting } from './queue-kit.js';

/** One entry in an append, one append under way: entries commit one by one, tens of milliseconds apart. */
const ONE_BY_ONE: Partial<ReplicaOptions> = { maxAppendBytes: 1, maxInflightAppends: 1 };

/** True while an EndWait of the request is proposed and not applied. */
function isOpen({ cluster, leader }: Scene, { acquire }: Waiting): boolean {
  const { leadership } = cluster.replica(leader).context;
  return leadership?.waits.attachments.get(acquire.requestId)?.ending !== undefined;
}

/**
 * `d` is held, `w1` waits in front of `w2`; the release is appended, then the EndWait of `w1`, neither is committed.
 * `gone`: because nobody calls for `w1`; else its wait is over and its call, sent `sentAt`, is held.
 */
async function releaseBeforeEndWait(
  gone: boolean,
  timeoutMs: number,
): Promise<Scene & { first: Waiting; second: Waiting; releasing: ClusterCall }> {
  const made = await heldScene({ options: { ...ONE_BY_ONE, waiterGraceMs: 300 } });
  const { cluster, leader, followers, lease } = made;
  const first = await wait(cluster, leader, 'w1', { waitMs: gone ? 60_000 : 1_000 }, timeoutMs);
  const second = await wait(cluster, followers[0], 'w2');
  await cluster.run(first.call.sentAt + 900 - cluster.now);
  cluster.latency = [12, 12];
  cluster.cut(leader, ...followers);
  const releasing = cluster.call(leader, { type: 'release', lease: refOf(lease) });
  await cluster.run(1);
  if (gone) cluster.cancel(first.call);
  await cluster.until('the EndWait', () => isOpen(made, first), 400);
  return { ...made, first, second, releasing };
}

describe('a release that hands over while an EndWait is on its way (F7)', () => {
  it('to a caller that is gone: its new call is told nothing before the outcome, and the grant goes on', async () => {
    const made = await releaseBeforeEndWait(true, 60_000);
    const { cluster, leader, first, second, releasing } = made;
    callAgain(cluster, leader, first);
    cluster.heal();
    await cluster.answered(releasing);
    // Handed over: and the caller, who is here again, is not told.
    const { lease: between } = await get(cluster, leader, 'd', 'local');
    expect(between?.holder).toBe('w1');
    expect(isOpen(made, first)).toBe(true);
    callAgain(cluster, leader, first);
    await cluster.run(1);
    expect(first.call.result).toBeUndefined();
    const next = await grantOf(cluster, second.call);
    expect(next.token).toBeGreaterThan(between?.token ?? Infinity);
    expect(await outcomeOf(cluster, first.call)).toMatchObject({
      type: 'ended',
      ended: { reason: 'left_queue', lease: { domain: 'd', token: between?.token }, currentToken: next.token },
    });
    await expectEqualStates(cluster);
  });

  it.each([1_100, 1_120, 1_140, 1_160, 1_180, 1_195])(
    'to a caller whose wait is over: told so, and not "queued" when its hold ends meanwhile (healed at %i ms)',
    async (healedAt) => {
      // Held until 1 200 ms.
      const made = await releaseBeforeEndWait(false, 1_450);
      const { cluster, leader, first, second } = made;
      await cluster.run(first.call.sentAt + healedAt - cluster.now);
      cluster.heal();
      const next = await grantOf(cluster, second.call);
      expect(outcome(first.call)).toMatchObject({
        type: 'notGranted',
        reason: 'wait_over',
        current: { token: next.token },
      });
      expect(waiters(cluster)).toEqual([]);
      expect(cluster.leader()).toBe(leader);
      await expectEqualStates(cluster);
    },
  );

  it('to a second Acquire of the id that was appended before it: not told, and ended like the first', async () => {
    const made = await heldScene({ options: ONE_BY_ONE });
    const { cluster, leader, lease } = made;
    cluster.latency = [30, 30];
    // The id is unknown to both calls, because neither is applied: both become entries.
    const request = acquireOf('d', { ...WAITING, holder: 'w', waitMs: 5 });
    const one = cluster.call(leader, request);
    await cluster.run(1);
    const releasing = cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await cluster.run(1);
    const two = cluster.call(leader, request);
    await cluster.until('the EndWait', () => isOpen(made, { acquire: request, call: one }), 1_000);
    await cluster.answered(releasing);
    expect(holderOf(cluster)).toBe('w');
    expect([await outcomeOf(cluster, one), await outcomeOf(cluster, two)]).toMatchObject([
      { type: 'notGranted', reason: 'wait_over' },
      { type: 'ended', ended: { reason: 'left_queue' } },
    ]);
    expect(holderOf(cluster)).toBeUndefined();
  });
});

describe('EndWaits of so many requests that they are several entries', () => {
  it('take back the one grant in between, and hand it to nobody whose wait they end', async () => {
    const made = await heldScene({ limits: { queue: 3_000 } });
    const { cluster, leader, followers, lease } = made;
    const ending = Array.from({ length: 1_400 }, (_, at) =>
      cluster.call(leader, acquireOf('d', { ...WAITING, waitMs: 10_000, holder: `w${at}` }), 60_000),
    );
    await cluster.run(300);
    expect(waiters(cluster)).toHaveLength(ending.length);
    const queuedAt = cluster.now;
    const last = await wait(cluster, followers[0], 'last');
    await cluster.run(queuedAt + 9_400 - cluster.now);
    cluster.cut(leader, ...followers);
    const releasing = cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await cluster.run(5);
    // One tick finds all of them over.
    const { leadership } = cluster.replica(leader).context;
    cluster.pause(leader);
    await cluster.run(520);
    cluster.resume(leader);
    const endWaits = (): number =>
      [...(leadership?.pending.values() ?? [])].filter(({ command }) => command.type === 'endWait').length;
    await cluster.until('the EndWaits', () => endWaits() > 1, 100);
    cluster.heal();
    await cluster.answered(releasing);
    const granted = await grantOf(cluster, last.call);
    expect(granted.token).toBeGreaterThan(lease.token);
    await cluster.run(100);
    for (const call of ending) expect(outcome(call)).toMatchObject({ type: 'notGranted', reason: 'wait_over' });
    const { order } = cluster.replica(leader).context.lease.requests;
    const takenBack = order.ring.filter((each) => each?.reason === 'left_queue' && each.token !== undefined);
    expect(takenBack.map((each) => each?.asked?.holder)).toEqual(['w0']);
    expect(cluster.leader()).toBe(leader);
  });
});

describe('a release that comes after an EndWait', () => {
  it('passes over those who are gone behind the request that is being ended', async () => {
    const made = await heldScene();
    const { cluster, leader, followers, lease } = made;
    const ending = await wait(cluster, leader, 'w1', { waitMs: 1_000 });
    const gone = await wait(cluster, leader, 'w2');
    const behind = await wait(cluster, leader, 'w3');
    await cluster.run(ending.call.sentAt + 950 - cluster.now);
    cluster.cancel(gone.call);
    cluster.cut(leader, ...followers);
    await cluster.until('the EndWait', () => isOpen(made, ending), 400);
    cluster.call(leader, { type: 'release', lease: refOf(lease) });
    await cluster.run(5);
    cluster.heal();
    await grantOf(cluster, behind.call);
    expect(waiters(cluster)).toEqual(['w2']);
    expect(outcome(ending.call)).toMatchObject({ reason: 'wait_over' });
  });
});
