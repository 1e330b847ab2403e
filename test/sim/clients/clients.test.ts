/** Clients against one lease table: nothing is wrong with a right one, and every wrong one is found out. */
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/base/random.js';
import { stream } from '../chance.js';
import { Coverage } from '../coverage.js';
import type { Fault } from '../observation.js';
import { Watches } from '../judges/watches.js';
import { Resource } from '../resource.js';
import { Scheduler } from '../scheduler.js';
import { Clients } from './clients.js';
import { SingleCopy } from './single-copy.js';
import type { Wrong } from './single-copy.js';

interface Run {
  readonly faults: readonly Fault[];
  readonly coverage: Coverage;
  readonly clients: Clients;
  readonly served: boolean;
}

const RUN_MS = 12_000;

async function run(seed: number, wrong: Wrong, codecs: boolean): Promise<Run> {
  const scheduler = new Scheduler();
  const coverage = new Coverage();
  const faults: Fault[] = [];
  const surroundings = { scheduler, coverage, trace: () => undefined };
  const cluster = new SingleCopy(
    { ...surroundings, random: createRandom(seed) },
    wrong,
    wrong === 'nothing' ? 8 : 1_000,
  );
  const parameters = {
    workers: 2,
    raws: 3,
    domains: 2,
    ttlMs: [600, 1_800],
    pauseMs: [1, 60],
    latencyMs: [0.1, 10],
    loss: 20,
    sleeps: 50,
    toTheEnd: 100,
    waits: 500,
    waitMs: [20, 2_000],
    coolDowns: 200,
    coolDownMs: [1, 600],
    slots: [1, 3],
    watchers: 0,
    naps: 0,
    window: 1,
    limitsEveryMs: 0,
    codecs,
  } as const;
  const clients = new Clients(
    { ...surroundings, random: stream(seed, 'clients') },
    parameters,
    () => cluster.servers,
    new Resource(coverage),
    (fault) => {
      faults.push(fault);
    },
    new Watches(() => undefined, coverage),
  );
  cluster.expired = (domain, token, at) => {
    clients.expired(domain, token, at);
  };
  clients.incarnationChanged(cluster.incarnation, true);
  const until = async (end: number, done: () => boolean = () => false): Promise<void> => {
    while (!done() && faults.length === 0 && scheduler.runNext(end)) await new Promise((next) => setImmediate(next));
  };
  const random = stream(seed, 'faults');
  for (let at = 500; at < RUN_MS; at += 700) {
    scheduler.after(at, () => {
      clients.pause(random, 900);
    });
    scheduler.after(at + 100, () => {
      clients.suspend(random, 700);
    });
    scheduler.after(at + 200, () => {
      clients.jumpWall(random);
    });
    scheduler.after(at + 300, () => {
      clients.cut(random, 400);
    });
  }
  clients.start();
  await until(RUN_MS);
  const probe = clients.probe();
  await until(scheduler.now + 10_000, () => probe.done);
  clients.stop();
  await until(scheduler.now + 60_000, () => clients.idle);
  if (faults.length === 0) clients.finish();
  return { faults, coverage, clients, served: probe.done };
}

const WRONG: readonly (readonly [Wrong, readonly string[]])[] = [
  ['grants twice', ['OVERLAP']],
  ['shortens', ['EARLY']],
  ['repeats tokens', ['SHARED', 'REVIVED']],
  ['tokens fall', ['TOKEN']],
  ['renews what is over', ['REVIVED', 'OVERLAP', 'EARLY']],
  // WAIT: a request whose wait was over is granted when it comes again.
  ['forgets requests', ['ONCE', 'LEASE', 'WAIT']],
  ['fails inside', ['INTERNAL']],
];

describe('clients against one lease table', () => {
  it.each([
    [1, false],
    [2, true],
  ])('find nothing wrong with a right one (seed %i, codecs %s)', async (seed, codecs) => {
    const { faults, coverage, clients, served } = await run(seed, 'nothing', codecs);
    expect(faults).toEqual([]);
    expect(served).toBe(true);
    expect(clients.grants).toBeGreaterThan(20);
    const seen = Object.fromEntries(coverage.counts);
    for (const name of [
      'acquire granted',
      'acquire held',
      'acquire repeated',
      'request too old',
      'release',
      'withdraw',
      'claim judged',
      'stale write refused',
      'client suspend',
      'client wall jump',
      'client link cut',
      'client message lost',
    ]) {
      expect(seen[name], name).toBeGreaterThan(0);
    }
  });

  it.each(WRONG)('find out one that %s', async (wrong, codes) => {
    for (let seed = 1; seed <= 10; seed++) {
      const [first] = (await run(seed, wrong, false)).faults;
      if (first === undefined) continue;
      expect(codes, first.text).toContain(first.code);
      return;
    }
    expect.unreachable('ten seeds found nothing');
  });

  it('do the same for the same seed', async () => {
    const first = await run(5, 'nothing', true);
    const second = await run(5, 'nothing', true);
    expect([...second.coverage.counts]).toEqual([...first.coverage.counts]);
    expect(second.clients.attempts.all.length).toBe(first.clients.attempts.all.length);
  });
});
