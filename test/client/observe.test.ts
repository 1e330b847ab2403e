import { describe, expect, it } from 'vitest';
import type { Domain, Incarnation, NodeId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { failure } from '../../src/base/errors.js';
import type { Reason } from '../../src/base/errors.js';
import type { Observation } from '../../src/client/index.js';
import { CompactedError, FencepostError } from '../../src/client/index.js';
import type { FakeTime } from './world.js';
import { clientWorld, settle } from './world.js';
import { FakeWatches } from './watch-world.js';

/** What an observer was told, and how its loop ended. */
interface Observer {
  readonly told: Observation[];
  error: unknown;
  over: boolean;
}

/** Takes everything as it comes. */
function follow(observations: AsyncIterable<Observation>): Observer {
  const observer: Observer = { told: [], error: undefined, over: false };
  const run = async (): Promise<void> => {
    for await (const observation of observations) observer.told.push(observation);
  };
  run().then(
    () => {
      observer.over = true;
    },
    (error: unknown) => {
      observer.error = error;
      observer.over = true;
    },
  );
  return observer;
}

function revisionsOf({ told }: Observer): number[] {
  return told.flatMap(({ changes }) => changes.map(({ revision }) => Number(revision)));
}

function refusal(reason: Reason): { type: 'failure'; failure: ReturnType<typeof failure>; retryDelayMs: number } {
  return { type: 'failure', failure: failure(reason, `said ${reason}`), retryDelayMs: 0 };
}

async function untilOver(time: FakeTime, observer: Observer): Promise<unknown> {
  for (let passed = 0; passed < 200_000 && !observer.over; passed += 50) await time.run(50);
  if (!observer.over) throw new Error('the observation does not end');
  return observer.error;
}

async function untilArrived(time: FakeTime, watches: FakeWatches, count: number): Promise<void> {
  for (let passed = 0; passed < 60_000 && watches.arrived.length < count; passed += 10) await time.run(10);
  if (watches.arrived.length < count) throw new Error(`fewer than ${count} watches arrived`);
}

describe('observe', () => {
  it('shows changes as they come, with their revisions, and what is known without any', async () => {
    const { watches, client } = clientWorld();
    const observer = follow(client.observe('orders/'));
    await settle();
    expect(watches.last.call).toEqual({ prefix: 'orders/', startRevision: 0 });
    watches.last.progress(100);
    const domain = 'orders/eu' as Domain;
    const lease = { domain, token: 102 as Revision, holder: 'w', metadata: [['a', 'b']] as const, ttlMs: 9_000 };
    const by = { by: 'addr:1', note: 'stuck' };
    watches.last.say(105, {
      type: 'events',
      events: [
        { revision: 102 as Revision, type: 'granted', lease: { ...lease, grantedAtUnixMs: 5 } },
        { revision: 103 as Revision, type: 'queueChanged', domain, queueLength: 2 },
        {
          revision: 104 as Revision,
          type: 'ended',
          ended: {
            lease: { domain, token: 102 as Revision },
            reason: 'force_released',
            ...by,
            currentToken: 104 as Revision,
          },
        },
      ],
    });
    await settle();
    expect(observer.told).toEqual([
      { revision: 100n, changes: [] },
      {
        revision: 105n,
        changes: [
          {
            type: 'granted',
            revision: 102n,
            lease: { domain, token: 102n, holder: 'w', metadata: { a: 'b' }, ttlMs: 9_000, grantedAt: new Date(5) },
          },
          { type: 'queueChanged', revision: 103n, domain, queueLength: 2 },
          {
            type: 'ended',
            revision: 104n,
            domain,
            token: 102n,
            ended: { reason: 'force_released', ...by, currentToken: 104n },
          },
        ],
      },
    ]);
    await client.close();
  });

  it('goes on at another node behind the last revision that was complete', async () => {
    const { time, watches, client } = clientWorld();
    const observer = follow(client.observe('', { from: 50n }));
    await settle();
    const seen = new Set<string>();
    for (let round = 0; round < 6; round++) {
      const { last } = watches;
      seen.add(last.endpoint);
      expect(last.call.startRevision).toBe(50 + round * 10);
      last.changes([50 + round * 10, 53 + round * 10], 59 + round * 10);
      last.end(round % 2 === 0 ? { type: 'silent', reached: true, why: 'the connection broke' } : refusal('NO_LEADER'));
      await untilArrived(time, watches, round + 2);
      expect(last.closed).toBe(true);
    }
    expect(seen.size).toBe(3);
    expect(revisionsOf(observer)).toEqual([50, 53, 60, 63, 70, 73, 80, 83, 90, 93, 100, 103]);
    await client.close();
  });

  it('shows a revision that comes in parts as a whole, and asks for all of it again when it breaks', async () => {
    const { time, watches, client } = clientWorld();
    const observer = follow(client.observe('', { from: 10n }));
    await settle();
    watches.last.changes([10, 12, 12], 11);
    await settle();
    expect(revisionsOf(observer)).toEqual([10]);
    watches.last.changes([12, 12], 11);
    watches.last.end({ type: 'silent', reached: true, why: 'the connection broke' });
    await untilArrived(time, watches, 2);
    expect(watches.last.call.startRevision).toBe(12);
    watches.last.changes([12, 12, 12], 11);
    watches.last.changes([12, 12, 13], 13);
    await settle();
    expect(revisionsOf(observer)).toEqual([10, 12, 12, 12, 12, 12, 13]);
    expect(observer.told.at(-1)?.revision).toBe(13n);
    await client.close();
  });

  it('pauses the stream while its loop is busy, and shows what had come meanwhile', async () => {
    const { watches, client } = clientWorld();
    const observations = client.observe();
    const first = observations.next();
    await settle();
    watches.last.progress(5);
    expect((await first).value).toEqual({ revision: 5n, changes: [] });
    expect(watches.last.paused).toBe(false);
    watches.last.changes([6]);
    expect(watches.last.paused).toBe(true);
    watches.last.changes([7]);
    const numbers: bigint[] = [];
    for (let i = 0; i < 2; i++) {
      const { value } = await observations.next();
      if (value !== undefined) numbers.push(value.revision);
    }
    expect(numbers).toEqual([6n, 7n]);
    const third = observations.next();
    await settle();
    expect(watches.last.paused).toBe(false);
    watches.last.changes([8]);
    expect((await third).value?.revision).toBe(8n);
    await observations.return();
    expect(watches.last.closed).toBe(true);
    await client.close();
  });

  it('leaves a node that says nothing any more', async () => {
    const { time, watches, client } = clientWorld();
    const observer = follow(client.observe());
    await settle();
    watches.last.progress(5);
    await time.run(9_000);
    watches.last.progress(6);
    await time.run(14_000);
    expect(watches.arrived).toHaveLength(1);
    await untilArrived(time, watches, 2);
    expect(watches.last.call.startRevision).toBe(7);
    expect(watches.arrived[0]?.closed).toBe(true);
    expect(observer.over).toBe(false);
    await client.close();
  });
});

describe('what is compacted', () => {
  it('at one node is asked for at the others; one that has it goes on', async () => {
    const { time, watches, client } = clientWorld();
    watches.answer = (watch) => {
      if (watch.endpoint === 'c:1') watch.changes([20, 21]);
      else watch.say(90, { type: 'compacted', oldest: 80 as Revision });
    };
    const observer = follow(client.observe('', { from: 20n }));
    for (let passed = 0; passed < 5_000 && observer.told.length === 0; passed += 10) await time.run(10);
    expect(revisionsOf(observer)).toEqual([20, 21]);
    await client.close();
  });

  it('everywhere is an error that names the oldest revision there is', async () => {
    const { time, watches, client } = clientWorld();
    const oldest: Readonly<Record<string, number>> = { 'a:1': 80, 'b:1': 70, 'c:1': 75 };
    watches.answer = (watch) => {
      watch.say(90, { type: 'compacted', oldest: oldest[watch.endpoint] as Revision });
    };
    const observer = follow(client.observe('', { from: 20n }));
    const error = await untilOver(time, observer);
    expect(error).toBeInstanceOf(CompactedError);
    expect(error).toMatchObject({ code: 'COMPACTED', oldestRevision: 70n, retryable: false });
    expect(watches.arrived).toHaveLength(3);
    expect(observer.told).toEqual([]);
    await client.close();
  });

  it('at one node while no other one answers is an error after one round', async () => {
    const { time, watches, client } = clientWorld();
    watches.answer = (watch) => {
      if (watch.endpoint === 'b:1') watch.say(90, { type: 'compacted', oldest: 80 as Revision });
      else watch.end({ type: 'silent', reached: false, why: 'connection refused' });
    };
    const error = await untilOver(time, follow(client.observe('', { from: 20n })));
    expect(error).toMatchObject({ code: 'COMPACTED', oldestRevision: 80n });
    expect(watches.arrived.length).toBeLessThanOrEqual(3);
    await client.close();
  });

  it('in the middle of an observation comes behind everything that was told', async () => {
    const { time, watches, client } = clientWorld({ endpoints: ['a:1'] });
    const observer = follow(client.observe());
    await settle();
    watches.last.changes([20, 21]);
    watches.last.say(90, { type: 'compacted', oldest: 80 as Revision });
    expect(await untilOver(time, observer)).toMatchObject({ code: 'COMPACTED' });
    expect(revisionsOf(observer)).toEqual([20, 21]);
    await client.close();
  });

  it('is what a newer history is, whatever its node would tell', async () => {
    const { time, watches, client } = clientWorld({ endpoints: ['a:1'] });
    const observer = follow(client.observe());
    await settle();
    watches.last.progress(20);
    watches.last.end({ type: 'silent', reached: true, why: 'the connection broke' });
    await untilArrived(time, watches, 2);
    watches.last.progress(500, { incarnation: 'b'.repeat(32) as Incarnation });
    expect(await untilOver(time, observer)).toMatchObject({ code: 'COMPACTED', oldestRevision: 501n });
    await client.close();
  });
});

describe('a node that is no help', () => {
  it('of an older history, or one that tells changes out of order, is passed over', async () => {
    const { time, watches, client } = clientWorld({ endpoints: ['a:1', 'b:1', 'c:1', 'd:1', 'e:1'] });
    const observer = follow(client.observe('', { from: 20n }));
    await settle();
    watches.last.changes([20, 30]);
    watches.last.end({ type: 'ended' });
    await untilArrived(time, watches, 2);
    watches.last.progress(8, { incarnation: 'b'.repeat(32) as Incarnation, node: 'old' as NodeId });
    await untilArrived(time, watches, 3);
    watches.last.changes([30, 31]);
    await untilArrived(time, watches, 4);
    watches.last.changes([33, 32]);
    await untilArrived(time, watches, 5);
    watches.last.progress(29);
    await untilArrived(time, watches, 6);
    watches.last.changes([31]);
    await settle();
    expect(revisionsOf(observer)).toEqual([20, 30, 31]);
    await client.close();
  });

  it('is an error at once when all are such nodes', async () => {
    const { time, watches, client } = clientWorld();
    watches.answer = (watch) => {
      watch.end({ type: 'foreign', why: 'no Fencepost node answers there' });
    };
    expect(await untilOver(time, follow(client.observe()))).toMatchObject({ code: 'UNEXPECTED_ANSWER' });
    expect(watches.arrived).toHaveLength(3);
    await client.close();
  });

  it.each(['NO_LEADER', 'NODE_BEHIND', 'SHUTTING_DOWN', 'NOT_FORMED', 'QUOTA_EXCEEDED'] as const)(
    'with %s is left for another one, with pauses, until the time is over',
    async (reason) => {
      const { time, watches, client } = clientWorld({ callTimeoutMs: 5_000 });
      watches.answer = (watch) => {
        watch.end(refusal(reason));
      };
      const observer = follow(client.observe());
      await time.run(4_500);
      expect(observer.over).toBe(false);
      const error = await untilOver(time, observer);
      expect(error).toBeInstanceOf(FencepostError);
      expect(error).toMatchObject({ code: reason });
      expect(watches.arrived.length).toBeGreaterThan(5);
      expect(watches.arrived.length).toBeLessThan(40);
      expect(watches.arrived.every(({ closed }) => closed)).toBe(true);
      await client.close();
    },
  );

  it('that refuses for good is an error at once', async () => {
    const { time, watches, client } = clientWorld();
    watches.answer = (watch) => {
      watch.end(refusal('INVALID_REQUEST'));
    };
    expect(await untilOver(time, follow(client.observe()))).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(watches.arrived).toHaveLength(1);
    await client.close();
  });

  it('is forgiven once a node has served: the time begins anew', async () => {
    const { time, watches, client } = clientWorld({ callTimeoutMs: 5_000 });
    let good = false;
    let revision = 10;
    watches.answer = (watch) => {
      if (good) watch.progress(revision++);
      watch.end(refusal('NO_LEADER'));
    };
    const observer = follow(client.observe());
    for (let round = 0; round < 5; round++) {
      good = false;
      await time.run(3_000);
      good = true;
      const before = observer.told.length;
      for (let passed = 0; passed < 4_000 && observer.told.length === before; passed += 10) await time.run(10);
    }
    expect(observer.over).toBe(false);
    await client.close();
  });
});

describe('the end of an observation', () => {
  it('by its signal ends the loop, while it waits and while it pauses', async () => {
    const { time, watches, client } = clientWorld();
    const waiting = new AbortController();
    const observer = follow(client.observe('', { signal: waiting.signal }));
    await settle();
    waiting.abort();
    expect(await untilOver(time, observer)).toBeUndefined();
    expect(watches.last.closed).toBe(true);
    const pausing = new AbortController();
    watches.answer = (watch) => {
      watch.end(refusal('NO_LEADER'));
    };
    const other = follow(client.observe('', { signal: pausing.signal }));
    await settle();
    pausing.abort();
    await settle();
    expect(other).toMatchObject({ over: true, error: undefined });
    const never = follow(client.observe('', { signal: pausing.signal }));
    await settle();
    expect(never).toMatchObject({ over: true, error: undefined });
    expect(watches.arrived).toHaveLength(2);
    await client.close();
  });

  it('by the end of the client is an error', async () => {
    const { time, watches, client } = clientWorld();
    const observer = follow(client.observe());
    await settle();
    await client.close();
    expect(await untilOver(time, observer)).toMatchObject({ code: 'CLOSED' });
    expect(watches.last.closed).toBe(true);
    expect(await untilOver(time, follow(client.observe()))).toMatchObject({ code: 'CLOSED' });
    expect(watches.arrived).toHaveLength(1);
  });

  it('is an error for options that are none', () => {
    const { client } = clientWorld();
    expect(() => client.observe('ö'.repeat(128), { from: -1n })).toThrow(
      'observe: prefix must be well-formed text of at most 255 bytes; from must be a bigint from 1 to 2^53 - 1, not -1.',
    );
  });
});
