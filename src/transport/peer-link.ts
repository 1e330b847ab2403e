/**
 * One outgoing stream to one peer, on a connection of its own, kept open as long as the node runs. Every dial builds a
 * new gRPC client: so the peer's name is resolved anew, and a connect that never ends (grpc-node #2785) or a stream
 * whose hello is never answered is ended by a watchdog, which closes the client and builds another.
 */
import * as grpc from '@grpc/grpc-js';
import type { MemberAddress } from '../replica/types.js';
import type { ClientStream, LaneKind } from './channel.js';
import { asBuffer, CLOSE_GRACE_MS, CONNECT_TIMEOUT_MS, identity, faultOf, PATHS } from './channel.js';
import { Connection } from './connection.js';
import type { OutboxLimits } from './outbox.js';
import { Outbox } from './outbox.js';

/** Pause after the first failed dial, in milliseconds; doubles up to {@link BACKOFF_MAX_MS}. */
const BACKOFF_MIN_MS = 50;
/** Longest pause between two dials, in milliseconds. */
const BACKOFF_MAX_MS = 1_000;
/** Answers a server that asks whether this process is alive; an empty frame says nothing else. */
const NOTHING = Buffer.alloc(0);

/** Where a link stands. `failures` counts the dials that failed one after another. */
export type LinkPhase =
  | { readonly type: 'idle' }
  | { readonly type: 'connecting'; readonly failures: number }
  | { readonly type: 'open' }
  | { readonly type: 'backoff'; readonly failures: number }
  | { readonly type: 'closed' };

/** What moves a link: `stuck` is the watchdog, `retry` the end of the pause, `wake` a sign of life from the peer. */
export type LinkSignal = 'start' | 'accepted' | 'ended' | 'stuck' | 'retry' | 'wake' | 'close';

/** The one transition function of a link; the same object comes back when the signal changes nothing. */
export function transition(phase: LinkPhase, signal: LinkSignal): LinkPhase {
  if (phase.type === 'closed') return phase;
  if (signal === 'close') return { type: 'closed' };
  switch (phase.type) {
    case 'idle':
      return signal === 'start' ? { type: 'connecting', failures: 0 } : phase;
    case 'connecting':
      if (signal === 'accepted') return { type: 'open' };
      if (signal === 'ended') return { type: 'backoff', failures: phase.failures + 1 };
      // The watchdog has waited long enough: dial again at once.
      return signal === 'stuck' ? { type: 'connecting', failures: phase.failures + 1 } : phase;
    case 'open':
      return signal === 'ended' ? { type: 'backoff', failures: 1 } : phase;
    case 'backoff':
      return signal === 'retry' || signal === 'wake' ? { type: 'connecting', failures: phase.failures } : phase;
  }
}

/** Pause before the next dial, in milliseconds. */
export function backoffMs(failures: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(failures - 1, 10));
}

/** What a link needs of its owner. Both frame functions throw to end the stream: the bytes are wrong, or the peer is. */
export interface LinkOwner {
  /** The first frame of every stream. */
  hello(): Uint8Array;
  /** The first frame of the answer: checks who answered. */
  accepted(frame: Buffer): void;
  /** Every later frame of the answer that is not empty. */
  frame(frame: Buffer): void;
  /** An open stream ended, or a dial failed for which something waited: it may be lost. */
  lost(): void;
  /** Something was dropped for lack of room; told when there is room again. */
  dropped(): void;
  /** The stream is open. */
  opened(): void;
  /** A dial or a stream failed, and why. */
  failed(reason: string): void;
}

interface Dial {
  readonly connection: Connection;
  readonly stream: ClientStream;
}

/** See the head of this file. */
export class PeerLink {
  readonly #peer: MemberAddress;
  readonly #kind: LaneKind;
  readonly #owner: LinkOwner;
  readonly #outbox: Outbox;
  #phase: LinkPhase = { type: 'idle' };
  #dial: Dial | undefined;
  #timer: NodeJS.Timeout | undefined;
  #dropped = false;

  constructor(peer: MemberAddress, kind: LaneKind, limits: OutboxLimits, owner: LinkOwner) {
    this.#peer = peer;
    this.#kind = kind;
    this.#owner = owner;
    this.#outbox = new Outbox(limits);
  }

  /** Where the link stands. */
  get phase(): LinkPhase['type'] {
    return this.#phase.type;
  }

  /** Begins to dial. */
  start(): void {
    this.#signal('start');
  }

  /** The peer has just dialled us: no need to wait any longer before dialling it. */
  wake(): void {
    this.#signal('wake');
  }

  /**
   * Queues one encoded part for the next frame; false when it was dropped for lack of room. While no stream is open a
   * part waits for the dial under way and is dropped with it.
   */
  send(part: Uint8Array): boolean {
    if (this.#phase.type === 'closed' || this.#phase.type === 'idle') return false;
    if (this.#outbox.push(part)) return true;
    if (!this.#dropped) {
      this.#dropped = true;
      // Told once there is room again, not at every drop: whoever repeats at once would be dropped at once.
      this.#outbox.whenEmpty(() => {
        this.#dropped = false;
        this.#owner.dropped();
      });
    }
    return false;
  }

  /** Ends the stream so that what was written still arrives, within a grace period, then the connection. */
  async close(): Promise<void> {
    const dial = this.#phase.type === 'open' ? this.#dial : undefined;
    if (dial !== undefined) {
      this.#outbox.flush();
      this.#dial = undefined;
    }
    this.#signal('close');
    if (dial === undefined) return;
    await new Promise<void>((resolve) => {
      const grace = setTimeout(resolve, CLOSE_GRACE_MS);
      dial.stream.on('status', () => {
        clearTimeout(grace);
        resolve();
      });
      dial.stream.end();
    });
    hangUp(dial);
  }

  #signal(signal: LinkSignal): void {
    const before = this.#phase;
    const after = transition(before, signal);
    if (after === before) return;
    this.#phase = after;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (after.type !== 'open') this.#drop(before.type === 'open');
    switch (after.type) {
      case 'idle':
      case 'closed':
        return;
      case 'connecting':
        this.#connect();
        return;
      case 'open':
        this.#open();
        return;
      case 'backoff':
        this.#timer = setTimeout(() => {
          this.#signal('retry');
        }, backoffMs(after.failures));
        return;
    }
  }

  /** Leaves the stream behind, and with it what waited, unless this is the end of a pause: that waits for the new dial. */
  #drop(wasOpen: boolean): void {
    const dial = this.#dial;
    this.#dial = undefined;
    if (dial !== undefined) hangUp(dial);
    if (dial === undefined && !wasOpen && this.#phase.type !== 'closed') return;
    const waiting = this.#dropped || !this.#outbox.empty;
    this.#outbox.detach();
    this.#dropped = false;
    if (this.#phase.type !== 'closed' && (wasOpen || waiting)) this.#owner.lost();
  }

  #connect(): void {
    const connection = new Connection(this.#peer.peerAddress);
    const stream = connection.client.makeBidiStreamRequest(PATHS[this.#kind], identity, identity);
    const dial = { connection, stream };
    this.#dial = dial;
    // Every ending arrives as a status; the error beside it must have a listener.
    stream.on('error', () => undefined);
    stream.on('status', (status) => {
      this.#ended(dial, `${status.details} (${grpc.status[status.code]})`);
    });
    stream.on('data', (frame: Buffer) => {
      this.#received(dial, frame);
    });
    stream.write(asBuffer(this.#owner.hello()));
    this.#timer = setTimeout(() => {
      this.#owner.failed(`no answer within ${CONNECT_TIMEOUT_MS} ms of dialling`);
      this.#signal('stuck');
    }, CONNECT_TIMEOUT_MS);
  }

  #open(): void {
    const dial = this.#dial;
    if (dial === undefined) return;
    this.#outbox.attach((frame, flushed) => {
      dial.stream.write(frame, () => {
        flushed();
      });
    });
    this.#owner.opened();
  }

  #received(dial: Dial, frame: Buffer): void {
    if (this.#dial !== dial) return;
    try {
      if (this.#phase.type === 'connecting') {
        this.#owner.accepted(frame);
        this.#signal('accepted');
      } else if (frame.byteLength === 0) dial.stream.write(NOTHING);
      else this.#owner.frame(frame);
    } catch (error) {
      this.#ended(dial, faultOf(error));
    }
  }

  #ended(dial: Dial, reason: string): void {
    if (this.#dial !== dial) return;
    this.#owner.failed(reason);
    this.#signal('ended');
  }
}

function hangUp(dial: Dial): void {
  dial.stream.cancel();
  dial.connection.close();
}
