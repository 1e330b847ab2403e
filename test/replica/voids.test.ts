import { describe, expect, it } from 'vitest';
import type { LeaseView } from '../../src/base/api.js';
import { MAX_INTERNAL_COMMAND_BYTES } from '../../src/base/limits.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import { acquireOf, answerOf, granted, others, refOf } from './helpers.js';

describe('a renewal of many leases', () => {
  it('is answered after the last of its Voids, also when one of the leases ends meanwhile (F5)', async () => {
    // One entry in an append, one append under way: entries commit one by one.
    const cluster = new MemoryCluster({ options: { maxAppendBytes: 1, maxInflightAppends: 1 } });
    const leader = await cluster.untilLeader();
    // As many as fit one Void, and one more, whose Void is an entry of its own.
    const perVoid = Math.floor(MAX_INTERNAL_COMMAND_BYTES / (255 + 40));
    const leases: LeaseView[] = [];
    for (let at = 0; at <= perVoid; at++)
      leases.push(await granted(cluster, leader, acquireOf(`${at}-`.padEnd(255, 'x'), { ttlMs: 60_000 })));
    await cluster.run(31_000);
    const [first] = leases;
    if (first === undefined) throw new Error('no leases');
    const flagged = (): number =>
      [...cluster.replica(leader).context.lease.leases.values()].filter(
        ({ checkpointLeftMs }) => checkpointLeftMs !== undefined,
      ).length;
    expect(flagged()).toBe(leases.length);
    // While leadership is being handed over, to a member that cannot take it, no Void is appended.
    const target = cluster.node(others(cluster, leader)[0] ?? '');
    target.running?.store.stall();
    const release = cluster.call(leader, { type: 'release', lease: refOf(first) });
    cluster.call(leader, { type: 'transferLeadership', to: target.member.node });
    const renew = cluster.call(leader, { type: 'renew', leases: leases.map(refOf) });
    await cluster.answered(release);
    expect(renew.result).toBeUndefined();
    const answer = answerOf(await cluster.answered(renew));
    expect(flagged()).toBe(0);
    expect(answer).toMatchObject({ results: [{ type: 'ended' }, ...leases.slice(1).map(() => ({ type: 'live' }))] });
  });
});
