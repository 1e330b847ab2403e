/**
 * Faults that wait for their moment: lost power at one certain operation of a disk, and what leads to a switch of the log
 * or the table, of which a run has few.
 */
import { nextInt } from '../../src/base/random.js';
import type { Random } from '../../src/base/random.js';
import { termAt } from '../../src/raft/log.js';
import { between, chance, pick, skewedInt } from './chance.js';
import type { SimMember } from './member.js';
import type { Step } from './observation.js';
import type { CrashHow } from './ports.js';
import type { World } from './world.js';

/** Writing operations on a disk from a first start on an empty one to the first write of the member. */
const FIRST_START_OPERATIONS = 20;
/** A switch of the log and what may wait before it in the queue. */
const SWITCH_OPERATIONS = 6;
/** As well as what comes behind it until the disk is as if it had always been so. */
const AFTER_OPERATIONS = 30;
/** A machine that lost power at an operation is back within so many milliseconds. */
const BACK_MS = 300;
/** A leader is left behind for so many greatest election time-outs at most. */
const BEHIND_ELECTIONS = 4;

/** Kills a member's process in some way; it starts again after so many milliseconds. */
export type Kill = (member: SimMember, how: CrashHow, ms: number) => void;

/** See the head of the file. */
export class Traps {
  readonly #world: World;
  readonly #kill: Kill;

  constructor(world: World, kill: Kill) {
    this.#world = world;
    this.#kill = kill;
  }

  /** At any operation of the next ones, each as likely as the others: as many as a first start has. */
  atAnOperation(member: SimMember, random: Random): void {
    this.#powerAt(member, nextInt(random, 1, FIRST_START_OPERATIONS), 850, random);
  }

  /** At the next conflict cut of any member, or at the next snapshot on its way to a disk. */
  atASwitch(random: Random): void {
    const kind = pick(random, ['cut', 'cut', 'install', 'install', 'stage'] as const);
    this.#world.snares.lay(kind, (effect, { process }) => {
      if (!isSwitch(effect, kind)) return false;
      this.#count(`${kind} met by lost power`);
      this.#powerNear(process.member.node, random);
      return true;
    });
  }

  /**
   * The leader is cut off, and the others go on without it until the log in which its own could still be found has gone:
   * then it is back, with what it alone had, and is sent a snapshot that may be of before that. Power is lost at it.
   */
  leaveBehind(random: Random): void {
    const { members, network, scheduler, snares, parameters } = this.#world;
    const old = this.#world.leader();
    const context = old?.replica?.context;
    if (old === undefined || context === undefined || members.length < 3) return;
    this.#count('leader left behind');
    const { term } = context.raft.hard;
    const others = members.filter((each) => each !== old).map(({ node }) => node);
    for (const node of others) network.cut(old.node, node);
    // Until somebody campaigns it may hear the others, and what their clients ask for: then there is more that it alone has.
    const deafen = (): void => {
      for (const node of others) network.cut(node, old.node);
    };
    if (chance(random, 400)) deafen();
    let away = true;
    const back = (): void => {
      // When everything is healed, all of it is over.
      if (!away || scheduler.now > parameters.durationMs) return;
      away = false;
      // Its connections end: what was sent to it before would still find its log.
      network.refuse(old.node, true);
      network.refuse(old.node, false);
      for (const node of others) {
        network.mend(old.node, node);
        network.mend(node, old.node);
      }
    };
    scheduler.after(BEHIND_ELECTIONS * parameters.replica.electionMaxMs, back);
    snares.lay('left behind', (effect, { process, context: { raft } }) => {
      if (!away) return true;
      if (process.member.node === old.node || raft.hard.term <= term) return false;
      deafen();
      const anchored = effect.type === 'cut' && termAt(raft.log, effect.cut.keepFrom - 1) === raft.hard.term;
      if (!anchored) return false;
      this.#count('leader back behind a snapshot');
      // The cut is to be on the disk by then.
      scheduler.after(parameters.disk.syncMs[1], back);
      snares.lay('back', (next, step) => {
        if (step.process.member.node !== old.node) return false;
        if (!isSwitch(next, 'cut') && !isSwitch(next, 'install')) return false;
        this.#powerNear(old.node, random);
        return true;
      });
      return true;
    });
  }

  #powerNear(node: SimMember['node'], random: Random): void {
    const member = this.#world.members.find((each) => each.node === node);
    const near = chance(random, 600);
    const count = near ? skewedInt(random, 1, SWITCH_OPERATIONS) : skewedInt(random, 1, AFTER_OPERATIONS);
    if (member !== undefined) this.#powerAt(member, count, 650, random);
  }

  /** The machine loses power, in so many of a thousand cases, or the process is killed, at the `count`th operation from now. */
  #powerAt(member: SimMember, count: number, perMille: number, random: Random): void {
    const how: CrashHow = {
      lose: chance(random, perMille) ? 'unsynced' : 'none',
      underWay: pick(random, ['lost', 'torn', 'kept', 'kept']),
    };
    const ms = between(random, 1, BACK_MS);
    member.disk.atOperation(count, () => {
      this.#count('power lost at an operation');
      this.#kill(member, how, ms);
    });
  }

  #count(name: string): void {
    this.#world.coverage.count(name);
  }
}

function isSwitch(effect: Step['effects'][number], kind: 'cut' | 'install' | 'stage'): boolean {
  if (effect.type !== 'persist') return kind === 'stage' && effect.type === 'stage';
  const { cutFrom, install } = effect.write;
  return kind === 'cut' ? cutFrom !== undefined : kind === 'install' && install !== undefined;
}
