/** What a member says: true, of its own, and not before it is durable. */
import type { Append, AppendReply, Message } from '../../../src/raft/types.js';
import { sameEntry } from './log.js';
import { keyOf } from './members.js';
import { inForce } from './raft-state.js';
import type { Leading, RaftModel } from './raft-state.js';

/** Judges one message that leaves at the end of a step. */
export function checkSent(model: RaftModel, message: Message, fail: (text: string) => void): void {
  const to = keyOf(message.to);
  if (keyOf(message.from) !== model.key || to === model.key) fail(`sends a ${message.type} as ${message.from.node}`);
  // Every message is of a term in which its sender is (Ongaro's specification); what waited for the disk is dropped (P9, P11).
  if (message.term < model.facts.termBefore) {
    fail(`sends a ${message.type} of term ${message.term}, which it has left for term ${model.facts.termBefore}`);
  }
  switch (message.type) {
    case 'preVote':
    case 'vote': {
      const stage = message.type === 'vote' ? 'real' : 'pre';
      const campaign =
        stage === 'real'
          ? model.campaigns.get(message.term)
          : model.facts.campaigns.find((each) => each.attempt === message.attempt);
      if (
        campaign?.stage !== stage ||
        campaign.term !== message.term ||
        campaign.attempt !== message.attempt ||
        campaign.last.index !== message.last.index ||
        campaign.last.term !== message.last.term
      ) {
        fail(`asks for votes in term ${message.term}, attempt ${message.attempt}, and does not campaign so`);
      }
      if (message.type === 'preVote') return;
      if (message.transfer !== campaign?.transfer) fail(`says that its vote request is a hand-over`);
      if (model.votes.get(message.term) !== model.key) {
        fail(`asks for votes in term ${message.term} before its own is durable`);
      }
      return;
    }
    case 'preVoteReply':
      if (!message.granted) checkTerm(model, message, fail);
      else if (!model.facts.preVotes.has(`${to} ${message.term} ${message.attempt}`)) {
        fail(`would vote for ${message.to.node} in term ${message.term} and must not`);
      }
      return;
    case 'voteReply':
      if (!message.granted) checkTerm(model, message, fail);
      else if (model.votes.get(message.term) !== to) {
        fail(`says that it votes for ${message.to.node} in term ${message.term}; no such vote is durable`);
      }
      return;
    case 'append':
      checkAppend(model, message, fail);
      return;
    case 'appendReply':
      checkTerm(model, message, fail);
      checkProof(model, message, fail);
      return;
    case 'heartbeat': {
      const leading = leadingOf(model, message, fail);
      if (leading === undefined) return;
      const commit = Math.min(leading.match.get(to) ?? 0, model.commit);
      if (message.commit > commit) fail(`tells ${message.to.node} the commit index ${message.commit}, not ${commit}`);
      if (message.round > leading.issued) fail(`sends round ${message.round}, the newest is ${leading.issued}`);
      return;
    }
    case 'heartbeatReply': {
      checkTerm(model, message, fail);
      if (message.round > (model.rounds.get(message.term) ?? 0)) {
        fail(`answers round ${message.round} of term ${message.term}, which it has not heard`);
      }
      return;
    }
    case 'timeoutNow': {
      const leading = leadingOf(model, message, fail);
      const match = leading?.match.get(to) ?? 0;
      if (match < model.log.last) fail(`hands over to ${message.to.node}, which has ${match} of ${model.log.last}`);
      return;
    }
    case 'notMember':
      if (inForce(model).listed.has(to)) fail(`tells the member ${message.to.node} that it is none`);
      leadingOf(model, message, fail);
      return;
    case 'installSnapshot':
      fail('sends an installSnapshot, which never leaves a member');
  }
}

/** Only a leader of the message's term may send it. */
function leadingOf(model: RaftModel, message: Message, fail: (text: string) => void): Leading | undefined {
  const leading = model.facts.led.get(message.term);
  if (leading === undefined) fail(`sends a ${message.type} of term ${message.term}, which it does not lead`);
  return leading;
}

/** A refusal, a proof and a sign of life speak of a term, and that is durable. */
function checkTerm(model: RaftModel, message: Message, fail: (text: string) => void): void {
  if (message.term > model.durable.term) {
    fail(`sends a ${message.type} of term ${message.term}, durable is term ${model.durable.term}`);
  }
}

function checkAppend(model: RaftModel, message: Append, fail: (text: string) => void): void {
  const leading = leadingOf(model, message, fail);
  if (leading === undefined) return;
  const to = keyOf(message.to);
  const before = leading.request.get(to) ?? 0;
  if (message.request <= before) fail(`repeats request ${message.request} to ${message.to.node}, after ${before}`);
  leading.request.set(to, message.request);
  if (message.commit > model.commit) fail(`tells of commit ${message.commit}, its own is ${model.commit}`);
  // Another's log replaced its own since.
  if (model.leading !== leading) return;
  const { log } = model;
  const { prev, entries } = message;
  if (prev.index >= log.anchor.index && log.termAt(prev.index) !== prev.term) {
    fail(
      `sends entries after ${prev.index} of term ${prev.term}, its own log has term ${log.termAt(prev.index) ?? 'none'}`,
    );
  }
  for (const [at, entry] of entries.entries()) {
    const own = log.at(entry.index);
    if (entry.index !== prev.index + 1 + at || (own !== undefined && !sameEntry(own, entry))) {
      fail(`sends an entry ${entry.index} that its log does not hold there`);
      return;
    }
  }
}

/** A proof names what the very message proved, and that is on the disk. */
function checkProof(model: RaftModel, message: AppendReply, fail: (text: string) => void): void {
  const { result, request, durable } = message;
  if (durable > model.facts.stable) fail(`says that ${durable} is durable, it is ${model.facts.stable}`);
  if (result.type === 'conflict') return;
  const proved = model.proofs.get(message.term)?.get(request);
  if (proved === undefined || result.index > proved) {
    fail(`acknowledges ${result.index} for request ${request}, which proved ${proved ?? 'nothing'}`);
  }
  if (result.index > model.facts.stable) {
    fail(`acknowledges ${result.index} before it is durable: ${model.facts.stable} is`);
  }
  if (model.leaders.get(message.term) !== keyOf(message.to))
    fail(`acknowledges to ${message.to.node}, which does not lead`);
}
