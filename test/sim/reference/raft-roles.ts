/** How a member changes its role and term (paper 5.1, 5.2; thesis 9.6), and when it may stand for election. */
import { nextInt } from '../../../src/base/random.js';
import type { Entry } from '../../../src/raft/types.js';
import { electorate, majority } from './members.js';
import { inForce } from './raft-state.js';
import type { Campaign, RaftModel } from './raft-state.js';

/** Follows in `term`. A greater term has no vote yet, and nobody was heard in it. */
export function follow(model: RaftModel, term: number, leader: string | undefined): void {
  if (term > model.term) {
    model.term = term;
    model.vote = undefined;
    model.hardWaits = true;
    model.heardAt = undefined;
    model.early.dueAt = undefined;
  }
  if (model.role === 'leader') {
    if (model.ready) model.facts.lostAt = model.commit;
    model.heardAt = undefined;
    restartTimer(model);
  }
  model.role = 'follower';
  model.leader = leader;
  model.campaign = undefined;
  model.leading = undefined;
  model.ready = false;
}

/** A message came that only the leader of the present term sends. */
export function hear(model: RaftModel, leader: string): void {
  follow(model, model.term, leader);
  model.leaders.set(model.term, leader);
  model.facts.leaders.add(leader);
  model.elapsed = 0;
  model.heardAt = model.ticks;
  model.early.dueAt = undefined;
  model.expelled = false;
}

/** A leader was heard within the least election time-out, or is this member. */
export function sticky(model: RaftModel): boolean {
  return model.role === 'leader' || (model.heardAt !== undefined && model.ticks - model.heardAt < model.minTicks);
}

/** A log that ends at `last` holds at least as much as the own one (5.4.1). */
export function upToDate(model: RaftModel, last: { readonly index: number; readonly term: number }): boolean {
  if (model.facts.lostAt !== undefined) model.facts.unsure = true;
  const { log } = model;
  return last.term > log.lastTerm || (last.term === log.lastTerm && last.index >= log.last);
}

/** True from the acceptance of a snapshot to the completion of its switch. */
export function installing(model: RaftModel): boolean {
  return model.install !== undefined || model.write?.install === true;
}

/** Only a voter that nobody has told otherwise, whose disk works and whose state is its own. */
export function mayCampaign(model: RaftModel): boolean {
  if (model.role === 'leader' || model.expelled || model.stalled || installing(model)) return false;
  return inForce(model).halves.some((half) => half.includes(model.key));
}

/** A time-out drawn anew for each attempt (E6). */
function restartTimer(model: RaftModel): void {
  model.elapsed = 0;
  model.timeout = nextInt(model.random, model.minTicks, model.maxTicks);
}

function begin(model: RaftModel, stage: 'pre' | 'real', term: number, transfer: boolean): Campaign {
  model.attempt++;
  const last = { index: model.log.last, term: model.log.lastTerm };
  const campaign: Campaign = { stage, term, attempt: model.attempt, last, transfer, votes: new Map() };
  model.role = stage;
  model.campaign = campaign;
  model.leader = undefined;
  model.facts.campaigns.push(campaign);
  return campaign;
}

/** Asks who would vote; `early` leaves the time-out running. */
export function askPreVotes(model: RaftModel, early: boolean): void {
  if (!early) {
    restartTimer(model);
  }
  begin(model, 'pre', model.term + 1, false).votes.set(model.key, true);
  decide(model);
}

/** Stands in the next term. The own vote counts when it is durable. */
export function askVotes(model: RaftModel, transfer: boolean): void {
  follow(model, model.term + 1, undefined);
  model.vote = model.key;
  restartTimer(model);
  model.campaigns.set(model.term, begin(model, 'real', model.term, transfer));
}

/** A first answer to the campaign under way. */
export function countVote(model: RaftModel, voter: string, granted: boolean): void {
  const { campaign } = model;
  if (campaign === undefined || campaign.votes.has(voter)) return;
  campaign.votes.set(voter, granted);
  decide(model);
}

function decide(model: RaftModel): void {
  const { campaign } = model;
  if (campaign === undefined) return;
  const who = inForce(model);
  if (majority(who, (voter) => campaign.votes.get(voter) === true)) {
    if (campaign.stage === 'real') lead(model);
    else if (mayCampaign(model)) askVotes(model, false);
    // Those who have not answered could no longer turn it.
  } else if (!majority(who, (voter) => campaign.votes.get(voter) !== false)) follow(model, model.term, undefined);
}

function lead(model: RaftModel): void {
  const { log, term } = model;
  const others = new Set([...inForce(model).listed].filter((each) => each !== model.key));
  model.role = 'leader';
  model.leader = model.key;
  model.campaign = undefined;
  model.ready = false;
  model.leading = {
    term,
    termStart: log.last + 1,
    others,
    match: new Map(),
    round: new Map(),
    heardAt: new Map([...others].map((each) => [each, model.ticks])),
    request: new Map(),
    issued: 0,
    confirmed: 0,
  };
  model.leaders.set(term, model.key);
  model.facts.led.set(term, model.leading);
  append(model, { index: log.last + 1, term, kind: 'noop', payload: new Uint8Array(0) });
}

/** An entry is at the end of the log; a configuration counts from here (M2). */
export function append(model: RaftModel, entry: Entry): void {
  model.log.push(entry);
  if (entry.configuration !== undefined) model.electorates.push(electorate(entry.index, entry.configuration));
}
