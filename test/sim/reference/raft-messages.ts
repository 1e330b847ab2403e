/** What a message may do to a member: Raft's rules in the order of the paper, each message one after the other. */
import { nextInt } from '../../../src/base/random.js';
import type { Append, InstallSnapshot, Message } from '../../../src/raft/types.js';
import { electorate, keyOf, nodeOf, reached } from './members.js';
import { append, askVotes, countVote, follow, hear, installing, mayCampaign, sticky, upToDate } from './raft-roles.js';
import { inForce } from './raft-state.js';
import type { RaftModel } from './raft-state.js';

/** Takes one message. `installed` is told of a snapshot that was accepted. */
export function receive(model: RaftModel, message: Message, installed: (index: number) => void): void {
  // For a directory that this node no longer has (F10).
  if (keyOf(message.to) !== model.key) return;
  const from = keyOf(message.from);
  switch (message.type) {
    case 'preVote':
      if (model.role === 'leader' && !inForce(model).listed.has(from)) return;
      if (message.term > model.term && !sticky(model) && upToDate(model, message.last)) {
        model.facts.preVotes.add(`${from} ${message.term} ${message.attempt}`);
      }
      return;
    case 'preVoteReply': {
      const { campaign } = model;
      if (campaign === undefined) return;
      // A refusal with a greater term moves the asker there (E3).
      if (!message.granted && message.term > model.term) follow(model, message.term, undefined);
      else if (campaign.stage !== 'pre' || campaign.attempt !== message.attempt) return;
      else if (!message.granted || message.term === campaign.term) countVote(model, from, message.granted);
      return;
    }
    case 'vote':
      if (model.role === 'leader' && !inForce(model).listed.has(from)) return;
      if (message.term > model.term) {
        // A leader that is heard is not overthrown, unless it handed over.
        if (!message.transfer && sticky(model)) return;
        follow(model, message.term, undefined);
      }
      if (message.term < model.term || model.leader !== undefined) return;
      if ((model.vote ?? from) !== from || !upToDate(model, message.last)) return;
      follow(model, model.term, undefined);
      if (model.vote === undefined) model.hardWaits = true;
      model.vote = from;
      model.elapsed = 0;
      return;
    case 'voteReply': {
      if (message.term > model.term) follow(model, message.term, undefined);
      const { campaign } = model;
      if (campaign?.stage !== 'real' || message.term !== campaign.term || message.attempt !== campaign.attempt) return;
      countVote(model, from, message.granted);
      return;
    }
    case 'timeoutNow':
      if (message.term !== model.term || model.role !== 'follower' || model.leader !== from) return;
      if (mayCampaign(model)) askVotes(model, true);
      return;
    case 'notMember':
      if (message.term < model.term || model.role === 'leader') return;
      model.expelled = true;
      if (model.role !== 'follower') follow(model, model.term, undefined);
      return;
    case 'append':
    case 'heartbeat':
    case 'installSnapshot':
      if (message.term < model.term) return;
      if (message.term > model.term) follow(model, message.term, from);
      hear(model, from);
      if (message.type === 'append') takeEntries(model, message);
      else if (message.type === 'installSnapshot') takeSnapshot(model, message, installed);
      else takeHeartbeat(model, message.commit, message.round);
      return;
    case 'appendReply':
    case 'heartbeatReply':
      if (message.term > model.term) follow(model, message.term, undefined);
      if (message.term === model.term) takeReply(model, from, message);
  }
}

function takeHeartbeat(model: RaftModel, commit: number, round: number): void {
  model.rounds.set(model.term, Math.max(model.rounds.get(model.term) ?? 0, round));
  if (model.facts.lostAt !== undefined) model.facts.unsure = true;
  if (commit <= model.log.last) model.commit = Math.max(model.commit, commit);
}

function takeEntries(model: RaftModel, { prev, entries, commit, request, term }: Append): void {
  const { log } = model;
  if (model.facts.lostAt !== undefined) model.facts.unsure = true;
  // What cannot be consecutive is no append of a leader.
  let before = prev;
  for (const entry of entries) {
    if (entry.index !== before.index + 1 || entry.term < before.term) return;
    before = entry;
  }
  if (before.term > term) return;
  if (prev.index >= log.anchor.index && log.termAt(prev.index) !== prev.term) return;
  for (const entry of entries) {
    if (entry.index <= log.anchor.index) continue;
    const own = log.at(entry.index);
    if (own?.term === entry.term) continue;
    if (own !== undefined) cutAt(model, entry.index);
    append(model, entry);
  }
  const proved = prev.index + entries.length;
  prove(model, request, proved);
  model.commit = Math.max(model.commit, Math.min(commit, proved));
}

function prove(model: RaftModel, request: number, index: number): void {
  let proofs = model.proofs.get(model.term);
  if (proofs === undefined) model.proofs.set(model.term, (proofs = new Map<number, number>()));
  proofs.set(request, Math.max(proofs.get(request) ?? 0, index));
}

/** The entries from `from` on are gone; what the disk has of them counts no more (P8, P9). */
function cutAt(model: RaftModel, from: number): void {
  model.log.cut(from);
  model.electorates = model.electorates.filter((each, at) => at === 0 || each.index < from);
  model.stable = Math.min(model.stable, from - 1);
  if (model.write !== undefined) model.write.end = Math.min(model.write.end, from - 1);
  if (from > model.handed) return;
  model.handed = from - 1;
  model.cutFrom = Math.min(model.cutFrom ?? from, from);
}

function takeSnapshot(model: RaftModel, { meta, request }: InstallSnapshot, installed: (index: number) => void): void {
  if (model.facts.lostAt !== undefined) model.facts.unsure = true;
  if (meta.index > model.commit && installing(model)) return;
  if (meta.index <= model.commit || model.log.termAt(meta.index) === meta.term) {
    model.commit = Math.max(model.commit, meta.index);
    prove(model, request, model.commit);
    return;
  }
  model.log.reset(meta);
  model.electorates = [electorate(meta.configurationIndex, meta.configuration)];
  model.stable = Math.min(model.stable, meta.index - 1);
  if (model.write !== undefined) model.write.end = Math.min(model.write.end, meta.index - 1);
  model.handed = meta.index;
  model.cutFrom = undefined;
  model.install = meta;
  model.commit = meta.index;
  model.pendingWrites.delete('cut');
  prove(model, request, meta.index);
  installed(meta.index);
}

function takeReply(
  model: RaftModel,
  from: string,
  message: Extract<Message, { readonly type: 'appendReply' | 'heartbeatReply' }>,
): void {
  const { leading } = model;
  if (leading?.others.has(from) !== true) return;
  if (message.type === 'heartbeatReply') {
    leading.heardAt.set(from, model.ticks);
    if (message.round > leading.issued) return;
    leading.round.set(from, Math.max(leading.round.get(from) ?? 0, message.round));
    confirm(model);
    return;
  }
  if (message.request > (leading.request.get(from) ?? 0)) return;
  leading.heardAt.set(from, model.ticks);
  if (message.result.type !== 'proved') return;
  leading.match.set(from, Math.max(leading.match.get(from) ?? 0, message.result.index));
  advance(model);
}

/** A round is confirmed when a majority of each half answered it in this term; the leader counts itself. */
export function confirm(model: RaftModel): void {
  const { leading } = model;
  if (leading === undefined) return;
  leading.confirmed = reached(inForce(model), (voter) =>
    voter === model.key ? leading.issued : (leading.round.get(voter) ?? 0),
  );
}

/** Commits what a majority of each half has durable, if it is of the own term (5.4.2). */
export function advance(model: RaftModel): void {
  const { leading } = model;
  if (leading === undefined) return;
  const index = reached(inForce(model), (voter) =>
    voter === model.key ? model.stable : (leading.match.get(voter) ?? 0),
  );
  if (index > model.commit && model.log.termAt(index) === model.term) model.commit = index;
}

/** The leader's process is gone, as this member saw itself (S1). */
export function leaderDown(model: RaftModel, node: string): void {
  const { leader, early } = model;
  if (leader === undefined || nodeOf(leader) !== node || model.role !== 'follower') return;
  model.heardAt = undefined;
  const rested = early.lastAt === undefined || model.ticks - early.lastAt >= 10 * model.maxTicks;
  if (early.term === model.term || early.dueAt !== undefined || !rested) return;
  early.dueAt = model.ticks + nextInt(model.random, 0, Math.floor(model.minTicks / 4));
}
