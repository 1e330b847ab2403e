/**
 * When the leader's process is gone for sure (S1). `peerDown` enters the core only when (1) the stream on which the
 * leader's messages arrive has ended, (2) a connect begun after that was refused, or met another boot id, and
 * (3) nothing from that leader has arrived since. A process that only stopped answering is left to the time-out.
 */
import type { BootId, DirectoryId, NodeId } from '../base/ids.js';
import { step } from '../raft/raft.js';
import type { Effect as RaftEffect } from '../raft/types.js';
import { leaderOf } from '../raft/view.js';
import { log } from './state.js';
import type { Context, PeerView } from './state.js';

/** A dying process may still have its listener when its streams are gone: look again a few times. */
const PROBES = 5;
const PROBE_EVERY_MS = 20;

/** A stream on which `node`'s messages arrive ended. */
export function streamEnded(context: Context, node: NodeId): void {
  const peer = viewOf(context, node);
  peer.silentSince = context.time.nowMs;
  peer.probesLeft = PROBES;
  if (isLeader(context, node)) probe(context, node, peer);
}

/** Something from `node` arrived. */
export function heardFrom(context: Context, node: NodeId): void {
  const peer = context.peers.get(node);
  if (peer !== undefined) peer.silentSince = undefined;
}

/** A connect to `node`, begun after its stream ended, had this outcome. */
export function probed(context: Context, node: NodeId, outcome: 'refused' | 'other'): RaftEffect[] {
  const peer = viewOf(context, node);
  if (peer.silentSince === undefined || outcome !== 'refused') return [];
  return reportDown(context, node, peer);
}

/** A hello arrived: who the process is. */
export function takeHello(context: Context, node: NodeId, directory: DirectoryId, boot: BootId): RaftEffect[] {
  const peer = viewOf(context, node);
  const before = peer.boot;
  peer.boot = boot;
  const listed = context.genesis.members.find((member) => member.node === node);
  if (listed !== undefined && listed.directory !== directory) {
    const text = `node ${node} runs with another data directory (${directory}) than the cluster knows (${listed.directory}): its votes are not counted`;
    if (!context.alarms.has(`directory ${node}`)) log(context, 'warn', text);
    context.alarms.set(`directory ${node}`, text);
  } else context.alarms.delete(`directory ${node}`);
  if (before === undefined || before === boot || peer.silentSince === undefined) return [];
  return reportDown(context, node, peer);
}

/** Looks again where a stream ended and no outcome came yet. Called at each tick. */
export function probeAgain(context: Context): void {
  const leader = leaderOf(context.raft)?.node;
  const peer = leader === undefined ? undefined : context.peers.get(leader);
  if (leader === undefined || peer?.silentSince === undefined) return;
  if (peer.probesLeft > 0 && context.time.nowMs >= peer.nextProbeAt) probe(context, leader, peer);
}

function probe(context: Context, node: NodeId, peer: PeerView): void {
  peer.probesLeft--;
  peer.nextProbeAt = context.time.nowMs + PROBE_EVERY_MS;
  context.out.push({ type: 'probe', node });
}

function reportDown(context: Context, node: NodeId, peer: PeerView): RaftEffect[] {
  const leader = leaderOf(context.raft);
  peer.probesLeft = 0;
  if (leader?.node !== node) return [];
  return step(context.raft, { type: 'peerDown', leader, term: context.raft.hard.term });
}

function isLeader(context: Context, node: NodeId): boolean {
  return leaderOf(context.raft)?.node === node && node !== context.options.self.node;
}

function viewOf(context: Context, node: NodeId): PeerView {
  let peer = context.peers.get(node);
  if (peer === undefined) {
    peer = { boot: undefined, silentSince: undefined, probesLeft: 0, nextProbeAt: 0 };
    context.peers.set(node, peer);
  }
  return peer;
}
