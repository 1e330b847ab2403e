import { assert } from '../base/assert.js';
import { advanceCommit } from './commit.js';
import { entriesWithin, entryAt, lastAtOrBelow, lastIndexOf, payloadBytes, termAt } from './log.js';
import { keyOf } from './member.js';
import { becomeProbe, becomeReplicate, becomeSnapshot, raiseMatch, windowLeft } from './progress.js';
import type { Peer } from './progress.js';
import { countRound } from './rounds.js';
import { emit, send } from './state.js';
import type { Leading, Raft } from './state.js';
import type { AppendReply, HeartbeatReply, Member, Position } from './types.js';

/** Sends every follower what it may have now. */
export function settleAppends(raft: Raft, leading: Leading): void {
  for (const peer of leading.peers.values()) feed(raft, peer);
}

function feed(raft: Raft, peer: Peer): void {
  const { flow } = peer;
  const last = lastIndexOf(raft.log);
  switch (flow.type) {
    case 'snapshot':
      return;
    case 'probe':
      if (!flow.waiting) sendAppend(raft, peer, raft.options.maxAppendBytes);
      return;
    case 'replicate':
      for (let left = windowLeft(flow, raft.options); left > 0 && peer.next <= last;) {
        // One entry always fits into an append, but only an empty window takes one that is too large for it.
        const bytes = entryAt(raft.log, peer.next)?.payload.length ?? 0;
        if (flow.inflight.length > 0 && bytes > left) break;
        sendAppend(raft, peer, Math.min(left, raft.options.maxAppendBytes));
        left = peer.flow === flow ? windowLeft(flow, raft.options) : 0;
      }
      // Everything has been sent: only the commit index is news.
      if (peer.flow === flow && peer.next > last && peer.sentCommit < raft.commit) sendAppend(raft, peer, 0);
  }
}

/** Sends entries from `next` on; none with `maxBytes` 0. Turns to a snapshot if the one before is compacted (R10). */
function sendAppend(raft: Raft, peer: Peer, maxBytes: number): void {
  const { log, commit } = raft;
  const last = lastIndexOf(log);
  assert(peer.next <= last + 1, `next ${peer.next} of ${peer.key} lies beyond the end of the log ${last}`);
  const prev = peer.next - 1;
  const prevTerm = termAt(log, prev);
  if (prevTerm === undefined) {
    sendSnapshot(raft, peer);
    return;
  }
  const entries = maxBytes > 0 && peer.next <= last ? entriesWithin(log, peer.next, maxBytes) : [];
  const request = ++peer.request;
  peer.sentCommit = commit;
  peer.sentAt = raft.ticks;
  if (peer.flow.type === 'probe') {
    peer.flow = { type: 'probe', request, waiting: true, sentAt: raft.ticks };
  } else if (peer.flow.type === 'replicate' && entries.length > 0) {
    const bytes = payloadBytes(entries);
    peer.flow.inflight.push({ end: prev + entries.length, bytes });
    peer.flow.bytes += bytes;
    peer.next += entries.length;
  }
  send(raft, {
    type: 'append',
    from: raft.options.self,
    to: peer.member,
    term: raft.hard.term,
    prev: { index: prev, term: prevTerm },
    entries,
    commit,
    request,
  });
}

function sendSnapshot(raft: Raft, peer: Peer): void {
  const { snapshot: meta, log } = raft;
  assert(
    meta.index >= log.anchor.index,
    `the newest cut ${meta.index} lies before the log's anchor ${log.anchor.index}`,
  );
  becomeSnapshot(peer, meta.index);
  emit(raft, { type: 'sendSnapshot', to: peer.member, meta, request: peer.request });
}

/** A follower's answer of this term. From pairs that are not listed nothing counts (F10). */
export function onAppendReply(raft: Raft, leading: Leading, message: AppendReply): void {
  const peer = leading.peers.get(keyOf(message.from));
  if (peer === undefined || message.request > peer.request) return;
  peer.heardAt = raft.ticks;
  peer.diskLow = message.diskLow;
  watchLength(raft, peer, message);
  if (message.result.type === 'conflict') onConflict(raft, peer, message.request, message.result.hint);
  else onProved(raft, leading, peer, message.request, message.result.index);
}

/** Alarms when a member shows less than it proved before the answered request left (S7). */
function watchLength(raft: Raft, peer: Peer, message: AppendReply): void {
  if (message.request <= peer.proof.request) return;
  const { match: acknowledged } = peer.proof;
  const { durable } = message;
  if (durable < acknowledged && !peer.shrunk) {
    peer.shrunk = true;
    emit(raft, { type: 'logShrank', member: peer.member, acknowledged, durable });
  }
  peer.proof = { match: peer.match, request: peer.request };
}

function onProved(raft: Raft, leading: Leading, peer: Peer, request: number, index: number): void {
  assert(
    index <= lastIndexOf(raft.log),
    `${peer.key} has entry ${index}, the leader's log ends at ${lastIndexOf(raft.log)}`,
  );
  raiseMatch(peer, index);
  const { flow } = peer;
  const found = flow.type === 'probe' && request >= peer.since;
  const restored = flow.type === 'snapshot' && peer.match >= flow.index;
  if (found || restored) becomeReplicate(peer);
  // What an older request met has been overtaken.
  else if (flow.type === 'replicate') peer.since = Math.max(peer.since, request + 1);
  advanceCommit(raft, leading);
}

/** Goes back to where the logs may agree. A hint is never a match, and a late conflict says nothing (R8). */
function onConflict(raft: Raft, peer: Peer, request: number, hint: Position): void {
  const { flow, next } = peer;
  if (flow.type === 'snapshot' || request < peer.since) return;
  if (flow.type === 'probe' && request !== flow.request) return;
  const agreed = lastAtOrBelow(raft.log, hint.index, hint.term);
  const lower = Math.max(peer.match + 1, Math.min(agreed + 1, next - 1));
  // A member that denies what it has proved is asked again only with a heartbeat, not at once and for ever.
  becomeProbe(peer, lower, raft.ticks, lower >= next);
}

/** A sign of life of this term: counts for check-quorum and rounds, and sets going what was lost. */
export function onHeartbeatReply(raft: Raft, leading: Leading, message: HeartbeatReply): void {
  const peer = leading.peers.get(keyOf(message.from));
  if (peer === undefined) return;
  peer.heardAt = raft.ticks;
  peer.diskLow = message.diskLow;
  countRound(raft, leading, peer, message);
  const { flow } = peer;
  const { heartbeatTicks, electionMinTicks } = raft.options;
  if (flow.type === 'probe') {
    if (raft.ticks - flow.sentAt >= heartbeatTicks) peer.flow = { ...flow, waiting: false };
  } else if (flow.type === 'replicate') {
    // Were appends lost, an empty one behind them finds the gap.
    const quiet = raft.ticks - peer.sentAt >= heartbeatTicks;
    if (quiet && peer.match < lastIndexOf(raft.log)) sendAppend(raft, peer, 0);
  } else if (flow.sentAt !== undefined && raft.ticks - flow.sentAt >= electionMinTicks) {
    becomeProbe(peer, flow.index + 1, raft.ticks, false);
  }
}

/**
 * The transfer of a snapshot ended. Staged: its answer follows. Failed: tries again after a sign of life; its index says
 * nothing then, for a transfer that reached nobody has read none of the snapshot.
 */
export function onSnapshotSent(raft: Raft, to: Member, index: number, ok: boolean): void {
  if (raft.role.type !== 'leader') return;
  const peer = raft.role.peers.get(keyOf(to));
  if (peer?.flow.type !== 'snapshot' || (ok && index < peer.flow.index)) return;
  if (ok) peer.flow = { ...peer.flow, sentAt: raft.ticks };
  else becomeProbe(peer, peer.match + 1, raft.ticks, true);
}

/** What was under way to this member may be lost: sends from the last proof on, one append at a time. */
export function onUnreachable(raft: Raft, to: Member): void {
  if (raft.role.type !== 'leader') return;
  const peer = raft.role.peers.get(keyOf(to));
  if (peer?.flow.type === 'replicate') becomeProbe(peer, peer.match + 1, raft.ticks, false);
}
