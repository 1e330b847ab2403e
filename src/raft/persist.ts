import { assert } from '../base/assert.js';
import { cutEntries, entriesIn, lastIndexOf, resetLog } from './log.js';
import { revertConfigurations, startConfigurations } from './configuration.js';
import { emit, send } from './state.js';
import type { Persistence, Raft } from './state.js';
import type { HardState, Message, SnapshotMeta } from './types.js';

/** Nothing under way and nothing waiting: everything that was restored is durable. */
export function createPersistence(lastIndex: number, term: number): Persistence {
  return {
    seq: 0,
    underWay: undefined,
    handedTo: lastIndex,
    stable: lastIndex,
    durableTerm: term,
    hardChanged: false,
    cutFrom: undefined,
    install: undefined,
    held: [],
  };
}

/** Sets term and vote together (P2). A term never falls, and a vote stands as long as its term (P1). */
export function setHard(raft: Raft, hard: HardState): void {
  const old = raft.hard;
  assert(hard.term >= old.term, `term ${hard.term} comes after term ${old.term}`);
  assert(hard.term > old.term || old.vote === undefined, `a second vote in term ${hard.term}`);
  raft.hard = hard;
  raft.persistence.hardChanged = true;
}

/** Cuts the log at `from`. What was durable there no longer counts, now and when the write under way completes (P8, P9). */
export function cutLog(raft: Raft, from: number): void {
  const { persistence } = raft;
  cutEntries(raft.log, from, raft.commit);
  revertConfigurations(raft.configurations, from);
  persistence.stable = Math.min(persistence.stable, from - 1);
  if (persistence.underWay !== undefined) persistence.underWay.end = Math.min(persistence.underWay.end, from - 1);
  if (from > persistence.handedTo) return;
  // The disk has, or will have, entries at and above `from`: the next write removes them first.
  persistence.handedTo = from - 1;
  persistence.cutFrom = Math.min(persistence.cutFrom ?? from, from);
}

/** Switches to a staged snapshot: it replaces the log, the configurations and every cut that waits. */
export function installSnapshot(raft: Raft, meta: SnapshotMeta): void {
  const { persistence } = raft;
  assert(meta.index > raft.commit, `a snapshot at ${meta.index} would undo the commit index ${raft.commit}`);
  assert(!isInstalling(raft), `a snapshot at ${meta.index} comes while another one is being installed`);
  resetLog(raft.log, meta);
  raft.configurations = startConfigurations(meta);
  raft.snapshot = meta;
  const before = meta.index - 1;
  persistence.stable = Math.min(persistence.stable, before);
  if (persistence.underWay !== undefined) persistence.underWay.end = Math.min(persistence.underWay.end, before);
  persistence.handedTo = meta.index;
  persistence.cutFrom = undefined;
  persistence.install = meta;
}

/** True from the acceptance of a snapshot until its switch is durable. */
export function isInstalling(raft: Raft): boolean {
  return raft.persistence.install !== undefined || raft.persistence.underWay?.install === true;
}

/** True when something waits for the next write. */
function isGathered(raft: Raft): boolean {
  const { hardChanged, cutFrom, install, handedTo } = raft.persistence;
  return hardChanged || cutFrom !== undefined || install !== undefined || lastIndexOf(raft.log) > handedTo;
}

/** Emits the next write if something waits for it and none is under way. */
export function settleWrite(raft: Raft): void {
  const { persistence, log } = raft;
  if (persistence.underWay !== undefined || !isGathered(raft)) return;
  const end = lastIndexOf(log);
  const { cutFrom, install, handedTo } = persistence;
  assert(cutFrom === undefined || cutFrom === handedTo + 1, `cut at ${cutFrom ?? 0}, but entries follow ${handedTo}`);
  persistence.seq++;
  persistence.underWay = { seq: persistence.seq, term: raft.hard.term, install: install !== undefined, end };
  const entries = entriesIn(log, handedTo, end);
  emit(raft, { type: 'persist', write: { seq: persistence.seq, hard: raft.hard, cutFrom, entries, install } });
  persistence.handedTo = end;
  persistence.hardChanged = false;
  persistence.cutFrom = undefined;
  persistence.install = undefined;
}

/** Takes note that write `seq` is durable; returns the messages that may leave now, in the order in which they were made. */
export function completeWrite(raft: Raft, seq: number): readonly Message[] {
  const { persistence } = raft;
  const { underWay, held } = persistence;
  assert(underWay?.seq === seq, `write ${seq} is reported durable, under way is ${underWay?.seq ?? 'none'}`);
  persistence.underWay = undefined;
  assert(underWay.end <= lastIndexOf(raft.log), `entries up to ${underWay.end} are durable beyond the end of the log`);
  persistence.stable = underWay.end;
  persistence.durableTerm = underWay.term;
  const due = held.findIndex((message) => message.needs > seq);
  const released = held.splice(0, due < 0 ? held.length : due);
  return released.filter((each) => each.term === raft.hard.term).map((each) => refreshed(raft, each.message));
}

/**
 * Sends a message that speaks of durable state: at once when all that was decided before it is durable, else with the
 * write that makes it so (P3, P6).
 */
export function sendWhenDurable(raft: Raft, message: Message): void {
  const { persistence } = raft;
  const needs = isGathered(raft) ? persistence.seq + 1 : persistence.underWay?.seq;
  if (needs === undefined) send(raft, refreshed(raft, message));
  else persistence.held.push({ needs, term: raft.hard.term, message });
}

/** Sends a message that speaks of nothing durable but the term. */
export function sendWhenTermDurable(raft: Raft, message: Message): void {
  if (raft.persistence.durableTerm === raft.hard.term) send(raft, message);
  else sendWhenDurable(raft, message);
}

/** An append reply tells the state of the disk when it leaves, not when it was made. */
function refreshed(raft: Raft, message: Message): Message {
  if (message.type !== 'appendReply') return message;
  const { stable } = raft.persistence;
  const { result } = message;
  assert(
    result.type === 'conflict' || result.index <= stable,
    `entry ${result.type === 'proved' ? result.index : 0} would be acknowledged, durable is ${stable}`,
  );
  return { ...message, durable: stable, diskLow: raft.diskLow };
}
