/** A storm of acquires that does not end: who holds a lease renews and releases it all the same (design 7). */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { AcquireCall } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import { connect } from '../../src/client/index.js';
import type { Channel, Reply } from '../../src/client/channel.js';
import { openPipelineChannel } from '../../src/client/pipeline-channel.js';
import { PLAIN } from '../support/answers.js';
import { ProcessCluster, until } from './cluster.js';
import { HolderStage } from './holder-process.js';

const TTL_MS = 6_000;
/** Acquires that are open on each node at any time. */
const OPEN = 3_000;
const DOMAINS = 500;

/** How the acquires of the storm ended. */
interface Ends {
  sent: number;
  granted: number;
  held: number;
  /** Refused or unanswered, by reason. */
  readonly failed: Map<string, number>;
}

function stormCall(n: number): AcquireCall {
  return {
    type: 'acquire',
    domain: `storm/${n % DOMAINS}` as Domain,
    requestId: randomUUID() as RequestId,
    holder: 'storm',
    ttlMs: 60_000,
    metadata: [],
    ...PLAIN,
    seenRevision: ZERO_REVISION,
  };
}

/** Sends an acquire for each that ended, until `over`; resolves when the last one has ended. */
function storm(channel: Channel, ends: Ends, over: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    let open = 0;
    const ended = (reply: Reply): void => {
      open--;
      count(ends, reply);
      if (!over()) send();
      else if (open === 0) resolve();
    };
    const send = (): void => {
      open++;
      channel.send(stormCall(ends.sent++), 20_000, ended);
    };
    for (let n = 0; n < OPEN; n++) send();
  });
}

function count(ends: Ends, reply: Reply): void {
  if (reply.type === 'answer' && reply.answer.type === 'acquire') {
    if (reply.answer.outcome.type === 'granted') ends.granted++;
    else ends.held++;
    return;
  }
  const why = reply.type === 'failure' ? reply.failure.reason : reply.type;
  ends.failed.set(why, (ends.failed.get(why) ?? 0) + 1);
}

it('holders keep their leases through it, and a release frees its domain for who waits', async () => {
  await using cluster = await ProcessCluster.started();
  await using stage = await HolderStage.create();
  const endpoints = cluster.nodes.map(({ clientAddress }) => clientAddress);
  const admin = connect({ endpoints, holder: 'admin' });
  const domains = ['a', 'b', 'c'].map((name) => `kept/${name}`);
  const holders = domains.map((domain) => stage.start({ endpoints, domain, ttlMs: TTL_MS }));
  const tokens = await Promise.all(holders.map(async (holder) => (await holder.next('held')).token));
  const ends: Ends = { sent: 0, granted: 0, held: 0, failed: new Map() };
  const channels = endpoints.map((address) => openPipelineChannel(address));
  let over = false;
  const storms = Promise.all(channels.map((channel) => storm(channel, ends, () => over)));
  try {
    const since = performance.now();
    await until('two TTLs of storm', () => performance.now() - since > 2 * TTL_MS);
    const lease = await admin.acquire('passed/on', { ttlMs: TTL_MS });
    const next = admin.acquire('passed/on', { ttlMs: TTL_MS, waitMs: 60_000 });
    await until('a waiter', async () => (await admin.get('passed/on')).waiters.length === 1);
    await lease.release();
    expect((await next).token).toBeGreaterThan(lease.token);
  } finally {
    over = true;
    await storms;
    for (const channel of channels) channel.close();
  }
  for (const [at, holder] of holders.entries()) {
    holder.tell({ type: 'look' });
    expect(await holder.next('looked'), domains[at]).toMatchObject({ aborted: false });
    expect((await admin.get(domains[at] ?? '')).lease?.token.toString()).toBe(tokens[at]);
  }
  // It was one, and every acquire of it ended; those that found no room or no leader may say so.
  const failed = [...ends.failed.values()].reduce((sum, each) => sum + each, 0);
  expect(ends.granted + ends.held + failed).toBe(ends.sent);
  expect(ends.sent).toBeGreaterThan(10 * OPEN);
  expect(ends.granted).toBeGreaterThan(0);
  expect([...ends.failed.keys()]).not.toContain('foreign');
  expect([...ends.failed.keys()]).not.toContain('INTERNAL');
  await admin.close();
});
