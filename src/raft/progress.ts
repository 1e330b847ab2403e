import { assert } from '../base/assert.js';
import type { Listed } from './member.js';
import type { Member, MemberKey } from './types.js';

/** An append under way in state `replicate`. */
export interface Inflight {
  /** Index of its last entry. */
  readonly end: number;
  readonly bytes: number;
}

/** How a follower is fed. */
export type Flow =
  /** Where its log agrees is not known: one append, then wait for its reply or for a heartbeat reply. */
  | { readonly type: 'probe'; readonly request: number; readonly waiting: boolean; readonly sentAt: number }
  /** Appends leave without waiting, within the windows. */
  | { readonly type: 'replicate'; readonly inflight: Inflight[]; bytes: number }
  /** The entries it needs are compacted: a cut at `index` is on its way. `sentAt`: the tick at which all of it was staged. */
  | {
      readonly type: 'snapshot';
      readonly index: number;
      readonly request: number;
      readonly sentAt: number | undefined;
    };

/** What a leader knows of one other member, in one term. Thrown away when it steps down (R8). */
export interface Peer {
  readonly member: Member;
  readonly key: MemberKey;
  readonly voter: boolean;
  flow: Flow;
  /** The last index proved to be durable there. Never falls. */
  match: number;
  /** The next index to send. */
  next: number;
  /** Number of the newest append or snapshot. */
  request: number;
  /** A conflict reply to an older request says nothing: the flow has changed since, or a later request was proved. */
  since: number;
  /** The commit index that the newest append carried. */
  sentCommit: number;
  /** Tick of the newest append. */
  sentAt: number;
  /** Tick of the last reply in this term; at first that of the election. */
  heardAt: number;
  /** The newest confirmation round that it answered. */
  round: number;
  diskLow: boolean;
  /** A reply to any request above `request` must show a log at least up to `match` (S7). */
  proof: { match: number; request: number };
  shrunk: boolean;
}

/** A member of whom nothing is known but that it is listed; `next` is the first guess. */
export function createPeer(listed: Listed, next: number, tick: number): Peer {
  return {
    ...listed,
    flow: { type: 'probe', request: 0, waiting: false, sentAt: tick },
    match: 0,
    next,
    request: 0,
    since: 1,
    sentCommit: 0,
    sentAt: tick,
    heardAt: tick,
    round: 0,
    diskLow: false,
    proof: { match: 0, request: 0 },
    shrunk: false,
  };
}

/** Enters a flow with everything that counted in the old one forgotten (R14). */
function enter(peer: Peer, flow: Flow, next: number): void {
  assert(next > peer.match, `next ${next} of ${peer.key} is not above its match ${peer.match}`);
  peer.flow = flow;
  peer.next = next;
  peer.since = peer.request + 1;
}

/** Sends one append at a time from `next` on. With `paused` it waits for a sign of life first. */
export function becomeProbe(peer: Peer, next: number, tick: number, paused: boolean): void {
  enter(peer, { type: 'probe', request: 0, waiting: paused, sentAt: tick }, next);
}

/** Sends ahead from the first entry that is not proved. */
export function becomeReplicate(peer: Peer): void {
  enter(peer, { type: 'replicate', inflight: [], bytes: 0 }, peer.match + 1);
}

/** Waits for a snapshot at `index`, which takes a request number of its own. */
export function becomeSnapshot(peer: Peer, index: number): void {
  assert(index > peer.match, `a snapshot at ${index} does not help ${peer.key}, whose match is ${peer.match}`);
  peer.request++;
  peer.flow = { type: 'snapshot', index, request: peer.request, sentAt: undefined };
  peer.since = peer.request;
}

/** Bytes that may still leave in state `replicate`; 0 when a window is full. */
export function windowLeft(
  flow: Extract<Flow, { type: 'replicate' }>,
  limits: { readonly maxInflightAppends: number; readonly maxInflightBytes: number },
): number {
  assert(flow.inflight.length <= limits.maxInflightAppends, `${flow.inflight.length} appends are under way`);
  if (flow.inflight.length === limits.maxInflightAppends) return 0;
  return Math.max(0, limits.maxInflightBytes - flow.bytes);
}

/** Notes that `index` is durable there, and frees what it covers. */
export function raiseMatch(peer: Peer, index: number): void {
  peer.match = Math.max(peer.match, index);
  peer.next = Math.max(peer.next, peer.match + 1);
  const { flow } = peer;
  if (flow.type !== 'replicate') return;
  while (flow.inflight[0] !== undefined && flow.inflight[0].end <= peer.match) {
    flow.bytes -= flow.inflight.shift()?.bytes ?? 0;
  }
  assert(flow.inflight.length > 0 || flow.bytes === 0, `${flow.bytes} bytes are under way in no append`);
}
