/** Carries out the faults of a run's plan. What a fault meets is looked at when it comes; what it cannot meet it leaves. */
import { createRandom, nextInt } from '../../src/base/random.js';
import type { Random } from '../../src/base/random.js';
import { between, chance, pick } from './chance.js';
import type { NetworkFaultKind } from './fault-kinds.js';
import type { PlannedFault } from './faults.js';
import type { SimMember } from './member.js';
import { NetworkFaults } from './network/faults.js';
import type { CrashHow } from './ports.js';
import { Traps } from './traps.js';
import { inflictSequence } from './sequences.js';
import type { World } from './world.js';

/** Bytes that are fewer than any limit of a run. */
const TOO_FEW_BYTES = 10;
/** A leader is busy with so many entries that are not committed; it is waited for through so many election time-outs. */
const BUSY_ENTRIES = 2;
const BUSY_LIMIT = 3;
/** A process that was told to stop and did not is killed after so many election time-outs. */
const STOP_LIMIT = 6;

/** See the head of the file. One for each run. */
export class Inflictor {
  readonly #world: World;
  /** Copies of directories, as an operator may keep them. */
  readonly #copies = new Map<SimMember, unknown>();
  readonly #traps: Traps;

  constructor(world: World) {
    this.#world = world;
    this.#traps = new Traps(world, (member, how, ms) => {
      this.#kill(member, how, ms);
    });
  }

  /** Does to the world what `fault` says. */
  inflict(fault: PlannedFault): void {
    const world = this.#world;
    const { kind, ms } = fault;
    const random = createRandom(fault.chance[0] ?? 0);
    const member = pick(random, world.members);
    world.story.tell(`fault ${fault.number}: ${kind} ${member.node} ${Math.round(ms)} ms`);
    switch (kind) {
      case 'kill':
        this.#kill(member, { lose: 'none', underWay: pick(random, ['lost', 'torn', 'kept']) }, ms);
        return;
      case 'power':
        this.#kill(member, { lose: 'unsynced', underWay: pick(random, ['lost', 'torn', 'kept']) }, ms);
        return;
      case 'power at a write':
        // Where in a write it strikes is a matter of the moment.
        world.scheduler.after(between(random, 0, 5), () => {
          this.#kill(member, { lose: 'unsynced', underWay: pick(random, ['lost', 'torn', 'kept']) }, ms);
        });
        return;
      case 'power at an operation':
        this.#traps.atAnOperation(member, random);
        return;
      case 'power at a switch':
        this.#traps.atASwitch(random);
        return;
      case 'leave behind':
        this.#traps.leaveBehind(random);
        return;
      case 'kill all':
        this.#count('all members killed');
        for (const each of world.members)
          this.#kill(each, { lose: pick(random, ['unsynced', 'none']), underWay: 'lost' }, between(random, 1, ms));
        return;
      case 'stop':
        this.#stop(member);
        return;
      case 'pause':
        this.#pause(member, ms, false);
        return;
      case 'suspend':
        this.#pause(member, ms, true);
        return;
      case 'wall jump':
        this.#count('wall clock jumped');
        member.machine.jumpWall(between(random, -1, 1) * (chance(random, 500) ? 5_000 : 3_600_000));
        return;
      case 'disk stall':
        if (!member.up) return;
        this.#count('disk stalled');
        member.disk.stall();
        world.scheduler.after(ms, () => {
          member.disk.resume();
        });
        return;
      case 'EIO':
      case 'ENOSPC':
        if (!member.up) return;
        this.#count(`disk ${kind}`);
        member.disk.fail(kind);
        return;
      case 'disk low':
        this.#low(random, ms);
        return;
      case 'isolate busy leader':
        this.#isolateBusy(member, ms, random);
        return;
      case 'halves':
      case 'isolate':
      case 'isolate leader':
      case 'one way':
      case 'bridge':
      case 'ring':
      case 'random links':
      case 'swizzle':
      case 'clog':
      case 'star':
      case 'refuse':
        this.#disturb(kind, member, ms, random);
        return;
      case 'outage':
      case 'transfer cut short':
      case 'leaders in turn':
      case 'stall at an install':
      case 'transfer behind a stall':
        inflictSequence(world, kind, member, ms, random);
        return;
      case 'transfer':
        this.#count('hand-over asked for');
        world.clients.transferLeadership(pick(random, world.members).node);
        return;
      case 'wipe':
        this.#wipe(member);
        return;
      case 'wipe while new':
        this.#wipeNew(member);
        return;
      case 'roll back':
        this.#rollBack(member, ms);
        return;
      case 'flip':
        this.#flip(member, ms);
        return;
      case 'form again':
        this.#formAgain(random);
        return;
      case 'client pause':
        world.clients.pause(random, ms);
        return;
      case 'client suspend':
        world.clients.suspend(random, ms);
        return;
      case 'client wall jump':
        world.clients.jumpWall(random);
        return;
      case 'client cut':
        world.clients.cut(random, ms);
    }
  }

  /** No fault has an effect any more, but for disks that are lost. */
  heal(): void {
    const { members, network, snares, moments } = this.#world;
    moments.clear();
    network.heal();
    network.calm();
    snares.clear();
    for (const member of members) {
      member.freeBytes = Infinity;
      member.disk.resume();
      member.disk.atNoOperation();
      member.machine.wake();
      member.resume();
      if (!member.up && !member.gone) member.start();
    }
  }

  #count(name: string): void {
    this.#world.coverage.count(name);
  }

  #kill(member: SimMember, how: CrashHow, ms: number): void {
    if (!member.up) return;
    this.#count(how.lose === 'none' ? 'process killed' : 'power lost');
    member.kill(how);
    this.#world.startLater(member, ms);
  }

  #stop(member: SimMember): void {
    if (member.process === undefined) return;
    this.#count('stop asked for');
    const { run } = member.process;
    member.stop();
    this.#world.scheduler.after(STOP_LIMIT * this.#world.parameters.replica.electionMaxMs, () => {
      if (member.process?.run !== run) return;
      member.kill({ lose: 'none', underWay: 'lost' });
      this.#world.startLater(member, 0);
    });
  }

  #pause(member: SimMember, ms: number, asleep: boolean): void {
    if (!member.up || member.paused) return;
    this.#count(asleep ? 'machine suspended' : 'process paused');
    if (this.#world.leader() === member) this.#count(asleep ? 'leader suspended' : 'leader paused');
    member.pause();
    if (asleep) member.machine.sleep();
    this.#world.scheduler.after(ms, () => {
      if (asleep) member.machine.wake();
      member.resume();
    });
  }

  #low(random: Random, ms: number): void {
    const { members, scheduler } = this.#world;
    this.#count('disk low');
    const few = members.filter(() => chance(random, 600));
    for (const each of few) each.freeBytes = TOO_FEW_BYTES;
    scheduler.after(ms, () => {
      for (const each of few) each.freeBytes = Infinity;
    });
  }

  /** The disk is lost: its machine comes back with an empty one, and must not be taken for the same member. */
  #wipe(member: SimMember): void {
    if (!this.#maySpare(member)) return;
    this.#count('disk wiped');
    // What it acknowledged counts on: it was durable there, and its directory does not come back.
    member.kill({ lose: 'unsynced', underWay: 'lost' });
    member.disk.wipe();
    member.wiped = true;
    this.#world.startLater(member, 10);
  }

  /**
   * A disk is lost that has promised nothing: forming waits for the new one, unless the record was written for the old
   * one meanwhile. Then its member is lost, so this must be a minority, too.
   */
  #wipeNew(member: SimMember): void {
    const { members } = this.#world;
    const lost = members.filter(({ wiped, flipped }) => wiped || flipped).length;
    if (!member.isNew || member.wiped || 2 * (lost + 1) >= members.length) return;
    this.#count('disk wiped while new');
    member.kill({ lose: 'unsynced', underWay: 'lost' });
    member.disk.wipe();
    member.wiped = true;
    this.#world.startLater(member, 10);
  }

  #flip(member: SimMember, ms: number): void {
    if (!this.#maySpare(member)) return;
    member.kill({ lose: 'none', underWay: 'lost' });
    if (member.disk.flip()) {
      this.#count('byte flipped on a disk');
      member.flipped = true;
    }
    this.#world.startLater(member, ms);
  }

  /** A member is stopped, its directory copied, and after it ran on for a while the copy is put back. */
  #rollBack(member: SimMember, ms: number): void {
    if (member.process === undefined || member.wiped || member.flipped) return;
    member.kill({ lose: 'none', underWay: 'lost' });
    const copy = member.disk.copy();
    this.#copies.set(member, copy);
    this.#world.startLater(member, 10);
    this.#world.scheduler.after(ms, () => {
      if (this.#copies.get(member) !== copy || member.wiped || member.flipped || member.gone) return;
      this.#count('directory rolled back');
      this.#world.unjudged = true;
      member.kill({ lose: 'none', underWay: 'lost' });
      this.#world.forget(member);
      member.disk.restore(copy);
      this.#world.startLater(member, 10);
    });
  }

  /** Every disk is lost. Whoever formed the cluster forms it again under its name; the resource keeps its fence. */
  #formAgain(random: Random): void {
    const { members } = this.#world;
    if (members.some(({ gone }) => gone)) return;
    this.#count('cluster formed again');
    this.#copies.clear();
    for (const member of members) member.kill({ lose: 'unsynced', underWay: 'lost' });
    this.#world.formingAnew();
    // One after another, or all as the power comes back.
    const withinMs = pick(random, [300, 10, 10]);
    for (const member of members) {
      this.#world.forget(member);
      member.disk.wipe();
      member.wiped = false;
      member.flipped = false;
      this.#world.startLater(member, between(random, 0, withinMs));
      if (chance(random, 700)) this.#traps.atAnOperation(member, random);
    }
  }

  /** Whether this disk may be lost: all hold their history, and without it a majority still does. */
  #maySpare(member: SimMember): boolean {
    const { members } = this.#world;
    const lost = members.filter(({ wiped, flipped }) => wiped || flipped);
    if (lost.includes(member) || member.process === undefined) return false;
    if (members.some((each) => each.process === undefined && !lost.includes(each))) return false;
    return 2 * (lost.length + 1) < members.length;
  }

  /** Waits for a leader with entries that others have in part only, and cuts it off until another one is elected. */
  #isolateBusy(member: SimMember, ms: number, random: Random): void {
    const { scheduler, parameters } = this.#world;
    const { electionMaxMs, tickMs } = parameters.replica;
    const until = scheduler.now + BUSY_LIMIT * electionMaxMs;
    const look = (): void => {
      const raft = this.#world.leader()?.replica?.context.raft;
      if (raft !== undefined && raft.log.anchor.index + raft.log.entries.length >= raft.commit + BUSY_ENTRIES) {
        this.#count('busy leader isolated');
        this.#disturb('isolate leader', member, Math.max(ms, 2 * electionMaxMs), random);
      } else if (scheduler.now < until) scheduler.after(tickMs / 20, look);
    };
    look();
  }

  #disturb(kind: NetworkFaultKind, member: SimMember, ms: number, random: Random): void {
    const { members, scheduler, network, parameters } = this.#world;
    if (members.length < 2) return;
    const links = members.flatMap(({ node: from }) => members.map(({ node: to }) => [from, to] as const));
    const whole = links.filter(([from, to]) => !network.wire.isCut(from, to));
    const shapes = new NetworkFaults(
      { ...this.#world.surroundings('network faults'), random },
      network,
      members.map(({ node }) => node),
    );
    switch (kind) {
      case 'halves':
        shapes.halves();
        break;
      case 'isolate':
        shapes.isolate(member.node);
        break;
      case 'isolate leader': {
        const leader = this.#world.leader();
        if (leader === undefined) return;
        shapes.isolateLeader(leader.node);
        break;
      }
      case 'one way':
        shapes.anyOneWay();
        break;
      case 'bridge':
        shapes.bridge();
        break;
      case 'star':
        shapes.star(members[0]?.node ?? member.node);
        break;
      case 'ring':
        shapes.ring();
        break;
      case 'random links':
        shapes.randomGraph(nextInt(random, 100, 700));
        break;
      case 'swizzle':
        shapes.swizzle(member.node, Math.min(ms, parameters.durationMs - scheduler.now));
        return;
      case 'clog':
        shapes.clog(ms);
        return;
      case 'refuse':
        network.refuse(member.node, true);
        scheduler.after(ms, () => {
          network.refuse(member.node, false);
        });
        return;
    }
    const cut = whole.filter(([from, to]) => network.wire.isCut(from, to));
    scheduler.after(ms, () => {
      for (const [from, to] of cut) network.mend(from, to);
    });
  }
}
