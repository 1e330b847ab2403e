/**
 * gRPC between nodes: carries out the effects that go to other members and reports what comes from them as events.
 * Promises nothing: what cannot be sent is dropped, and Raft repeats it.
 *
 * Every node opens its own streams to every other, so a stream on which a member's messages arrive ends when that
 * member's process ends. Without TLS the peer port trusts whoever reaches it, with the principals they state (S6).
 */
import { assert } from '../base/assert.js';
import { failure } from '../base/errors.js';
import type { NodeId } from '../base/ids.js';
import type { Member } from '../raft/types.js';
import type { PeerEffect, PeerPort, SnapshotReader } from '../replica/ports.js';
import type { Event, FormRequest, FormResponse, Hello, MemberAddress } from '../replica/types.js';
import { placeOf } from './address.js';
import type { Log } from './channel.js';
import type { Ask } from './forming.js';
import { ask, AskFailed } from './forming.js';
import { ForwardedStream } from './forwarded-stream.js';
import type { Incoming, StreamHandler } from './incoming.js';
import { messageStream } from './message-stream.js';
import { Peer } from './peer.js';
import { PeerServer } from './peer-server.js';
import type { Probe } from './probe.js';
import { probe } from './probe.js';
import { SnapshotReceiver } from './snapshot-receiver.js';
import { SnapshotSender } from './snapshot-sender.js';

/** What a transport is made of. */
export interface TransportOptions {
  /** This node. */
  readonly node: NodeId;
  /** The other members and where they listen; this node's own entry is passed over. */
  readonly peers: readonly MemberAddress[];
  /** `host:port` of this node's peer listener. */
  readonly bind: string;
  /** Takes every event, in order. Never called from within `perform`. */
  readonly listener: (event: Event) => void;
  /** Answers a member that forms; before and after {@link Transport.activate}. A rejection's message goes to the asker. */
  readonly onForm: (request: FormRequest) => Promise<FormResponse>;
  /** Opens the newest durable cut for a follower. */
  readonly openSnapshot: () => SnapshotReader;
  readonly log: Log;
}

/** The way to the other members. */
export interface Transport extends PeerPort {
  /** Listens; resolves to the port. Rejects with an Error that names the address, for one in use with the next step. */
  listen(): Promise<number>;
  /** Asks a member while forming; needs no incarnation. Rejects with {@link AskFailed}. */
  ask(node: NodeId, request: FormRequest, timeoutMs: number): Promise<FormResponse>;
  /** The history has begun: dials the peers and admits their streams. Called once, with an incarnation. */
  activate(hello: Hello): void;
  /** The chunk that an event `chunk` brought is durable: its sender may go on. Called for every `staged` of the store. */
  chunkStaged(request: number, sequence: number): void;
  /** Ends streams within a grace period, then by force. No event comes afterwards. May be called twice. */
  close(): Promise<void>;
}

/** Throws an Error for a peer address that is none. */
export function createTransport(options: TransportOptions): Transport {
  return new GrpcTransport(options);
}

class GrpcTransport implements Transport {
  readonly #options: TransportOptions;
  readonly #peers = new Map<NodeId, Peer>();
  readonly #server: PeerServer;
  readonly #forwarded = new Map<NodeId, ForwardedStream>();
  readonly #receivers = new Map<NodeId, SnapshotReceiver>();
  /** The transfer under way to each follower … */
  readonly #senders = new Map<NodeId, SnapshotSender>();
  /** … and beside them those that were aborted and have not ended yet. */
  readonly #transfers = new Set<SnapshotSender>();
  readonly #probes = new Set<Probe>();
  readonly #asks = new Set<Ask>();
  readonly #emit: (event: Event) => void;
  #self: Hello | undefined;
  #closing = false;
  #closed: Promise<void> | undefined;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#emit = (event) => {
      if (!this.#closing) options.listener(event);
    };
    placeOf(options.bind);
    for (const address of options.peers) {
      placeOf(address.peerAddress);
      if (address.node !== options.node) this.#peers.set(address.node, new Peer(address, this.#emit, options.log));
    }
    this.#server = new PeerServer({
      bind: options.bind,
      admitted: (incoming, hello) => this.#admitted(incoming, hello),
      onForm: options.onForm,
      log: options.log,
    });
  }

  listen(): Promise<number> {
    return this.#server.listen();
  }

  async ask(node: NodeId, request: FormRequest, timeoutMs: number): Promise<FormResponse> {
    const address = this.#peers.get(node)?.address;
    assert(address !== undefined, `node ${node} is asked while forming but is no configured member`);
    if (this.#closing) throw new AskFailed(address, 'closed', 'this node is stopping');
    const question = ask(address, request, timeoutMs);
    this.#asks.add(question);
    try {
      return await question.answer;
    } finally {
      this.#asks.delete(question);
    }
  }

  activate(hello: Hello): void {
    assert(this.#self === undefined, 'the transport is activated twice');
    assert(
      hello.incarnation !== '' && hello.node === this.#options.node,
      `the transport of ${this.#options.node} is activated as ${hello.node} of incarnation "${hello.incarnation}"`,
    );
    if (this.#closing) return;
    this.#self = hello;
    this.#server.activate(hello);
    for (const peer of this.#peers.values()) peer.start(hello);
  }

  perform(effect: PeerEffect): void {
    if (this.#closing) return;
    switch (effect.type) {
      case 'send':
        this.#peers.get(effect.message.to.node)?.send(effect.message);
        return;
      case 'forward':
        this.#forward(effect);
        return;
      case 'forwardCancel':
        this.#peers.get(effect.to)?.forwardCancel(effect.id);
        return;
      case 'forwardResult':
        this.#forwarded.get(effect.to)?.answer(effect.id, effect.result);
        return;
      case 'probe':
        this.#probe(effect.node);
        return;
      case 'sendSnapshot':
        this.#sendSnapshot(effect.to, effect.term, effect.request);
        return;
      case 'abortSnapshot':
        this.#abortSnapshot(effect.to.node);
        return;
      case 'refuseChunks':
        this.#receiver(effect.from)?.refuse(effect.reason);
        return;
      case 'chunksDone':
        this.#receiver(effect.from)?.done(effect.request);
        return;
    }
  }

  chunkStaged(request: number, sequence: number): void {
    for (const receiver of this.#receivers.values()) receiver.staged(request, sequence);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#closing = true;
    for (const each of this.#probes) each.cancel();
    for (const question of this.#asks) question.cancel();
    for (const sender of this.#transfers) sender.abort();
    await Promise.all([
      ...[...this.#transfers].map((sender) => sender.finished),
      ...[...this.#peers.values()].map((peer) => peer.close()),
      this.#server.close(),
    ]);
  }

  #receiver(from: Member): SnapshotReceiver | undefined {
    const receiver = this.#receivers.get(from.node);
    return receiver?.from.directory === from.directory ? receiver : undefined;
  }

  #admitted(incoming: Incoming, hello: Hello): StreamHandler {
    this.#emit({ type: 'hello', node: hello.node, directory: hello.directory, boot: hello.boot });
    this.#peers.get(hello.node)?.wake();
    switch (incoming.kind) {
      case 'control':
      case 'append':
        return messageStream(this.#options.node, hello, this.#emit);
      case 'forward': {
        const stream = new ForwardedStream(incoming, hello, this.#emit, (ended) => {
          if (this.#forwarded.get(ended.node) === ended) this.#forwarded.delete(ended.node);
        });
        this.#forwarded.set(hello.node, stream);
        return stream;
      }
      case 'snapshot': {
        const receiver = new SnapshotReceiver(incoming, hello, this.#emit, (ended) => {
          if (this.#receivers.get(ended.from.node) === ended) this.#receivers.delete(ended.from.node);
        });
        this.#receivers.set(hello.node, receiver);
        return receiver;
      }
    }
  }

  #forward(effect: Extract<PeerEffect, { readonly type: 'forward' }>): void {
    const { to, id } = effect;
    const peer = this.#peers.get(to);
    if (peer?.forward(effect) === true) return;
    const fault =
      peer === undefined
        ? failure('NO_LEADER', `node ${to} leads, but this node's configuration has no peer address for it: add it`)
        : failure('OVERLOADED', `too many calls wait to be forwarded to node ${to}`);
    this.#report({ type: 'forwardResult', from: to, id, result: { type: 'failure', failure: fault } });
  }

  #probe(node: NodeId): void {
    const address = this.#peers.get(node)?.address.peerAddress;
    if (address === undefined) {
      this.#report({ type: 'probed', node, outcome: 'other' });
      return;
    }
    const running = probe(address, (outcome) => {
      this.#probes.delete(running);
      this.#emit({ type: 'probed', node, outcome });
    });
    this.#probes.add(running);
  }

  #sendSnapshot(to: Member, term: number, request: number): void {
    this.#abortSnapshot(to.node);
    const self = this.#self;
    const address = this.#peers.get(to.node)?.address.peerAddress;
    if (self === undefined || address === undefined) {
      this.#report({ type: 'snapshotSent', to, index: 0, ok: false });
      return;
    }
    const open = this.#options.openSnapshot;
    const sender = new SnapshotSender({ to, address, self, term, request, open }, ({ type, index, reason }) => {
      this.#transfers.delete(sender);
      if (type === 'aborted') return;
      this.#senders.delete(to.node);
      if (type === 'failed')
        this.#options.log('warn', 'a snapshot was not taken by a peer', { peer: to.node, term, request, reason });
      this.#emit({ type: 'snapshotSent', to, index, ok: type === 'done' });
    });
    this.#senders.set(to.node, sender);
    this.#transfers.add(sender);
  }

  #abortSnapshot(node: NodeId): void {
    this.#senders.get(node)?.abort();
    this.#senders.delete(node);
  }

  /** Reports after the effect under way, never from within it. */
  #report(event: Event): void {
    queueMicrotask(() => {
      this.#emit(event);
    });
  }
}
