/** The lanes report what the real transport does: see test/transport (kill, link, hello, messages). */
import { describe, expect, test } from 'vitest';
import { TestWorld } from './kit.js';
import type { TestProcess } from './kit.js';

type Two = [TestProcess, TestProcess];
type Three = [TestProcess, TestProcess, TestProcess];

const rounds = (process: TestProcess): number[] =>
  process.messages.flatMap((message) => (message.type === 'heartbeat' ? [message.round] : []));
const upTo = (n: number): number[] => Array.from({ length: n }, (_, at) => at + 1);
const sorted = (types: readonly string[]): string[] => types.toSorted();
/** What a member is told when every stream between it and another one ends. */
const ALL_ENDED = ['forwardLost', 'forwarderLost', 'streamEnded', 'streamEnded', 'unreachable', 'unreachable'];

async function probe(world: TestWorld, from: TestProcess, to: TestProcess): Promise<string | undefined> {
  const before = from.count('probed');
  from.peers.perform({ type: 'probe', node: to.member.node });
  expect(from.count('probed')).toBe(before);
  await world.run(400);
  return from.all('probed')[before]?.outcome;
}

describe('streams', () => {
  test('the hello of each lane is told, and nothing else', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    const { member, boot } = n1;
    expect(n2.events).toEqual(Array.from({ length: 3 }, () => ({ type: 'hello', ...member, boot })));
    expect(n1.count('hello')).toBe(3);
  });

  test('messages arrive in order, whatever was sent before the connection stood', async () => {
    const world = new TestWorld(['n1', 'n2'], { latencyMs: [1, 30] });
    const n1 = world.start('n1');
    const n2 = world.start('n2');
    for (const round of upTo(100)) n1.beat(n2, round);
    await world.run(1_000);
    for (const round of upTo(100)) n1.beat(n2, 100 + round);
    await world.run(1_000);
    expect(rounds(n2)).toEqual(upTo(200));
    expect(n1.count('unreachable')).toBe(0);
  });

  test('what is sent during a dial is lost with it, and that is told; between two it waits for the next', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const n1 = world.start('n1');
    const n2 = { member: { ...n1.member, node: 'n2' as typeof n1.member.node } };
    n1.peers.perform({ type: 'send', message: n1.heartbeat(n2.member, 1) });
    await world.run(500);
    expect(n1.events).toEqual([{ type: 'unreachable', node: 'n2' }]);
    // Between two dials: this one waits for the next.
    n1.peers.perform({ type: 'send', message: n1.heartbeat(n2.member, 2) });
    const late = world.start('n2');
    await world.run(500);
    expect(rounds(late)).toEqual([2]);
    expect(n1.count('hello')).toBe(3);
    // n2 said hello, so n1 dialled at once though its pause was longer.
    expect(late.count('hello')).toBe(3);
  });

  test('what finds no room is dropped, and that is told once there is room again', async () => {
    const world = new TestWorld(['n1', 'n2'], { room: 10 });
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    world.network.clog(n1.member.node, n2.member.node, 100);
    for (const round of upTo(25)) n1.beat(n2, round);
    await world.run(90);
    expect(n1.count('unreachable')).toBe(0);
    await world.run(500);
    expect(n1.typesSince(3)).toEqual(['unreachable']);
    expect(rounds(n2)).toEqual(upTo(20));
    expect(world.coverage.counts.get('dropped for lack of room')).toBe(5);
  });
});

describe('a process that ends', () => {
  test('killed: every stream ends at the others, no message comes after, a connect is refused; back, its boot is told', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const world = new TestWorld(['n1', 'n2', 'n3'], {}, seed);
      const [n1, n2, n3] = (await world.cluster('n1', 'n2', 'n3')) as Three;
      const before = n1.events.length;
      for (const round of upTo(20)) n2.beat(n1, round);
      world.network.detach(n2.member.node, n2.boot, 'closed');
      await world.run(100);
      expect(sorted(n1.typesSince(before))).toEqual(ALL_ENDED);
      const first = n1.events.findIndex(({ type }) => type === 'streamEnded');
      const control = n1.events.findLastIndex(({ type }) => type === 'message');
      if (control > first) {
        // The append lane ended first.
        expect(n1.events.slice(control).some(({ type }) => type === 'streamEnded')).toBe(true);
      }
      expect(rounds(n1)).toEqual(upTo(rounds(n1).length));
      expect(await probe(world, n1, n2)).toBe('refused');
      expect(await probe(world, n1, n3)).toBe('other');
      const told = n2.events.length;
      const again = world.start('n2');
      await world.run(100);
      expect(n1.all('hello').slice(6)).toEqual(
        Array.from({ length: 3 }, () => ({ type: 'hello', ...n2.member, boot: again.boot })),
      );
      expect(n2.events).toHaveLength(told);
      n1.beat(again, 7);
      await world.run(10);
      expect(rounds(again)).toEqual([7]);
    }
  });

  test('a message under way may or may not arrive when a process is killed; it does when the process stops', async () => {
    const arrived = new Set<string>();
    for (let seed = 1; seed <= 30; seed++) {
      for (const how of ['closed', 'stopped'] as const) {
        const world = new TestWorld(['n1', 'n2'], {}, seed);
        const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
        n2.beat(n1, 1);
        world.network.detach(n2.member.node, n2.boot, how);
        await world.run(100);
        arrived.add(`${how} ${rounds(n1).length}`);
      }
    }
    expect(sorted([...arrived])).toEqual(['closed 0', 'closed 1', 'stopped 1']);
  });

  test('without power: silence until each end has waited long enough, a connect is not refused; then as after a kill', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    const before = n1.events.length;
    world.network.detach(n2.member.node, n2.boot, 'power');
    await world.run(1_900);
    expect(n1.typesSince(before)).toEqual([]);
    expect(await probe(world, n1, n2)).toBe('other');
    await world.run(4_000);
    expect(sorted(n1.typesSince(before))).toEqual(sorted([...ALL_ENDED, 'probed']));
    expect(world.coverage.counts.get('stream ended by keep-alive')).toBe(6);
    expect(await probe(world, n1, n2)).toBe('other');
    // Nothing comes back from a dial: each is given up after two seconds only, with what waited for it.
    const lost = n1.count('unreachable');
    for (let step = 0; step < 200; step++) {
      n1.beat(n2, step);
      await world.run(100);
    }
    expect([9, 10, 11]).toContain(n1.count('unreachable') - lost);
  });

  test('a machine that has power again resets the streams of its last life', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    world.network.detach(n2.member.node, n2.boot, 'power');
    await world.run(200);
    const before = n1.events.length;
    const again = world.start('n2');
    await world.run(300);
    const types = n1.typesSince(before);
    expect(sorted(types)).toEqual(sorted([...ALL_ENDED, 'hello', 'hello', 'hello']));
    // The streams of the last life are over before the new one is announced.
    expect(types.lastIndexOf('streamEnded')).toBeLessThan(types.indexOf('hello'));
    n1.beat(again, 1);
    await world.run(10);
    expect(rounds(again)).toEqual([1]);
  });

  test('stopped without a word: neither ended nor refused, until it has been silent for too long', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    const before = n1.events.length;
    world.network.pause(n2.member.node, n2.boot);
    n1.beat(n2, 1);
    expect(await probe(world, n1, n2)).toBe('other');
    expect(rounds(n2)).toEqual([]);
    world.network.resume(n2.member.node, n2.boot);
    expect(rounds(n2)).toEqual([1]);
    await world.run(5_000);
    expect(n1.typesSince(before)).toEqual(['probed']);

    world.network.pause(n2.member.node, n2.boot);
    await world.run(5_000);
    expect(sorted(n1.typesSince(before))).toEqual(sorted([...ALL_ENDED, 'probed']));
    const stood = n2.events.length;
    world.network.resume(n2.member.node, n2.boot);
    await world.run(3_000);
    expect(n2.typesSince(stood).filter((type) => type === 'streamEnded').length).toBeGreaterThanOrEqual(2);
    n1.beat(n2, 2);
    n2.beat(n1, 3);
    await world.run(10);
    expect([rounds(n2).at(-1), rounds(n1).at(-1)]).toEqual([2, 3]);
  });
});

describe('links that are cut', () => {
  test('a short cut delays, and nothing is told', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    world.network.cut(n1.member.node, n2.member.node);
    for (const round of upTo(5)) n1.beat(n2, round);
    n2.beat(n1, 1);
    await world.run(1_000);
    expect([rounds(n1), rounds(n2)]).toEqual([[1], []]);
    world.network.mend(n1.member.node, n2.member.node);
    n1.beat(n2, 6);
    await world.run(5_000);
    expect(rounds(n2)).toEqual(upTo(6));
    expect([n1.typesSince(3), n2.typesSince(3)]).toEqual([[], []]);
  });

  test.each([
    ['both ways', true],
    ['one way', false],
  ])('a long one, %s, is noticed by both ends and left when it heals', async (_name, both) => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    world.network.cut(n1.member.node, n2.member.node);
    if (both) world.network.cut(n2.member.node, n1.member.node);
    await world.run(10_000);
    expect(sorted(n1.typesSince(3))).toEqual(ALL_ENDED);
    expect(sorted(n2.typesSince(3))).toEqual(ALL_ENDED);
    expect(await probe(world, n1, n2)).toBe('other');
    expect(await probe(world, n2, n1)).toBe('other');
    expect(n1.count('hello') + n2.count('hello')).toBe(6);
    world.network.heal();
    await world.run(2_500);
    n1.beat(n2, 1);
    n2.beat(n1, 2);
    await world.run(10);
    expect([rounds(n2), rounds(n1)]).toEqual([[1], [2]]);
  });

  test('a newer stream of a kind replaces the older one without an ending being told', async () => {
    let replaced = 0;
    for (let seed = 1; seed <= 20; seed++) {
      const world = new TestWorld(['n1', 'n2'], {}, seed);
      const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
      world.network.cut(n1.member.node, n2.member.node);
      // n1 has given its streams up and dials again; n2 has not noticed.
      while (n1.count('unreachable') === 0) await world.run(10);
      await world.run(100);
      world.network.heal();
      await world.run(1_000);
      // Every stream that was announced is open, or its end was told, or a newer one of its kind took its place.
      const silent = [n1, n2].map((n) => n.count('hello') - 3 - n.count('streamEnded') - n.count('forwarderLost'));
      const { counts } = world.coverage;
      const now = (counts.get('control stream replaced') ?? 0) + (counts.get('append stream replaced') ?? 0);
      expect((silent[0] ?? 0) + (silent[1] ?? 0)).toBe(now);
      replaced += now;
      n1.beat(n2, 1);
      await world.run(10);
      expect(rounds(n2)).toEqual([1]);
    }
    expect(replaced).toBeGreaterThan(0);
  });

  test('killed behind a cut: told when it heals', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    world.network.cut(n2.member.node, n1.member.node);
    world.network.detach(n2.member.node, n2.boot, 'closed');
    await world.run(1_000);
    expect(n1.typesSince(3)).toEqual([]);
    world.network.heal();
    await world.run(10);
    expect(sorted(n1.typesSince(3))).toEqual(ALL_ENDED);
  });

  test('refused but alive: streams end at both ends, a connect is refused, its own dials get through', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    world.network.refuse(n2.member.node, true);
    await world.run(40);
    expect(sorted(n1.typesSince(3))).toEqual(ALL_ENDED);
    expect(sorted(n2.typesSince(3))).toEqual(ALL_ENDED);
    expect(await probe(world, n1, n2)).toBe('refused');
    n2.beat(n1, 1);
    n1.beat(n2, 2);
    await world.run(1_500);
    expect([rounds(n1), rounds(n2)]).toEqual([[1], []]);
    world.network.heal();
    await world.run(1_500);
    n1.beat(n2, 3);
    await world.run(10);
    expect(rounds(n2)).toEqual([3]);
  });
});

describe('two processes of one node', () => {
  test('while the first is alive the second is refused and cannot be reached; then it takes the place', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    const second = world.start('n2');
    second.beat(n1, 9);
    await world.run(3_000);
    expect(n1.typesSince(3)).toEqual([]);
    expect(second.count('hello')).toBe(0);
    expect(second.count('unreachable')).toBe(1);
    expect(world.coverage.counts.get('second process refused')).toBeGreaterThan(0);
    world.network.detach(n2.member.node, n2.boot, 'closed');
    await world.run(3_000);
    second.beat(n1, 10);
    await world.run(10);
    expect(rounds(n1)).toEqual([10]);
    expect(n1.all('hello').at(-1)?.boot).toBe(second.boot);
  });

  test('a first process that fell silent makes way before the second is announced', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const [n1, n2] = (await world.cluster('n1', 'n2')) as Two;
    world.network.pause(n2.member.node, n2.boot);
    const second = world.start('n2');
    await world.run(1_500);
    const types = n1.typesSince(3);
    expect(types.filter((type) => type === 'streamEnded')).toHaveLength(2);
    expect(types.filter((type) => type === 'forwarderLost')).toHaveLength(1);
    expect(types.lastIndexOf('streamEnded')).toBeLessThan(types.indexOf('hello'));
    expect(n1.all('hello').at(-1)?.boot).toBe(second.boot);
  });
});

describe('a history of its own', () => {
  test('members of another history are not spoken with', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const n1 = world.start('n1');
    const stranger = world.start('n2', 1, { ...world.genesis, incarnation: 'b'.repeat(32) as never });
    n1.beat(stranger, 1);
    await world.run(2_000);
    expect(n1.events.map(({ type }) => type)).toEqual(['unreachable']);
    expect(stranger.events).toEqual([]);
  });

  test('a member with another directory is spoken with: whom it counts, the core decides', async () => {
    const world = new TestWorld(['n1', 'n2']);
    const n1 = world.start('n1');
    const other = world.start('n2', 9);
    await world.run(100);
    expect(n1.all('hello')[0]?.directory).toBe(other.member.directory);
    other.beat(n1, 1);
    n1.peers.perform({ type: 'send', message: n1.heartbeat({ ...other.member, directory: n1.member.directory }, 2) });
    await world.run(10);
    expect([rounds(n1), rounds(other)]).toEqual([[1], [2]]);
  });
});
