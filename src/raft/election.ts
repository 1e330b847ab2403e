import { assert } from '../base/assert.js';
import { nextInt } from '../base/random.js';
import { configurationFor, inForce, isListed, isVoter } from './configuration.js';
import { becomeLeader } from './leading.js';
import { isUpToDate, lastPosition } from './log.js';
import { keyOf, sameMember } from './member.js';
import type { Listed } from './member.js';
import { isInstalling, sendWhenDurable, sendWhenTermDurable, setHard } from './persist.js';
import { countVotes } from './quorum.js';
import { becomeFollower, isSticky, restartTimer } from './role.js';
import { emit, send } from './state.js';
import type { Raft } from './state.js';
import type { Member, NotMember, PreVote, PreVoteReply, TimeoutNow, Vote, VoteReply } from './types.js';

/** Early campaigns are at least so many greatest election time-outs apart (S1). */
const EARLY_EVERY = 10;

/** One tick of a member that does not lead: campaigns when the time-out, or an early campaign, is due. */
export function tickElection(raft: Raft): void {
  const { timer, early } = raft;
  assert(raft.role.type !== 'leader', 'a leader does not stand for election');
  timer.elapsed++;
  if (timer.elapsed >= timer.timeout) {
    if (mayCampaign(raft)) askPreVotes(raft, false);
    // The leader is gone all the same; it is tried again with the next tick.
    else becomeFollower(raft, raft.hard.term, undefined);
  } else if (early.dueAt !== undefined && raft.ticks >= early.dueAt) {
    early.dueAt = undefined;
    if (raft.role.type !== 'follower' || !mayCampaign(raft)) return;
    early.term = raft.hard.term;
    early.lastAt = raft.ticks;
    askPreVotes(raft, true);
  }
}

/**
 * Not by who does not count (M6: a voter of the outgoing half does), who was told that it is no member, whose disk
 * stalls (P15), who has a committed configuration unapplied, or who is installing a snapshot (M14).
 */
export function mayCampaign(raft: Raft): boolean {
  if (raft.role.type === 'leader' || raft.expelled || raft.stalled || isInstalling(raft)) return false;
  if (!isVoter(inForce(raft.configurations), raft.key)) return false;
  return raft.applied >= configurationFor(raft.configurations, raft.commit).index;
}

/** Asks who would vote. An early one leaves the normal time-out running, so a lost one goes on with it (S1). */
function askPreVotes(raft: Raft, early: boolean): void {
  if (!early) restartTimer(raft);
  const term = raft.hard.term + 1;
  const attempt = ++raft.attempt;
  raft.role = { type: 'candidate', stage: 'pre', term, attempt, votes: new Map([[raft.key, true]]) };
  raft.leader = undefined;
  const last = lastPosition(raft.log);
  for (const { member } of otherVoters(raft)) {
    send(raft, { type: 'preVote', from: raft.options.self, to: member, term, last, attempt });
  }
  decide(raft);
}

/** Stands for election in the next term. The requests leave, and the own vote counts, when that vote is durable (P3). */
function askVotes(raft: Raft, transfer: boolean): void {
  assert(mayCampaign(raft), 'a member that may not campaign asks for votes');
  const { self } = raft.options;
  const term = raft.hard.term + 1;
  becomeFollower(raft, term, undefined);
  setHard(raft, { term, vote: self });
  restartTimer(raft);
  const attempt = ++raft.attempt;
  raft.role = { type: 'candidate', stage: 'real', term, attempt, votes: new Map() };
  const last = lastPosition(raft.log);
  for (const { member } of otherVoters(raft)) {
    sendWhenDurable(raft, { type: 'vote', from: self, to: member, term, last, attempt, transfer });
  }
  sendWhenDurable(raft, { type: 'voteReply', from: self, to: self, term, granted: true, attempt });
}

/** Goes on if the campaign is won, follows if it is lost. */
function decide(raft: Raft): void {
  const { role } = raft;
  assert(role.type === 'candidate', 'only a candidate counts votes');
  const result = countVotes(inForce(raft.configurations).halves, role.votes);
  if (result === 'lost') becomeFollower(raft, raft.hard.term, undefined);
  if (result !== 'won') return;
  if (role.stage === 'real') becomeLeader(raft);
  else if (mayCampaign(raft)) askVotes(raft, false);
}

function otherVoters(raft: Raft): readonly Listed[] {
  return inForce(raft.configurations).members.filter((listed) => listed.voter && listed.key !== raft.key);
}

/** A leader, whose configuration is the newest, tells a pair that it does not list; everybody else answers everybody (S3). */
function refuseUnlisted(raft: Raft, from: Member): boolean {
  if (raft.role.type !== 'leader' || isListed(inForce(raft.configurations), keyOf(from))) return false;
  send(raft, { type: 'notMember', from: raft.options.self, to: from, term: raft.hard.term });
  return true;
}

/** Says whether this member would vote; changes nothing (thesis 9.6). */
export function onPreVote(raft: Raft, message: PreVote): void {
  if (refuseUnlisted(raft, message.from)) return;
  const { term } = raft.hard;
  const granted = message.term > term && !isSticky(raft) && isUpToDate(message.last, lastPosition(raft.log));
  const { from: to, attempt } = message;
  const reply = { type: 'preVoteReply', from: raft.options.self, to, granted, attempt } as const;
  if (granted) send(raft, { ...reply, term: message.term });
  else sendWhenTermDurable(raft, { ...reply, term });
}

/** Counts an answer to the campaign under way (R7). A refusal with a higher term moves the asker there, or old terms loop (E3). */
export function onPreVoteReply(raft: Raft, message: PreVoteReply): void {
  const { role } = raft;
  if (role.type !== 'candidate') return;
  if (!message.granted && message.term > raft.hard.term) {
    becomeFollower(raft, message.term, undefined);
    return;
  }
  if (role.stage !== 'pre' || role.attempt !== message.attempt) return;
  if (message.granted && role.term !== message.term) return;
  count(raft, role.votes, message);
}

/** Votes at most once a term, for a log at least as long as its own, and not against a leader it hears (paper 5.2, 5.4.1). */
export function onVote(raft: Raft, message: Vote): void {
  if (refuseUnlisted(raft, message.from)) return;
  if (message.term > raft.hard.term) {
    if (!message.transfer && isSticky(raft)) return;
    becomeFollower(raft, message.term, undefined);
  }
  const { hard } = raft;
  const { from: to, attempt } = message;
  const reply = { type: 'voteReply', from: raft.options.self, to, term: hard.term, attempt } as const;
  if (message.term === hard.term && mayVoteFor(raft, to) && isUpToDate(message.last, lastPosition(raft.log))) {
    becomeFollower(raft, hard.term, undefined);
    if (hard.vote === undefined) setHard(raft, { term: hard.term, vote: to });
    // A real vote puts off the own campaign; a pre-vote does not (E5).
    raft.timer.elapsed = 0;
    sendWhenDurable(raft, { ...reply, granted: true });
  } else sendWhenTermDurable(raft, { ...reply, granted: false });
}

function mayVoteFor(raft: Raft, candidate: Member): boolean {
  const { vote } = raft.hard;
  if (raft.leader !== undefined) return false;
  return vote === undefined || sameMember(vote, candidate);
}

/** Counts an answer of the present term to the campaign under way (R7). */
export function onVoteReply(raft: Raft, message: VoteReply): void {
  const { role } = raft;
  if (role.type !== 'candidate' || role.stage !== 'real') return;
  assert(role.term === raft.hard.term, `a candidate of term ${role.term} is in term ${raft.hard.term}`);
  if (message.term !== role.term || message.attempt !== role.attempt) return;
  count(raft, role.votes, message);
}

function count(raft: Raft, votes: Map<string, boolean>, { from, granted }: PreVoteReply | VoteReply): void {
  const key = keyOf(from);
  if (votes.has(key)) return;
  votes.set(key, granted);
  decide(raft);
}

/** The leader hands over: campaigns at once, without pre-vote. A late one, of an old term, does nothing (E9). */
export function onTimeoutNow(raft: Raft, message: TimeoutNow): void {
  if (message.term !== raft.hard.term || raft.role.type !== 'follower') return;
  if (!sameMember(raft.leader, message.from) || !mayCampaign(raft)) return;
  askVotes(raft, true);
}

/** The leader does not list this pair: stops campaigning until a leader speaks to it as to a member. */
export function onNotMember(raft: Raft, message: NotMember): void {
  // One of an older term may know less than this member.
  if (message.term < raft.hard.term || raft.role.type === 'leader') return;
  raft.expelled = true;
  if (raft.role.type === 'candidate') becomeFollower(raft, raft.hard.term, undefined);
  emit(raft, { type: 'notMember', leader: message.from });
}

/**
 * The leader's process is gone, as this member itself has seen (S1): pre-votes and votes are judged as after a
 * time-out, and a campaign begins after a short random delay, so that two observers do not split the votes.
 */
export function onPeerDown(raft: Raft, leader: Member, term: number): void {
  if (raft.role.type !== 'follower' || term !== raft.hard.term || raft.leader === undefined) return;
  if (!sameMember(raft.leader, leader)) return;
  const { early, options } = raft;
  raft.timer.heardAt = undefined;
  const rested = early.lastAt === undefined || raft.ticks - early.lastAt >= EARLY_EVERY * options.electionMaxTicks;
  if (early.term === term || early.dueAt !== undefined || !rested) return;
  early.dueAt = raft.ticks + nextInt(raft.random, 0, Math.floor(options.electionMinTicks / 4));
}

/** A disk or loop that stalls must not lead, nor campaign until it is over (P15). */
export function onStalled(raft: Raft, stalled: boolean): void {
  raft.stalled = stalled;
  if (stalled && raft.role.type !== 'follower') becomeFollower(raft, raft.hard.term, undefined);
}
