/**
 * One outgoing stream to one peer, kept open as long as the process lives: the twin of `transport/peer-link.ts`, whose
 * states it shares. Reports what that one reports.
 */
import { assert } from '../../../src/base/assert.js';
import type { NodeId } from '../../../src/base/ids.js';
import type { Event } from '../../../src/replica/types.js';
import { CONNECT_TIMEOUT_MS } from '../../../src/transport/channel.js';
import type { LaneKind } from '../../../src/transport/channel.js';
import { helloFault } from '../../../src/transport/greeting.js';
import { backoffMs, transition } from '../../../src/transport/peer-link.js';
import type { LinkPhase, LinkSignal } from '../../../src/transport/peer-link.js';
import { ForwardIds } from '../../../src/transport/forward-ids.js';
import type { ForwardedResult } from '../../../src/wire/forward.js';
import type { Carried } from './carriage.js';
import type { Dialled, Network } from './dialling.js';
import type { Part } from './part.js';
import type { SimProcess } from './process.js';

/** See the head of the file. */
export class Lane {
  readonly #network: Network;
  readonly #process: SimProcess;
  readonly #to: NodeId;
  readonly #kind: LaneKind;
  readonly #lost: Event;
  /** Of the forward lane. */
  readonly forwarded: ForwardIds;
  #phase: LinkPhase = { type: 'idle' };
  #dial: Dialled | undefined;
  #cancelTimer: (() => void) | undefined;
  #waiting: Part[] = [];
  #dropped = false;

  constructor(network: Network, process: SimProcess, to: NodeId, kind: LaneKind) {
    this.#network = network;
    this.#process = process;
    this.#to = to;
    this.#kind = kind;
    this.forwarded = new ForwardIds(process.hello.boot);
    this.#lost = kind === 'forward' ? { type: 'forwardLost', node: to } : { type: 'unreachable', node: to };
  }

  /** Begins to dial. */
  start(): void {
    this.#signal('start');
  }

  /** The peer has just dialled this process: no need to wait any longer before dialling it. */
  wake(): void {
    this.#signal('wake');
  }

  /** Queues a part; false when it was dropped for lack of room. Without a stream it waits for the dial under way. */
  send(part: Part): boolean {
    if (this.#waiting.length >= this.#network.wire.parameters.room) {
      this.#network.wire.surroundings.coverage.count('dropped for lack of room');
      this.#dropped = true;
      return false;
    }
    this.#waiting.push(part);
    this.#flush();
    return true;
  }

  #signal(signal: LinkSignal): void {
    const before = this.#phase;
    const after = transition(before, signal);
    if (after === before) return;
    this.#phase = after;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (after.type !== 'open') this.#drop(before.type === 'open');
    if (after.type === 'connecting') this.#connect();
    else if (after.type === 'open') this.#flush();
    else if (after.type === 'backoff') {
      this.#cancelTimer = this.#process.after(backoffMs(after.failures), () => {
        this.#signal('retry');
      });
    }
  }

  /** Leaves the stream behind, and with it what waited, unless this is the end of a pause: that waits for the new dial. */
  #drop(wasOpen: boolean): void {
    const dial = this.#dial;
    this.#dial = undefined;
    dial?.stream.close('dialer', 'reset', 'left by its dialler');
    if (dial === undefined && !wasOpen) return;
    const waiting = this.#dropped || this.#waiting.length > 0;
    this.#waiting = [];
    this.#dropped = false;
    if (!wasOpen && !waiting) return;
    if (this.#kind === 'forward') this.#network.wire.surroundings.coverage.count('forward lost');
    this.forwarded.clear();
    this.#process.emit(this.#lost);
  }

  #connect(): void {
    const dial: Dialled = this.#network.dial(this.#process, this.#to, this.#kind, {
      answered: (carried) => {
        if (this.#dial !== dial) return;
        if (helloFault(this.#process.hello, carried(), this.#to) === undefined) this.#signal('accepted');
        else this.#signal('ended');
      },
      result: (carried) => {
        if (this.#dial === dial) this.#take(carried);
      },
      lifeAsked: () => {
        if (this.#dial === dial && this.#phase.type === 'open') dial.send({ type: 'nothing' });
      },
      lost: () => {
        if (this.#dial === dial) this.#signal('ended');
      },
    });
    this.#dial = dial;
    dial.stream.whenDrained('dialer', () => {
      this.#process.run(() => {
        if (this.#dial === dial) this.#flush();
      });
    });
    this.#cancelTimer = this.#process.after(CONNECT_TIMEOUT_MS, () => {
      this.#signal('stuck');
    });
  }

  #take(carried: Carried<ForwardedResult>): void {
    assert(this.#kind === 'forward', `a result came over the ${this.#kind} lane`);
    const { id: number, result } = carried();
    const id = this.forwarded.returned(number);
    if (id !== undefined) this.#process.emit({ type: 'forwardResult', from: this.#to, id, result });
  }

  #flush(): void {
    const dial = this.#dial;
    if (dial === undefined || this.#phase.type !== 'open') return;
    let sent = 0;
    for (const part of this.#waiting) {
      if (dial.stream.underWay('dialer') >= this.#network.wire.parameters.room) break;
      dial.send(part);
      sent++;
    }
    if (sent > 0) this.#waiting = this.#waiting.slice(sent);
    if (this.#waiting.length > 0 || !this.#dropped) return;
    this.#dropped = false;
    // A forwarded call that found no room was answered then and there.
    if (this.#kind !== 'forward') this.#process.emit(this.#lost);
  }
}
