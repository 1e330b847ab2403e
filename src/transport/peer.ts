/** Everything that goes out to one peer: its three lanes, and what they report. */
import { MAX_HELD_CALLS, MAX_INFLIGHT_BYTES } from '../base/limits.js';
import type { Message } from '../raft/types.js';
import type { CallId, Effect, Event, Hello, MemberAddress } from '../replica/types.js';
import { decodeForwardedResult, encodeForwardedCall } from '../wire/forward.js';
import { decodeHello, encodeHello } from '../wire/hello.js';
import { encodeMessage } from '../wire/message.js';
import { decodeFrame, helloFrame, numberFrame, partFrame } from '../wire/peer-frames.js';
import type { LaneKind, Log } from './channel.js';
import { ForwardIds } from './forward-ids.js';
import { helloFault } from './greeting.js';
import type { OutboxLimits } from './outbox.js';
import type { LinkOwner } from './peer-link.js';
import { PeerLink } from './peer-link.js';

/** What may wait for each lane. Heartbeats are few and small; entries are bounded by the core's own windows. */
const LIMITS: Readonly<Record<LaneKind, OutboxLimits>> = {
  control: { count: 1_024, bytes: 1024 * 1024 },
  append: { count: 1_024, bytes: 2 * MAX_INFLIGHT_BYTES },
  forward: { count: MAX_HELD_CALLS, bytes: 16 * 1024 * 1024 },
};

type Forward = Extract<Effect, { readonly type: 'forward' }>;

/** See the head of this file. */
export class Peer {
  readonly address: MemberAddress;
  readonly #emit: (event: Event) => void;
  readonly #log: Log;
  readonly #lanes: Readonly<Record<LaneKind, PeerLink>>;
  #self: Hello | undefined;
  #forwarded: ForwardIds | undefined;
  /** Why this peer cannot be spoken with, as logged already: the same reason is not logged with every dial. */
  #reported: string | undefined;

  constructor(address: MemberAddress, emit: (event: Event) => void, log: Log) {
    this.address = address;
    this.#emit = emit;
    this.#log = log;
    this.#lanes = { control: this.#link('control'), append: this.#link('append'), forward: this.#link('forward') };
  }

  /** Begins to dial, under this name. */
  start(self: Hello): void {
    this.#self = self;
    this.#forwarded = new ForwardIds(self.boot);
    for (const lane of Object.values(this.#lanes)) lane.start();
  }

  /** The peer has dialled this node: what waits to dial it again does so at once. */
  wake(): void {
    for (const lane of Object.values(this.#lanes)) lane.wake();
  }

  /** Queues a core message; entries never stand in front of votes and heartbeats. */
  send(message: Message): void {
    this.#lanes[laneOf(message)].send(partFrame(encodeMessage(message)));
  }

  /** Queues a client's call; false when there is no room. */
  forward({ id: of, term, principal, timeoutMs, holdMs, call }: Forward): boolean {
    const id = this.#forwarded?.issue(of);
    if (id === undefined) return false;
    const sent = this.#lanes.forward.send(
      partFrame(encodeForwardedCall({ id, term, principal, timeoutMs, holdMs, call })),
    );
    if (!sent) this.#forwarded?.take(of);
    return sent;
  }

  /** Tells the peer that a call's client has gone. */
  forwardCancel(call: CallId): void {
    const id = this.#forwarded?.take(call);
    if (id !== undefined) this.#lanes.forward.send(numberFrame(id));
  }

  /** Ends the lanes. */
  async close(): Promise<void> {
    await Promise.all(Object.values(this.#lanes).map((lane) => lane.close()));
  }

  #link(kind: LaneKind): PeerLink {
    const { node } = this.address;
    const lost: Event = kind === 'forward' ? { type: 'forwardLost', node } : { type: 'unreachable', node };
    const owner: LinkOwner = {
      hello: () => helloFrame(encodeHello(this.#hello())),
      accepted: (frame) => {
        const { hello } = decodeFrame(frame, 'first answer');
        if (hello === undefined) throw new Error('the first answer carries no hello');
        const fault = helloFault(this.#hello(), decodeHello(hello), node);
        if (fault !== undefined) throw new Error(fault);
      },
      frame: (frame) => {
        // Control and append streams carry nothing back but signs of life.
        if (kind !== 'forward') return;
        for (const part of decodeFrame(frame, 'forward answer').parts) {
          const { id: number, result } = decodeForwardedResult(part);
          const id = this.#forwarded?.returned(number);
          if (id !== undefined) this.#emit({ type: 'forwardResult', from: node, id, result });
        }
      },
      lost: () => {
        if (kind === 'forward') this.#forwarded?.clear();
        this.#emit(lost);
      },
      dropped: () => {
        // A forwarded call that found no room was answered then and there.
        if (kind !== 'forward') this.#emit(lost);
      },
      opened: () => {
        if (kind !== 'control') return;
        this.#reported = undefined;
        this.#log('info', 'connected to a peer', { peer: node, address: this.address.peerAddress });
      },
      failed: (reason) => {
        if (reason === this.#reported) return;
        this.#reported = reason;
        this.#log('warn', 'no connection to a peer', { peer: node, address: this.address.peerAddress, kind, reason });
      },
    };
    return new PeerLink(this.address, kind, LIMITS[kind], owner);
  }

  #hello(): Hello {
    if (this.#self === undefined) throw new Error('a lane was started before this node had an incarnation');
    return this.#self;
  }
}

/** Entries go where bulk may stand in the way; everything that keeps a leader in office does not. */
function laneOf(message: Message): LaneKind {
  switch (message.type) {
    case 'append':
    case 'installSnapshot':
      return 'append';
    case 'appendReply':
    case 'preVote':
    case 'preVoteReply':
    case 'vote':
    case 'voteReply':
    case 'heartbeat':
    case 'heartbeatReply':
    case 'timeoutNow':
    case 'notMember':
      return 'control';
  }
}
