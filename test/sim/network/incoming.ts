/** Streams that others opened to a process: the twin of `transport/peer-server.ts` and of the handlers behind it. */
import { assert } from '../../../src/base/assert.js';
import type { NodeId } from '../../../src/base/ids.js';
import type { CallId, CallResult, Hello } from '../../../src/replica/types.js';
import { helloFault } from '../../../src/transport/greeting.js';
import type { Carried } from './carriage.js';
import type { DialOwner, Network } from './dialling.js';
import type { Part } from './part.js';
import type { SimProcess } from './process.js';
import { SnapshotReceiver } from './receiver.js';
import { Incoming } from './incoming-stream.js';
import type { StreamHandler } from './incoming-stream.js';
import type { Stream } from './stream.js';

/** How often, and how many times, the streams of an older process are looked at after they were asked for a sign of life. */
const CHALLENGE_STEP_MS = 50;
const CHALLENGE_STEPS = 10;

/** See the head of the file. */
export class IncomingStreams {
  readonly receivers = new Map<NodeId, SnapshotReceiver>();
  readonly #network: Network;
  readonly #process: SimProcess;
  /** A node dialled: whoever waits to dial it need not any more. */
  readonly #wake: (node: NodeId) => void;
  readonly #admitted = new Map<Stream, Incoming>();
  readonly #forwarded = new Map<NodeId, ForwardedStream>();

  constructor(network: Network, process: SimProcess, wake: (node: NodeId) => void) {
    this.#network = network;
    this.#process = process;
    this.#wake = wake;
  }

  /** A connection was accepted and its hello has come. */
  greeted(stream: Stream, hello: Carried<Hello>, owner: DialOwner): void {
    if (!stream.isOpen('acceptor')) return;
    const incoming = new Incoming(stream, hello(), owner);
    stream.accept({
      process: this.#process,
      lost: () => {
        this.#finish(incoming, false);
      },
    });
    this.#judge(incoming);
  }

  /** A part came over a stream; nothing happens when that one is over or not admitted. */
  take(stream: Stream, part: Part): void {
    const incoming = this.#admitted.get(stream);
    if (incoming === undefined) return;
    incoming.frames++;
    incoming.handler?.frame(part);
  }

  /** Hands the result of a forwarded call back. */
  answer(to: NodeId, id: CallId, result: CallResult): void {
    this.#forwarded.get(to)?.answer(id, result);
  }

  /** Ends a stream; its handler is told. */
  end(incoming: Incoming, reason: string, replaced = false): void {
    if (incoming.over) return;
    incoming.stream.close('acceptor', 'flushed', reason);
    this.#finish(incoming, replaced);
  }

  #judge(incoming: Incoming): void {
    const { hello } = incoming;
    const fault = helloFault(this.#process.hello, hello);
    if (fault !== undefined) {
      this.end(incoming, fault);
      return;
    }
    const rivals = this.#of(hello.node).filter((each) => each.hello.boot !== hello.boot);
    if (rivals.length === 0) this.#admit(incoming);
    else this.#challenge(incoming, rivals);
  }

  #of(node: NodeId): Incoming[] {
    return [...this.#admitted.values()].filter(({ hello }) => hello.node === node);
  }

  /** Two processes of one node (S7): the older one stays when it gives a sign of life, else the newcomer takes its place. */
  #challenge(incoming: Incoming, rivals: readonly Incoming[]): void {
    const before = rivals.map(({ frames }) => frames);
    for (const rival of rivals) if (rival.kind !== 'snapshot') rival.back(() => rival.owner.lifeAsked?.());
    let steps = 0;
    const look = (): void => {
      steps++;
      if (incoming.over) return;
      const answered = rivals.some(({ frames }, at) => frames !== before[at]);
      const gone = rivals.every(({ over }) => over);
      if (!answered && !gone && steps < CHALLENGE_STEPS) {
        this.#process.after(CHALLENGE_STEP_MS, look);
        return;
      }
      const { coverage } = this.#network.wire.surroundings;
      if (answered) {
        coverage.count('second process refused');
        this.end(incoming, 'two processes run as one node');
        return;
      }
      if (!gone) coverage.count('silent process replaced');
      for (const rival of rivals) this.end(rival, 'silent, and replaced by a newer process of this node');
      // Another newcomer may have been admitted meanwhile.
      this.#judge(incoming);
    };
    this.#process.after(CHALLENGE_STEP_MS, look);
  }

  #admit(incoming: Incoming): void {
    const { hello, kind } = incoming;
    for (const older of this.#of(hello.node))
      if (older.kind === kind && older.hello.boot === hello.boot) {
        this.#network.wire.surroundings.coverage.count(`${kind} stream replaced`);
        this.end(older, 'replaced by a newer stream of this node', true);
      }
    this.#admitted.set(incoming.stream, incoming);
    const { node, directory, boot } = hello;
    this.#process.emit({ type: 'hello', node, directory, boot });
    this.#wake(node);
    incoming.handler = this.#handlerOf(incoming);
    const answer = this.#network.carriage.hello(this.#process.hello);
    incoming.back(() => {
      incoming.owner.answered(answer);
    });
  }

  #handlerOf(incoming: Incoming): StreamHandler {
    const { hello, kind } = incoming;
    switch (kind) {
      case 'control':
      case 'append':
        return messageStream(this.#process, hello);
      case 'forward': {
        const stream = new ForwardedStream(this.#network, this.#process, incoming, () => {
          if (this.#forwarded.get(hello.node) === stream) this.#forwarded.delete(hello.node);
        });
        this.#forwarded.set(hello.node, stream);
        return stream;
      }
      case 'snapshot': {
        const receiver = new SnapshotReceiver(
          this.#network,
          this.#process,
          incoming,
          (reason) => {
            this.end(incoming, reason);
          },
          () => {
            if (this.receivers.get(hello.node) === receiver) this.receivers.delete(hello.node);
          },
        );
        this.receivers.set(hello.node, receiver);
        return receiver;
      }
    }
  }

  #finish(incoming: Incoming, replaced: boolean): void {
    if (incoming.over) return;
    incoming.over = true;
    this.#admitted.delete(incoming.stream);
    incoming.handler?.ended(replaced);
  }
}

/** Core messages, each of which comes from whom the hello named. */
function messageStream(process: SimProcess, hello: Hello): StreamHandler {
  return {
    frame(part) {
      if (part.type !== 'message') return;
      const message = part.carried();
      const { from, to, type } = message;
      assert(
        from.node === hello.node && from.directory === hello.directory && to.node === process.node,
        `a message from ${from.node}/${from.directory} to ${to.node} came from ${hello.node}/${hello.directory} to ${process.node}`,
      );
      assert(type !== 'installSnapshot', 'a snapshot comes over its own connection, in chunks');
      process.emit({ type: 'message', message });
    },
    ended(replaced) {
      if (!replaced) process.emit({ type: 'streamEnded', node: hello.node });
    },
  };
}

/** Calls that a peer took, and the way back for their results. */
class ForwardedStream implements StreamHandler {
  readonly #network: Network;
  readonly #process: SimProcess;
  readonly #incoming: Incoming;
  readonly #over: () => void;
  /** Calls of this stream without a result: an id of an older stream must not be answered here. */
  readonly #open = new Set<CallId>();

  constructor(network: Network, process: SimProcess, incoming: Incoming, over: () => void) {
    this.#network = network;
    this.#process = process;
    this.#incoming = incoming;
    this.#over = over;
  }

  frame(part: Part): void {
    const { node } = this.#incoming.hello;
    if (part.type === 'call') {
      const call = part.carried();
      this.#open.add(call.id);
      this.#process.emit({ type: 'forwarded', from: node, ...call });
    } else if (part.type === 'cancel') {
      const id = part.carried();
      if (this.#open.delete(id)) this.#process.emit({ type: 'forwardCancelled', from: node, id });
    }
  }

  ended(): void {
    this.#over();
    this.#process.emit({ type: 'forwarderLost', node: this.#incoming.hello.node });
  }

  /** Sends a result back; nothing happens when the call is not of this stream, or was cancelled. */
  answer(id: CallId, result: CallResult): void {
    if (!this.#open.delete(id)) return;
    const carried = this.#network.carriage.result({ id, result });
    this.#incoming.back(() => {
      this.#incoming.owner.result?.(carried);
    });
  }
}
