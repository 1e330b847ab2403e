import { assert } from '../base/assert.js';
import { raiseCommit } from './commit.js';
import { adopt } from './configuration.js';
import { appendEntry, areConsecutive, firstUnknown, lastAtOrBelow, lastIndexOf, termAt } from './log.js';
import { cutLog, installSnapshot, isInstalling, sendWhenDurable, sendWhenTermDurable } from './persist.js';
import { hearLeader } from './role.js';
import { emit } from './state.js';
import type { Raft } from './state.js';
import type { Append, AppendReply, Heartbeat, HeartbeatReply, InstallSnapshot, Position } from './types.js';

/** Takes the entries if they fit, and answers with the last index that this message proved (paper 5.3, R1, R2). */
export function onAppend(raft: Raft, message: Append): void {
  hearLeader(raft, message.from);
  const { prev, entries } = message;
  if (!areConsecutive(prev, entries, message.term)) return;
  const hint = conflictHint(raft, prev);
  if (hint !== undefined) {
    // Waits like a proof, so that `durable` never seems to fall (S7).
    sendWhenDurable(raft, appendReply(raft, message, { type: 'conflict', hint }));
    return;
  }
  const first = firstUnknown(raft.log, prev, entries);
  const news = entries.slice(first - prev.index - 1);
  // Only a real conflict cuts: entries behind the last one of this message stay.
  if (news.length > 0 && first <= lastIndexOf(raft.log)) cutLog(raft, first);
  for (const entry of news) {
    appendEntry(raft.log, entry);
    adopt(raft.configurations, entry);
  }
  const proved = prev.index + entries.length;
  raiseCommit(raft, Math.min(message.commit, proved));
  sendWhenDurable(raft, appendReply(raft, message, { type: 'proved', index: proved }));
}

/** Where to try next, when the log does not hold `prev`; undefined when it does. What lies before the anchor is committed and so the same. */
function conflictHint(raft: Raft, prev: Position): Position | undefined {
  const { log, commit } = raft;
  if (prev.index < log.anchor.index || termAt(log, prev.index) === prev.term) return undefined;
  assert(prev.index > commit, `the leader has another entry at ${prev.index}, at or below the commit index ${commit}`);
  const index = Math.max(commit, lastAtOrBelow(log, prev.index, prev.term));
  return { index, term: termAt(log, index) ?? 0 };
}

/** Keeps following; the commit index cannot exceed what the leader knows to be here. Needs no disk (research 5.4). */
export function onHeartbeat(raft: Raft, message: Heartbeat): void {
  hearLeader(raft, message.from);
  // Beyond the end only if this log got shorter than it was (S7): then nothing is known about what it holds.
  if (message.commit <= lastIndexOf(raft.log)) raiseCommit(raft, message.commit);
  sendWhenTermDurable(raft, heartbeatReply(raft, message, message.round));
}

/** Decides on a staged snapshot. One that the log already covers must not cut it (S1 of the scenarios). */
export function onInstallSnapshot(raft: Raft, message: InstallSnapshot): void {
  hearLeader(raft, message.from);
  const { meta } = message;
  if (meta.index > raft.commit && isInstalling(raft)) {
    emit(raft, { type: 'snapshotRefused', meta });
    return;
  }
  if (meta.index <= raft.commit || termAt(raft.log, meta.index) === meta.term) {
    raiseCommit(raft, meta.index);
    emit(raft, { type: 'snapshotRefused', meta });
    sendWhenDurable(raft, appendReply(raft, message, { type: 'proved', index: raft.commit }));
    return;
  }
  installSnapshot(raft, meta);
  raft.commit = meta.index;
  raft.applied = meta.index;
  emit(raft, { type: 'restored', meta });
  sendWhenDurable(raft, appendReply(raft, message, { type: 'proved', index: meta.index }));
}

/** Tells the leader of an older term that its term is over; without it a member with a higher term stays outside (E1). */
export function answerPast(raft: Raft, message: Append | Heartbeat | InstallSnapshot): void {
  assert(message.term < raft.hard.term, `a message of term ${message.term} is not of the past`);
  if (message.type === 'heartbeat') {
    sendWhenTermDurable(raft, heartbeatReply(raft, message, 0));
    return;
  }
  if (message.type === 'installSnapshot') emit(raft, { type: 'snapshotRefused', meta: message.meta });
  const hint = { index: raft.commit, term: termAt(raft.log, raft.commit) ?? 0 };
  sendWhenTermDurable(raft, appendReply(raft, message, { type: 'conflict', hint }));
}

function appendReply(raft: Raft, to: Append | InstallSnapshot, result: AppendReply['result']): AppendReply {
  return {
    type: 'appendReply',
    from: raft.options.self,
    to: to.from,
    term: raft.hard.term,
    request: to.request,
    result,
    durable: raft.persistence.stable,
    diskLow: raft.diskLow,
  };
}

function heartbeatReply(raft: Raft, { from: to }: Heartbeat, round: number): HeartbeatReply {
  return { type: 'heartbeatReply', from: raft.options.self, to, term: raft.hard.term, round, diskLow: raft.diskLow };
}
