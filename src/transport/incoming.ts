/** One stream that a peer opened to this node: first its hello, then, once the server has admitted it, its frames. */
import * as grpc from '@grpc/grpc-js';
import type { Hello } from '../replica/types.js';
import { decodeHello } from '../wire/hello.js';
import { decodeFrame } from '../wire/peer-frames.js';
import type { LaneKind, ServerStream } from './channel.js';
import { asBuffer, CONNECT_TIMEOUT_MS, faultOf } from './channel.js';

/** The streams of the peer service: the lanes, and one for each snapshot under way. */
export type IncomingKind = LaneKind | 'snapshot';

/** `judging`: the hello is read and nothing more, until the server admits or refuses. */
type Phase =
  | { readonly type: 'greeting' }
  | { readonly type: 'judging'; readonly hello: Hello }
  | { readonly type: 'live'; readonly hello: Hello; readonly handler: StreamHandler }
  | { readonly type: 'ended' };

/** What becomes of an admitted stream. */
export interface StreamHandler {
  /** A frame; throws to end the stream as invalid. */
  frame(bytes: Buffer): void;
  /** The stream is over. `replaced`: the same process has opened a newer one of the same kind. Called once. */
  ended(replaced: boolean): void;
}

/** Who decides about a stream. */
export interface IncomingOwner {
  /** The hello is read: admit or refuse, now or later. */
  greeted(incoming: Incoming, hello: Hello): void;
  /** The stream is over, admitted or not. Called once. */
  over(incoming: Incoming): void;
  /** The stream was ended here because of what came over it. */
  fault(incoming: Incoming, reason: string): void;
}

/** See the head of this file. */
export class Incoming {
  readonly kind: IncomingKind;
  readonly #stream: ServerStream;
  readonly #owner: IncomingOwner;
  readonly #greetingTimer: NodeJS.Timeout;
  #phase: Phase = { type: 'greeting' };
  #frames = 0;

  constructor(kind: IncomingKind, stream: ServerStream, owner: IncomingOwner) {
    this.kind = kind;
    this.#stream = stream;
    this.#owner = owner;
    this.#greetingTimer = setTimeout(() => {
      this.refuse(grpc.status.DEADLINE_EXCEEDED, `no hello within ${CONNECT_TIMEOUT_MS} ms`);
    }, CONNECT_TIMEOUT_MS);
    // Refusing is done by emitting an error on the stream; it must never be without a listener.
    stream.on('error', () => undefined);
    stream.on('data', (bytes: Buffer) => {
      this.#received(bytes);
    });
    stream.on('end', () => {
      this.#finish(false);
      stream.end();
    });
    // Emitted after every ending, a lost connection included.
    stream.on('cancelled', () => {
      this.#finish(false);
    });
  }

  /** What the peer said of itself, while the stream is admitted. */
  get liveHello(): Hello | undefined {
    return this.#phase.type === 'live' ? this.#phase.hello : undefined;
  }

  /** The stream has ended, by whichever end. */
  get over(): boolean {
    return this.#phase.type === 'ended';
  }

  /** How many frames have come since the stream was admitted: a sign of life when it rises. */
  get frames(): number {
    return this.#frames;
  }

  /** Address of the other end, for the log. */
  get remote(): string {
    return this.#stream.getPeer();
  }

  /** Answers the hello with this node's (encoded as a frame) and begins to read. */
  admit(helloFrame: Uint8Array, handler: StreamHandler): void {
    if (this.#phase.type !== 'judging') return;
    this.#phase = { type: 'live', hello: this.#phase.hello, handler };
    this.#stream.write(asBuffer(helloFrame));
    this.#stream.resume();
  }

  /** Ends the stream with a status. An admitted one's handler is told. */
  refuse(code: grpc.status, details: string, replaced = false): void {
    if (this.#phase.type === 'ended') return;
    this.#finish(replaced);
    this.#stream.emit('error', { name: 'Refused', message: details, code, details });
  }

  /** Ends the stream as complete. The handler is told. */
  end(): void {
    if (this.#phase.type === 'ended') return;
    this.#finish(false);
    this.#stream.end();
  }

  /** Sends a frame; nothing happens when the stream is over. */
  write(frame: Buffer, flushed: () => void): void {
    if (this.#phase.type !== 'live') return;
    this.#stream.write(frame, flushed);
  }

  /** Stops reading; what has arrived already stays in bounded buffers. */
  pause(): void {
    this.#stream.pause();
  }

  /** Reads on. */
  resume(): void {
    if (this.#phase.type === 'live') this.#stream.resume();
  }

  #received(bytes: Buffer): void {
    const phase = this.#phase;
    try {
      if (phase.type === 'greeting') {
        const { hello } = decodeFrame(bytes, 'first frame');
        if (hello === undefined) throw new Error('the first frame carries no hello');
        const decoded = decodeHello(hello);
        clearTimeout(this.#greetingTimer);
        this.#stream.pause();
        this.#phase = { type: 'judging', hello: decoded };
        this.#owner.greeted(this, decoded);
      } else if (phase.type === 'live') {
        this.#frames += 1;
        if (bytes.byteLength > 0) phase.handler.frame(bytes);
      }
    } catch (error) {
      const reason = faultOf(error);
      this.#owner.fault(this, reason);
      this.refuse(grpc.status.INVALID_ARGUMENT, reason);
    }
  }

  #finish(replaced: boolean): void {
    const phase = this.#phase;
    if (phase.type === 'ended') return;
    this.#phase = { type: 'ended' };
    clearTimeout(this.#greetingTimer);
    this.#owner.over(this);
    if (phase.type === 'live') phase.handler.ended(replaced);
  }
}
