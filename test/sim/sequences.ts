/** Faults of several steps, each of which waits for the moment at which it does the most harm. */
import type { NodeId } from '../../src/base/ids.js';
import type { Random } from '../../src/base/random.js';
import { between, pick } from './chance.js';
import type { SequenceFaultKind } from './fault-kinds.js';
import type { SimMember } from './member.js';
import type { Step } from './observation.js';
import type { World } from './world.js';

/** The disk of a member that installs a snapshot stalls for so many greatest election time-outs. */
const STALL_ELECTIONS = [0.5, 2] as const;
/** A leader that nobody hears hears the others for this part of a least election time-out. */
const DEAF_PART = 0.8;
/** What waits for an election is over after so many of them, whether or not there was one. */
const PATIENCE_ELECTIONS = 4;

/** Does to the world what `kind` says; `member` is the one that was drawn. */
export function inflictSequence(
  world: World,
  kind: SequenceFaultKind,
  member: SimMember,
  ms: number,
  random: Random,
): void {
  switch (kind) {
    case 'outage':
      outage(world, ms);
      return;
    case 'transfer cut short':
      cutTransferShort(world, random);
      return;
    case 'leaders in turn':
      isolateInTurn(world);
      return;
    case 'stall at an install':
      stallAtInstall(world, member, random);
      return;
    case 'transfer behind a stall':
      transferBehindStall(world, member);
  }
}

/** Every machine loses its power at once, and gets it back at once: all clocks of all processes start together. */
function outage({ members, scheduler, coverage }: World, ms: number): void {
  coverage.count('outage');
  for (const each of members) each.kill({ lose: 'unsynced', underWay: 'lost' });
  scheduler.after(ms, () => {
    for (const each of members) if (!each.gone) each.start();
  });
}

/** A leader tells a member to take over, and its process is gone before it hears. Nobody else sees a reason to campaign (E9). */
function cutTransferShort(world: World, random: Random): void {
  const { members, moments, clients, coverage, parameters } = world;
  const leader = world.leader();
  const others = members.filter((each) => each !== leader && each.process !== undefined);
  if (leader === undefined || others.length === 0) return;
  const target = pick(random, others);
  moments.when(
    patienceOf(world),
    ({ effects }) =>
      effects.some(
        (effect) =>
          effect.type === 'send' && effect.message.type === 'timeoutNow' && effect.message.to.node === target.node,
      ),
    () => {
      coverage.count('hand-over cut short');
      target.kill({ lose: 'none', underWay: 'kept' });
      world.startLater(target, between(random, 1, parameters.replica.heartbeatMs));
    },
  );
  clients.transferLeadership(target.node);
}

/**
 * Nobody hears the leader, which still takes what others pass on; as soon as another serves, that one is isolated, and
 * the first is heard again: its log may be the longer one, of an older term (R5).
 */
function isolateInTurn(world: World): void {
  const { moments, scheduler, coverage, parameters } = world;
  const first = world.leader();
  if (first === undefined || world.members.length < 3) return;
  coverage.count('leader isolated in turn');
  const { electionMinMs } = parameters.replica;
  const mends = [cutLinks(world, first.node, 'from')];
  let mend: (() => void) | undefined = () => {
    for (const each of mends) each();
  };
  // Before anybody campaigns: whoever wins does not cut its log.
  scheduler.after(DEAF_PART * electionMinMs, () => {
    if (mend !== undefined) mends.push(cutLinks(world, first.node, 'both'));
  });
  const giveBack = (): void => {
    mend?.();
    mend = undefined;
  };
  scheduler.after(patienceOf(world), giveBack);
  let second: NodeId | undefined;
  moments.when(
    patienceOf(world),
    (step) => {
      second = serves(step) && step.process.member.node !== first.node ? step.process.member.node : undefined;
      return second !== undefined;
    },
    () => {
      if (mend === undefined || second === undefined) return;
      coverage.count('second leader isolated in turn');
      giveBack();
      scheduler.after(patienceOf(world), cutLinks(world, second, 'both'));
    },
  );
}

/**
 * A follower is away until it needs a snapshot; its disk stalls when it installs that, and its connections end before
 * the leader hears of it, which begins another transfer (P10).
 */
function stallAtInstall(world: World, member: SimMember, random: Random): void {
  const { moments, coverage, network, parameters } = world;
  const { electionMinMs, electionMaxMs } = parameters.replica;
  if (member === world.leader() || !member.up) return;
  member.kill({ lose: 'none', underWay: 'lost' });
  world.startLater(member, between(random, electionMinMs / 4, electionMinMs));
  moments.when(
    patienceOf(world),
    ({ process, effects }) =>
      process.member.node === member.node &&
      effects.some((effect) => effect.type === 'persist' && effect.write.install !== undefined),
    () => {
      coverage.count('disk stalled at an install');
      network.sever(member.node);
      stall(world, member, between(random, ...STALL_ELECTIONS) * electionMaxMs);
    },
  );
}

/**
 * A follower holds entries in memory that its stalled disk does not have, and is not told that they are committed; when
 * the log behind its last acknowledgement is compacted, its connections are reset, so that it is sent a snapshot of what
 * it has already, and goes on (S1 of the catalogue).
 */
function transferBehindStall(world: World, member: SimMember): void {
  const { moments, scheduler, coverage, network } = world;
  const leader = world.leader();
  if (leader === undefined || member === leader || !member.up) return;
  const { node } = member;
  const patienceMs = patienceOf(world);
  const resume = stall(world, member, patienceMs);
  moments.when(
    patienceOf(world),
    ({ process, events }) =>
      process.member.node === node &&
      events.some(
        (event) => event.type === 'message' && event.message.type === 'append' && event.message.entries.length > 0,
      ),
    () => {
      const mend = cutLinks(world, leader.node, 'from', node);
      scheduler.after(patienceMs, mend);
      moments.when(
        patienceOf(world),
        ({ context: { raft } }) => {
          if (raft.role.type !== 'leader') return false;
          const peer = [...raft.role.peers.values()].find((each) => each.member.node === node);
          return peer !== undefined && peer.match < raft.log.anchor.index;
        },
        () => {
          coverage.count('severed behind a stall');
          network.sever(node);
          mend();
          moments.when(
            patienceOf(world),
            ({ process, events }) => process.member.node === node && events.some(({ type }) => type === 'chunk'),
            () => {
              coverage.count('snapshot met a stalled write');
              resume();
            },
          );
        },
      );
    },
  );
}

/** Stalls a disk for `ms`, or until what is returned is called. */
function stall({ scheduler }: World, { disk }: SimMember, ms: number): () => void {
  disk.stall();
  const resume = (): void => {
    disk.resume();
  };
  scheduler.after(ms, resume);
  return resume;
}

/** Cuts the links from `node`, or both ways, to all or to one other, that are whole; returns what mends them. */
function cutLinks({ members, network }: World, node: NodeId, ways: 'from' | 'both', to?: NodeId): () => void {
  const cut = members
    .filter((other) => other.node !== node && (to === undefined || other.node === to))
    .flatMap((other) => [[node, other.node] as const, [other.node, node] as const])
    .filter(([from, end]) => (ways === 'both' || from === node) && !network.wire.isCut(from, end));
  for (const [from, end] of cut) network.cut(from, end);
  return () => {
    for (const [from, end] of cut) network.mend(from, end);
  };
}

/** True milliseconds after which nothing is waited for any more. */
function patienceOf({ parameters }: World): number {
  return PATIENCE_ELECTIONS * parameters.replica.electionMaxMs;
}

function serves({ context }: Step): boolean {
  return context.leadership?.ready !== undefined;
}
