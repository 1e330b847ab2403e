/** How a lease ended: told by every call that asks, by the next leader too, and by audit lines. */
import { describe, expect, it } from 'vitest';
import type { EndedView, LeaseView, ReleaseCall } from '../../src/base/api.js';
import { digestString, digestText } from '../../src/base/digest.js';
import type { Domain } from '../../src/base/ids.js';
import { type Revision, ZERO_REVISION } from '../../src/base/revision.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import { acquire, acquireOf, answerOf, endedOf, granted, refOf, release, renew, verify } from './helpers.js';

const TTL_MS = 3_000;

async function forceRelease(cluster: MemoryCluster, node: string, lease: LeaseView, note: string): Promise<void> {
  const call = { type: 'forceRelease', ...refOf(lease), note } as const;
  const answer = answerOf(await cluster.answered(cluster.call(node, call)));
  expect(answer).toMatchObject({ type: 'forceRelease', released: true });
}

/** Ends one lease in each way; its acquire, and what is to be told of it. */
async function ends(cluster: MemoryCluster, leader: string) {
  const all: { lease: LeaseView; call: ReturnType<typeof acquireOf>; told: Partial<EndedView> }[] = [];
  const take = async (domain: string, reason: EndedView['reason'], more: Partial<EndedView> = {}) => {
    const call = acquireOf(domain, { ttlMs: TTL_MS, holder: `holder of ${domain}` });
    const lease = await granted(cluster, leader, call);
    all.push({
      lease,
      call,
      told: { lease: refOf(lease), reason, by: '', note: '', currentToken: ZERO_REVISION, ...more },
    });
    return { lease, call };
  };
  const expired = await take('expired', 'expired');
  await cluster.until('expiry', () => cluster.replica(leader).context.lease.leases.size === 0);
  const given = await take('released', 'released');
  await release(cluster, leader, given.lease);
  const { call } = await take('withdrawn', 'withdrawn');
  const { domain, requestId } = call;
  await cluster.answered(cluster.call(leader, { type: 'withdraw', domain, requestId }));
  const forced = await take('forced', 'force_released', { by: 'addr:test', note: 'stuck\nfor hours' });
  await forceRelease(cluster, leader, forced.lease, 'stuck\nfor hours');
  // Somebody else has it now: superseded.
  const next = await granted(cluster, leader, acquireOf('expired', { ttlMs: 600_000 }));
  const first = all[0];
  if (first !== undefined) first.told = { ...first.told, currentToken: next.token };
  return { all, expired };
}

describe('the reason', () => {
  it('is in the answers of Verify, Renew, Release and a repeated Acquire, before and after a change of leader', async () => {
    const cluster = new MemoryCluster();
    let leader = await cluster.untilLeader();
    const { all } = await ends(cluster, leader);
    for (let round = 0; round < 2; round++) {
      for (const { lease, call, told } of all) {
        expect(endedOf(await verify(cluster, leader, lease))).toEqual(told);
        expect(endedOf((await renew(cluster, leader, lease))[0] ?? { type: 'nothing' })).toEqual(told);
        expect(endedOf(await acquire(cluster, leader, call))).toEqual(told);
        const answer = await release(cluster, leader, lease);
        // An earlier copy of the release succeeded, and so does this one.
        if (told.reason === 'released') expect(answer).toMatchObject({ released: true, ended: undefined });
        else expect(answer).toMatchObject({ released: false, ended: told });
      }
      cluster.kill(leader);
      const killed = leader;
      leader = await cluster.untilLeader();
      cluster.start(killed);
    }
  });

  it('of a token that this cluster never granted, or granted before its history began, is told as well', async () => {
    const cluster = new MemoryCluster();
    const leader = await cluster.untilLeader();
    const { base } = cluster.genesis.history;
    const tokens = [
      [base, 'earlier_history'],
      [base + 1_000_000, 'never_granted'],
    ] as const;
    for (const [token, reason] of tokens) {
      const lease = { domain: 'd' as Domain, token: token as Revision };
      const told = { lease, reason, by: '', note: '', currentToken: ZERO_REVISION };
      expect(endedOf(await verify(cluster, leader, lease))).toEqual(told);
      expect(endedOf((await renew(cluster, leader, lease))[0] ?? { type: 'nothing' })).toEqual(told);
      const call: ReleaseCall = { type: 'release', lease };
      expect(answerOf(await cluster.answered(cluster.call(leader, call)))).toMatchObject({
        released: false,
        ended: told,
      });
    }
  });
});

describe('audit lines', () => {
  const OF = ['domain', 'token', 'holder', 'principal', 'request'];

  async function lines(options: { auditGrants?: boolean; auditReleases?: boolean }) {
    const cluster = new MemoryCluster({ options });
    const leader = await cluster.untilLeader();
    const ended = await ends(cluster, leader);
    const logs = [...cluster.nodes.values()].flatMap((node) => node.logs.filter(({ level }) => level === 'audit'));
    return { logs, ...ended };
  }

  it('are there for losses and forced releases, at the leader alone', async () => {
    const { logs, all, expired } = await lines({});
    expect(logs.map(({ message }) => message)).toEqual(['lease expired', 'lease force-released']);
    const [lost, forced] = logs;
    expect(Object.keys(lost?.fields ?? {})).toEqual([...OF, 'reason', 'revision']);
    expect(lost?.fields).toMatchObject({
      domain: 'expired',
      token: expired.lease.token,
      holder: 'holder of expired',
      principal: 'addr:test',
      request: digestText(digestString(expired.call.requestId)),
      reason: 'expired',
    });
    expect(lost?.fields['revision']).toBeGreaterThan(expired.lease.token);
    expect(forced?.fields).toMatchObject({
      domain: 'forced',
      reason: 'force_released',
      by: 'addr:test',
      note: 'stuck\nfor hours',
    });
    for (const { call } of all) expect(JSON.stringify(logs)).not.toContain(call.requestId);
  });

  it('by option for releases and withdrawals', async () => {
    const { logs } = await lines({ auditReleases: true });
    const told = logs.map(({ message, fields }) => `${message} ${fields['reason']}`);
    expect(told).toEqual([
      'lease expired expired',
      'lease released released',
      'lease released withdrawn',
      'lease force-released force_released',
    ]);
  });

  it('by option for grants', async () => {
    const { logs, all } = await lines({ auditGrants: true });
    const grants = logs.filter(({ message }) => message === 'lease granted');
    expect(grants).toHaveLength(all.length + 1);
    expect(Object.keys(grants[0]?.fields ?? {})).toEqual([...OF, 'ttlMs']);
    expect(grants[0]?.fields).toMatchObject({ domain: 'expired', ttlMs: TTL_MS });
  });
});
