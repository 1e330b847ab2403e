/** Holds the member that ran against the one that the rules allow. */
import type { Context } from '../../../src/replica/state.js';
import type { Effect } from '../../../src/replica/types.js';
import { sameEntry } from './log.js';
import { optionalKey } from './members.js';
import { append } from './raft-roles.js';
import type { RaftModel } from './raft-state.js';

type Persist = Extract<Effect, { readonly type: 'persist' }>['write'];

/**
 * Takes what a leader appended by itself into the model; says how long the log was before. In a step whose outcome is
 * not known exactly the rest is taken over too, within bounds.
 */
export function adopt(model: RaftModel, context: Readonly<Context>, fail: (text: string) => void): void {
  const { raft } = context;
  const { entries, anchor } = raft.log;
  const last = anchor.index + entries.length;
  if (model.facts.unsure) {
    takeOver(model, context, fail);
    return;
  }
  for (let index = model.log.last + 1; index <= last; index++) {
    const entry = entries[index - anchor.index - 1];
    if (entry === undefined) break;
    if (!model.facts.led.has(entry.term)) {
      fail(`entry ${index} of term ${entry.term} is in the log, and nobody sent it`);
      return;
    }
    if (entry.kind === 'noop') fail(`a no-op at ${index} inside term ${entry.term}`);
    append(model, entry);
  }
}

/** The step had an outcome that depends on the order of what was not seen: it is believed if it is possible at all. */
function takeOver(model: RaftModel, context: Readonly<Context>, fail: (text: string) => void): void {
  const { raft } = context;
  if (raft.commit < model.commit && raft.log.anchor.index < model.commit) fail(`commit fell to ${raft.commit}`);
  model.log.reset(raft.log.anchor);
  for (const entry of raft.log.entries) model.log.push(entry);
  model.commit = raft.commit;
  model.vote = optionalKey(raft.hard.vote);
  model.stable = raft.persistence.stable;
  model.facts.stable = Math.max(model.facts.stable, model.stable);
  model.handed = raft.persistence.handedTo;
  model.cutFrom = raft.persistence.cutFrom;
  model.elapsed = raft.timer.elapsed;
  model.timeout = raft.timer.timeout;
  model.random.state = raft.random.state;
}

/** What is handed to the disk is all that waits, in order, with the hard state that holds now. */
export function takeWrite(model: RaftModel, write: Persist, nowMs: number, fail: (text: string) => void): void {
  const vote = optionalKey(write.hard.vote);
  if (model.write !== undefined) fail(`write ${write.seq} is handed over while ${model.write.seq} is under way`);
  if (write.seq !== model.seq + 1) fail(`write ${write.seq} follows write ${model.seq}`);
  if (write.hard.term !== model.term || vote !== model.vote) {
    fail(`write ${write.seq} has term ${write.hard.term}, vote ${vote ?? 'none'}; ${told(model)}`);
  }
  let end = write.entries.at(-1)?.index;
  if (!model.facts.unsure) {
    if (write.cutFrom !== model.cutFrom) {
      fail(`write ${write.seq} cuts from ${write.cutFrom ?? 'nothing'}, ${model.cutFrom ?? 'nothing'} waits to be cut`);
    }
    if (write.install?.index !== model.install?.index) {
      fail(`write ${write.seq} switches to ${write.install?.index ?? 'nothing'}`);
    }
    let next = model.handed + 1;
    for (const entry of write.entries) {
      if (entry.index !== next || !sameEntry(entry, model.log.at(next))) {
        fail(`write ${write.seq} holds another entry ${entry.index} than the log at ${next}`);
        break;
      }
      next++;
    }
    end ??= model.handed;
  }
  model.seq = write.seq;
  model.write = {
    seq: write.seq,
    term: write.hard.term,
    vote,
    install: write.install !== undefined,
    end: end ?? model.handed,
  };
  model.handed = model.write.end;
  model.hardWaits = false;
  model.cutFrom = undefined;
  model.install = undefined;
  model.pendingWrites.set(`log ${write.seq}`, nowMs);
}

/** After the step: the core is what the rules make it. `all`: the whole kept log is compared, not only what is new. */
export function compareRaft(
  model: RaftModel,
  context: Readonly<Context>,
  from: number,
  all: boolean,
  fail: (text: string) => void,
): void {
  const { raft } = context;
  const vote = optionalKey(raft.hard.vote);
  if (raft.hard.term !== model.term || vote !== model.vote) {
    fail(`is in term ${raft.hard.term}, vote ${vote ?? 'none'}; ${told(model)}`);
  }
  const role = raft.role.type === 'candidate' ? raft.role.stage : raft.role.type;
  const leader = optionalKey(raft.leader);
  if (role !== model.role || leader !== model.leader) fail(`is ${role} under ${leader ?? 'nobody'}; ${told(model)}`);
  const { timeout } = raft.timer;
  if (timeout !== model.timeout) fail(`waits ${timeout} ticks for a leader, not the ${model.timeout} that it drew`);
  if (raft.attempt !== model.attempt) fail(`has campaigned ${raft.attempt} times; ${told(model)}`);
  if (raft.commit !== model.commit) fail(`has committed ${raft.commit}; ${told(model)}`);
  if (context.applied !== model.commit) fail(`has applied ${context.applied} of ${model.commit} committed`);
  if (raft.persistence.stable !== model.stable) {
    fail(`takes ${raft.persistence.stable} for durable; it is ${model.stable}`);
  }
  compareLog(model, context, all ? 0 : from, fail);
  if (model.write !== undefined) return;
  const { hardWaits, cutFrom, install, handed, log } = model;
  if (hardWaits || cutFrom !== undefined || install !== undefined || handed < log.last) {
    fail(`has something to save up to ${log.last} and saves nothing after ${handed}`);
  }
}

function compareLog(model: RaftModel, { raft }: Readonly<Context>, from: number, fail: (text: string) => void): void {
  const { anchor, entries } = raft.log;
  const { log } = model;
  if (anchor.index !== log.anchor.index) {
    if (anchor.index < log.anchor.index || anchor.index > model.cut) {
      fail(`forgot its log up to ${anchor.index}, the newest durable cut is at ${model.cut}`);
      return;
    }
    log.compact(anchor.index);
    while ((model.electorates[1]?.index ?? Infinity) <= model.cut) model.electorates.shift();
  }
  if (anchor.term !== log.anchor.term || entries.length !== log.entries.length) {
    fail(`its log goes from ${anchor.index} (term ${anchor.term}) to ${anchor.index + entries.length}; ${told(model)}`);
    return;
  }
  for (let at = Math.max(0, from - anchor.index); at < entries.length; at++) {
    const entry = entries[at];
    if (entry === undefined || entry === log.entries[at]) continue;
    if (!sameEntry(entry, log.entries[at])) {
      fail(
        `entry ${entry.index} of term ${entry.term} is not what it was given, of term ${log.entries[at]?.term ?? 0}`,
      );
      return;
    }
    log.entries[at] = entry;
  }
}

function told({ term, vote, role, leader, attempt, commit, log }: RaftModel): string {
  return (
    `by the rules it is ${role} of term ${term} under ${leader ?? 'nobody'}, vote ${vote ?? 'none'}, ` +
    `${attempt} campaigns, log to ${log.last}, ${commit} committed`
  );
}
