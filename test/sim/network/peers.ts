/** The peer port of one process: the twin of `transport/transport.ts` and `transport/peer.ts`. */
import { failure } from '../../../src/base/errors.js';
import type { NodeId } from '../../../src/base/ids.js';
import type { Member, Message } from '../../../src/raft/types.js';
import type { PeerEffect, PeerPort } from '../../../src/replica/ports.js';
import type { Event } from '../../../src/replica/types.js';
import type { LaneKind } from '../../../src/transport/channel.js';
import type { Network } from './dialling.js';
import { IncomingStreams } from './incoming.js';
import { Lane } from './lane.js';
import { messagePart } from './part.js';
import type { SimProcess } from './process.js';
import { SnapshotSender } from './sender.js';

/** After this long without an answer a probe counts as `other`, in milliseconds. */
const PROBE_TIMEOUT_MS = 300;

type Lanes = Readonly<Record<LaneKind, Lane>>;
type Of<T extends PeerEffect['type']> = Extract<PeerEffect, { readonly type: T }>;

/** See the head of the file. */
export class SimPeers implements PeerPort {
  readonly process: SimProcess;
  readonly incoming: IncomingStreams;
  readonly #network: Network;
  readonly #lanes = new Map<NodeId, Lanes>();
  /** The transfer under way to each follower. */
  readonly #senders = new Map<NodeId, SnapshotSender>();

  constructor(network: Network, process: SimProcess) {
    this.#network = network;
    this.process = process;
    this.incoming = new IncomingStreams(network, process, (node) => {
      this.#each(node, (lane) => {
        lane.wake();
      });
    });
    for (const { node } of process.endpoint.genesis.members) {
      if (node === process.node) continue;
      const lane = (kind: LaneKind): Lane => new Lane(network, process, node, kind);
      this.#lanes.set(node, { control: lane('control'), append: lane('append'), forward: lane('forward') });
    }
  }

  /** Dials the others. */
  start(): void {
    for (const node of this.#lanes.keys())
      this.#each(node, (lane) => {
        lane.start();
      });
  }

  perform(effect: PeerEffect): void {
    if (!this.process.alive) return;
    switch (effect.type) {
      case 'send':
        this.#send(effect.message);
        return;
      case 'forward':
        this.#forward(effect);
        return;
      case 'forwardCancel':
        this.#cancel(effect);
        return;
      case 'forwardResult':
        this.incoming.answer(effect.to, effect.id, effect.result);
        return;
      case 'probe':
        this.#probe(effect.node);
        return;
      case 'sendSnapshot':
        this.#sendSnapshot(effect);
        return;
      case 'abortSnapshot':
        this.#abortSnapshot(effect.to.node);
        return;
      case 'refuseChunks':
        this.#receiver(effect.from)?.refuse(effect.reason);
        return;
      case 'chunksDone':
        this.#receiver(effect.from)?.done(effect.request);
    }
  }

  chunkStaged(request: number, sequence: number): void {
    if (!this.process.alive) return;
    for (const receiver of this.incoming.receivers.values()) receiver.staged(request, sequence);
  }

  #each(node: NodeId, act: (lane: Lane) => void): void {
    const lanes = this.#lanes.get(node);
    if (lanes === undefined) return;
    act(lanes.control);
    act(lanes.append);
    act(lanes.forward);
  }

  #send(message: Message): void {
    const lanes = this.#lanes.get(message.to.node);
    lanes?.[laneOf(message)].send(messagePart(message, this.#network.carriage.message(message)));
  }

  #cancel({ to, id }: Of<'forwardCancel'>): void {
    const lane = this.#lanes.get(to)?.forward;
    const number = lane?.forwarded.take(id);
    if (number !== undefined) lane?.send({ type: 'cancel', carried: this.#network.carriage.cancel(number) });
  }

  #forward({ to, id, term, principal, timeoutMs, holdMs, call }: Of<'forward'>): void {
    const lane = this.#lanes.get(to)?.forward;
    const number = lane?.forwarded.issue(id) ?? 0;
    const carried = this.#network.carriage.call({ id: number, term, principal, timeoutMs, holdMs, call });
    if (lane?.send({ type: 'call', carried }) === true) return;
    lane?.forwarded.take(id);
    const fault =
      lane === undefined
        ? failure('NO_LEADER', `node ${to} leads, but this node's configuration has no peer address for it`)
        : failure('OVERLOADED', `too many calls wait to be forwarded to node ${to}`);
    this.#report({ type: 'forwardResult', from: to, id, result: { type: 'failure', failure: fault } });
  }

  #probe(node: NodeId): void {
    if (!this.#lanes.has(node)) {
      this.#report({ type: 'probed', node, outcome: 'other' });
      return;
    }
    let over = false;
    const finish = (outcome: 'refused' | 'other'): void => {
      if (over) return;
      over = true;
      cancelTimer();
      this.#network.wire.surroundings.coverage.count(`probe ${outcome}`);
      this.process.emit({ type: 'probed', node, outcome });
    };
    const cancelTimer = this.process.after(PROBE_TIMEOUT_MS, () => {
      finish('other');
    });
    this.#network.knock(this.process.node, node, (answer) => {
      this.process.run(() => {
        finish(answer === 'refused' ? 'refused' : 'other');
      });
    });
  }

  #sendSnapshot({ to, term, request }: Of<'sendSnapshot'>): void {
    this.#abortSnapshot(to.node);
    if (!this.#lanes.has(to.node)) {
      this.#report({ type: 'snapshotSent', to, index: 0, ok: false });
      return;
    }
    const sender = new SnapshotSender(this.#network, this.process, { to, term, request }, ({ type, index }) => {
      const { coverage } = this.#network.wire.surroundings;
      coverage.count(`snapshot transfer ${type}`);
      if (type === 'aborted') return;
      this.#senders.delete(to.node);
      this.process.emit({ type: 'snapshotSent', to, index, ok: type === 'done' });
    });
    this.#senders.set(to.node, sender);
  }

  #abortSnapshot(node: NodeId): void {
    this.#senders.get(node)?.abort();
    this.#senders.delete(node);
  }

  #receiver(from: Member) {
    const receiver = this.incoming.receivers.get(from.node);
    return receiver?.from.directory === from.directory ? receiver : undefined;
  }

  /** Reports after the effect under way, never from within it. */
  #report(event: Event): void {
    this.process.after(0, () => {
      this.process.emit(event);
    });
  }
}

/** Entries go where bulk may stand in the way; everything that keeps a leader in office does not. */
function laneOf({ type }: Message): 'control' | 'append' {
  return type === 'append' || type === 'installSnapshot' ? 'append' : 'control';
}
