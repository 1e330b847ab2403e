/** Faults of several steps, each of which waits for the moment at which it does the most harm. */
import type { NodeId } from '../../src/base/ids.js';
import type { Random } from '../../src/base/random.js';
import { between, pick } from './chance.js';
import type { SequenceFaultKind } from './fault-kinds.js';
import type { SimMember } from './member.js';
import type { Step } from './observation.js';
import type { World } from './world.js';

/** A disk stalls for so many greatest election time-outs: longer than a leader keeps the log behind a snapshot (S4.4). */
const STALL_ELECTIONS = [2.5, 4] as const;
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
      stallAtInstall(world, member, ms, random);
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
  const { electionMinMs, electionMaxMs } = parameters.replica;
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
  scheduler.after(PATIENCE_ELECTIONS * electionMaxMs, giveBack);
  let second: NodeId | undefined;
  moments.when(
    (step) => {
      second = serves(step) && step.process.member.node !== first.node ? step.process.member.node : undefined;
      return second !== undefined;
    },
    () => {
      if (mend === undefined || second === undefined) return;
      coverage.count('second leader isolated in turn');
      giveBack();
      scheduler.after(PATIENCE_ELECTIONS * electionMaxMs, cutLinks(world, second, 'both'));
    },
  );
}

/**
 * A follower is cut off until it needs a snapshot, and its disk stalls when it installs that, for so long that the
 * leader begins another transfer (P10).
 */
function stallAtInstall(world: World, member: SimMember, ms: number, random: Random): void {
  const { moments, scheduler, coverage, parameters } = world;
  if (member === world.leader()) return;
  scheduler.after(ms, cutLinks(world, member.node, 'both'));
  moments.when(
    ({ process, effects }) =>
      process.member.node === member.node &&
      effects.some((effect) => effect.type === 'persist' && effect.write.install !== undefined),
    () => {
      coverage.count('disk stalled at an install');
      stall(world, member, between(random, ...STALL_ELECTIONS) * parameters.replica.electionMaxMs);
    },
  );
}

/**
 * The disk of a follower stalls until the log behind its last acknowledgement is compacted; then its connections are
 * reset, so that it is sent a snapshot of what it has in memory already, and more (S1 of the catalogue).
 */
function transferBehindStall(world: World, member: SimMember): void {
  const { moments, coverage, network, parameters } = world;
  if (member === world.leader() || !member.up) return;
  const resume = stall(world, member, PATIENCE_ELECTIONS * parameters.replica.electionMaxMs);
  moments.when(
    ({ context: { raft } }) => {
      if (raft.role.type !== 'leader') return false;
      const peer = [...raft.role.peers.values()].find((each) => each.member.node === member.node);
      return peer !== undefined && peer.match < raft.log.anchor.index && peer.next > raft.snapshot.index + 1;
    },
    () => {
      if (!member.up) return;
      coverage.count('reset behind a stall');
      network.reset(member.node);
      moments.when(
        ({ process, events }) => process.member.node === member.node && events.some(({ type }) => type === 'chunk'),
        () => {
          coverage.count('snapshot met a stalled write');
          resume();
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

/** Cuts the links from `node`, or both ways, that are whole; returns what mends them. */
function cutLinks({ members, network }: World, node: NodeId, ways: 'from' | 'both'): () => void {
  const cut = members
    .filter((other) => other.node !== node)
    .flatMap((other) => [[node, other.node] as const, [other.node, node] as const])
    .filter(([from, to]) => (ways === 'both' || from === node) && !network.wire.isCut(from, to));
  for (const [from, to] of cut) network.cut(from, to);
  return () => {
    for (const [from, to] of cut) network.mend(from, to);
  };
}

function serves({ context }: Step): boolean {
  return context.leadership?.ready !== undefined;
}
