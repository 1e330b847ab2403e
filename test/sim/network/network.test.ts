/** Chances, faults, questions while forming; and one seed fixes everything. */
import { describe, expect, test } from 'vitest';
import type { NodeId } from '../../../src/base/ids.js';
import type { FormRequest, FormResponse } from '../../../src/replica/types.js';
import { NetworkFaults } from './faults.js';
import { member, TestWorld } from './kit.js';
import type { TestProcess } from './kit.js';
import type { NetworkParameters } from './parameters.js';

const rounds = (process: TestProcess | undefined): number[] =>
  (process?.messages ?? []).flatMap((message) => (message.type === 'heartbeat' ? [message.round] : []));
const upTo = (n: number): number[] => Array.from({ length: n }, (_, at) => at + 1);

/** n1 sends n2 a heartbeat every millisecond. */
async function thousand(parameters: Partial<NetworkParameters>, calm = false): Promise<[TestWorld, number[]]> {
  const world = new TestWorld(['n1', 'n2'], { latencyMs: [1, 5], ...parameters });
  const [n1, n2] = (await world.cluster('n1', 'n2')) as [TestProcess, TestProcess];
  if (calm) world.network.calm();
  for (const round of upTo(1_000)) {
    world.scheduler.after(round, () => {
      n1.beat(n2, round);
    });
  }
  // No promises are about: tasks alone.
  const end = world.scheduler.now + 2_000;
  while (world.scheduler.runNext(end));
  return [world, rounds(n2)];
}

const isSorted = (numbers: readonly number[]): boolean =>
  numbers.every((n, at) => at === 0 || n >= (numbers[at - 1] ?? 0));

describe('what becomes of core messages', () => {
  test('nothing, when no chance is given', async () => {
    const [, got] = await thousand({ spikeChance: 50 });
    expect(got).toEqual(upTo(1_000));
  });

  test('loss', async () => {
    const [world, got] = await thousand({ loss: 300 });
    expect(got.length).toBe(1_000 - (world.coverage.counts.get('message lost') ?? 0));
    expect(got.length).toBeGreaterThan(600);
    expect(got.length).toBeLessThan(800);
    expect(isSorted(got)).toBe(true);
  });

  test('duplicates', async () => {
    const [world, got] = await thousand({ duplicate: 500 });
    expect(new Set(got).size).toBe(1_000);
    expect(got.length).toBe(1_000 + (world.coverage.counts.get('message duplicated') ?? 0));
    expect(got.length).toBeGreaterThan(1_400);
  });

  test('old ones come again', async () => {
    const [world, got] = await thousand({ replay: 100 });
    expect(new Set(got).size).toBe(1_000);
    expect(got.length).toBe(1_000 + (world.coverage.counts.get('message replayed') ?? 0));
    let newest = 0;
    let oldest = 0;
    for (const round of got) {
      newest = Math.max(newest, round);
      oldest = Math.max(oldest, newest - round);
    }
    expect(oldest).toBeGreaterThan(300);
  });

  test('one overtakes another', async () => {
    const [world, got] = await thousand({ reorder: true });
    expect(got.toSorted((a, b) => a - b)).toEqual(upTo(1_000));
    expect(isSorted(got)).toBe(false);
    expect(world.coverage.counts.get('message reordered')).toBeGreaterThan(100);
  });

  test('calm: nothing of that any more', async () => {
    const [, got] = await thousand({ loss: 300, duplicate: 500, replay: 200, reorder: true, spikeChance: 500 }, true);
    expect(got).toEqual(upTo(1_000));
  });

  test('one of an earlier life of the sender comes over its new streams only, and not to another history', async () => {
    const world = new TestWorld(['n1', 'n2'], { replay: 1_000 });
    const [n1, n2] = (await world.cluster('n1', 'n2')) as [TestProcess, TestProcess];
    for (const round of upTo(100)) n1.beat(n2, round);
    await world.run(100);
    world.network.detach(n1.member.node, n1.boot, 'closed');
    await world.run(100);
    const before = n2.events.length;
    const again = world.start('n1');
    for (const round of upTo(100)) again.beat(n2, 1_000 + round);
    await world.run(500);
    const types = n2.events.slice(before).map(({ type }) => type);
    expect(types.indexOf('hello')).toBeLessThan(types.indexOf('message'));
    expect(
      rounds(n2)
        .slice(-100)
        .some((round) => round < 1_000),
    ).toBe(true);
    for (const [node, { boot }] of [
      ['n1', again],
      ['n2', n2],
    ] as const)
      world.network.detach(node as NodeId, boot, 'closed');
    const history = { ...world.genesis, incarnation: 'c'.repeat(32) as never };
    const other = world.start('n2', 1, history);
    const from = world.start('n1', 1, history);
    for (const round of upTo(50)) from.beat(other, 2_000 + round);
    await world.run(500);
    expect(rounds(other).length).toBeGreaterThan(50);
    expect(rounds(other).every((round) => round > 2_000)).toBe(true);
  });
});

describe('shapes of partitions', () => {
  /** Who hears whom, after `shape`: each node sends to each other one. */
  async function heard(
    names: readonly string[],
    shape: (faults: NetworkFaults) => void,
    seed = 1,
  ): Promise<Set<string>> {
    const world = new TestWorld(names, {}, seed);
    const processes = await world.cluster(...names);
    shape(new NetworkFaults(world.surroundings, world.network, names as readonly NodeId[]));
    for (const from of processes) for (const to of processes) if (from !== to) from.beat(to, 1);
    await world.run(100);
    const links = (): string[] =>
      processes.flatMap((to) => to.messages.map((message) => `${message.from.node}>${to.member.node}`));
    const got = new Set(links());
    world.network.heal();
    await world.run(100);
    expect(links()).toHaveLength(names.length * (names.length - 1));
    return got;
  }
  const FIVE = ['n1', 'n2', 'n3', 'n4', 'n5'];

  test('halves, one node, the leader', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const got = await heard(
        FIVE,
        (faults) => {
          faults.halves();
        },
        seed,
      );
      expect([8, 12]).toContain(got.size);
    }
    const rest = await heard(FIVE, (faults) => {
      faults.isolate('n2' as NodeId);
    });
    expect(rest.size).toBe(12);
    expect([...rest].some((link) => link.includes('n2'))).toBe(false);
    const three = await heard(['n1', 'n2', 'n3'], (faults) => {
      faults.isolateLeader('n3' as NodeId);
    });
    expect(three).toEqual(new Set(['n1>n2', 'n2>n1']));
  });

  test('a bridge hears both groups, which do not hear each other', async () => {
    const got = await heard(FIVE, (faults) => {
      faults.bridge();
    });
    expect(got.size).toBe(2 * 2 + 4 * 2);
    const reach = FIVE.map((name) => [...got].filter((link) => link.startsWith(name)).length);
    expect(reach.toSorted()).toEqual([2, 2, 2, 2, 4]);
    const three = await heard(['n1', 'n2', 'n3'], (faults) => {
      faults.bridge();
    });
    expect(three.size).toBe(4);
  });

  test('a ring: neighbours only; of three nodes, one way round', async () => {
    const got = await heard(FIVE, (faults) => {
      faults.ring();
    });
    expect(FIVE.map((name) => [...got].filter((link) => link.startsWith(name)).length)).toEqual([2, 2, 2, 2, 2]);
    const three = await heard(['n1', 'n2', 'n3'], (faults) => {
      faults.ring();
    });
    expect(three.size).toBe(3);
    expect(new Set([...three].map((link) => link.slice(0, 2))).size).toBe(3);
  });

  test('a random graph, one way, and links that deliver later', async () => {
    const got = await heard(FIVE, (faults) => {
      faults.randomGraph(500);
    });
    expect(got.size).toBeGreaterThan(3);
    expect(got.size).toBeLessThan(17);
    const way = await heard(['n1', 'n2'], (faults) => {
      faults.anyOneWay();
    });
    expect(way.size).toBe(1);
    const clogged = await heard(['n1', 'n2'], (faults) => {
      faults.clog(150);
    });
    expect(clogged.size).toBe(1);
  });

  test('swizzle: the links of one node go one after another and come back one after another', async () => {
    const world = new TestWorld(FIVE);
    const processes = await world.cluster(...FIVE);
    const [n1, ...others] = processes;
    new NetworkFaults(world.surroundings, world.network, FIVE as NodeId[]).swizzle('n1' as NodeId, 1_000);
    const hears = async (): Promise<number> => {
      const before = others.map((each) => each.messages.length);
      for (const each of others) n1?.beat(each, 1);
      await world.run(5);
      return others.filter((each, at) => each.messages.length > (before[at] ?? 0)).length;
    };
    const counts = new Set<number>();
    for (let step = 0; step < 100; step++) {
      counts.add(await hears());
      await world.run(7);
    }
    expect(counts.has(0)).toBe(true);
    expect([...counts].some((count) => count > 0 && count < 4)).toBe(true);
    await world.run(100);
    expect(await hears()).toBe(4);
  });
});

describe.each([true, false])('questions while forming, with codecs %s', (codecs) => {
  const boot = '7'.repeat(32) as never;
  const request = (world: TestWorld): FormRequest => ({
    hello: { cluster: 'test', incarnation: '', ...member('n1'), boot, format: 1 },
    initialMembersDigest: '0'.repeat(16),
    unixUs: 1_796_000_000_000_000,
    stateDigest: '',
    genesis: world.genesis,
  });

  test('one that listens answers; and after it has formed; nobody, or no machine, does not', async () => {
    const world = new TestWorld(['n1', 'n2'], { codecs });
    const asked: FormRequest[] = [];
    const answers: (FormResponse | undefined)[] = [];
    const ask = (): (() => void) =>
      world.network.ask('n1' as NodeId, 'n2' as NodeId, request(world), 300, (response) => answers.push(response));
    ask();
    await world.run(50);
    expect(answers).toEqual([undefined]);

    const n2 = 'n2' as NodeId;
    const listen = (): void => {
      world.network.listen(n2, boot, {
        answer: (question, respond) => {
          asked.push(question);
          world.scheduler.after(5, () => {
            respond({ ...question, forming: true });
          });
        },
      });
    };
    listen();
    ask();
    await world.run(50);
    expect(asked).toEqual([request(world)]);
    expect(answers).toEqual([undefined, { ...request(world), forming: true }]);

    world.network.cut(n2, 'n1' as NodeId);
    ask();
    await world.run(200);
    expect(answers).toHaveLength(2);
    await world.run(200);
    expect(answers).toHaveLength(3);
    expect(world.coverage.counts.get('forming ask timed out')).toBe(1);
    world.network.heal();

    ask()();
    await world.run(400);
    expect(answers).toHaveLength(3);
    ask();
    world.network.detach(n2, boot, 'closed');
    await world.run(50);
    expect(answers.slice(3)).toEqual([undefined]);
    listen();
    world.network.detach(n2, boot, 'power');
    ask();
    await world.run(290);
    expect(answers).toHaveLength(4);
    await world.run(50);
    expect(answers.slice(4)).toEqual([undefined]);
  });

  test('before it has a history its streams are refused, and what waits for them is lost', async () => {
    const world = new TestWorld(['n1', 'n2'], { codecs });
    world.network.listen('n2' as NodeId, boot, { answer: () => undefined });
    const n1 = world.start('n1');
    n1.peers.perform({ type: 'send', message: n1.heartbeat(member('n2'), 1) });
    n1.peers.perform({ type: 'probe', node: 'n2' as NodeId });
    await world.run(500);
    expect(n1.events.map(({ type }) => type).toSorted()).toEqual(['probed', 'unreachable']);
    expect(n1.all('probed')[0]?.outcome).toBe('other');
  });
});

test('equal seeds give equal runs, others give others', async () => {
  const wild = { loss: 100, duplicate: 100, replay: 50, reorder: true, spikeChance: 20, latencyMs: [1, 20] as const };
  const story = async (seed: number): Promise<string> => {
    const world = new TestWorld(['n1', 'n2', 'n3'], wild, seed);
    const processes = await world.cluster('n1', 'n2', 'n3');
    const faults = new NetworkFaults(world.surroundings, world.network, ['n1', 'n2', 'n3'] as NodeId[]);
    for (const round of upTo(100)) {
      for (const from of processes) for (const to of processes) if (from !== to) from.beat(to, round);
      if (round === 20) faults.halves();
      if (round === 40) world.network.heal();
      if (round === 50) faults.swizzle('n2' as NodeId, 500);
      if (round === 70 && processes[2] !== undefined) world.network.detach('n3' as NodeId, processes[2].boot, 'closed');
      if (round === 80) faults.randomGraph(300);
      await world.run(50);
    }
    return [...world.told, ...world.lines, JSON.stringify([...world.coverage.counts])].join('\n');
  };
  const first = await story(5);
  expect(first.length).toBeGreaterThan(10_000);
  expect(await story(5)).toBe(first);
  expect(await story(6)).not.toBe(first);
});
