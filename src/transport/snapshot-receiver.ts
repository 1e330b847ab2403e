/**
 * The receiving end of a snapshot. Reads one chunk, hands it over, and reads on when that chunk is durable: so a fast
 * sender never runs further ahead of a slow disk than gRPC's own buffers (16 frames of about 256 KiB).
 */
import * as grpc from '@grpc/grpc-js';
import type { Member } from '../raft/types.js';
import type { Event, Hello } from '../replica/types.js';
import { decodeChunk } from '../wire/chunk.js';
import { decodeFrame, doneFrame } from '../wire/peer-frames.js';
import { asBuffer } from './channel.js';
import type { Incoming, StreamHandler } from './incoming.js';

/** See the head of this file. */
export class SnapshotReceiver implements StreamHandler {
  readonly from: Member;
  readonly #incoming: Incoming;
  readonly #emit: (event: Event) => void;
  readonly #over: (receiver: SnapshotReceiver) => void;
  #awaiting: { readonly request: number; readonly sequence: number } | undefined;
  /** The request whose last chunk has come. */
  #complete: number | undefined;
  #settled = false;

  /** `over` is called once, when the stream has ended. */
  constructor(
    incoming: Incoming,
    hello: Hello,
    emit: (event: Event) => void,
    over: (receiver: SnapshotReceiver) => void,
  ) {
    this.from = { node: hello.node, directory: hello.directory };
    this.#incoming = incoming;
    this.#emit = emit;
    this.#over = over;
  }

  frame(bytes: Buffer): void {
    const { parts } = decodeFrame(bytes, 'snapshot frame');
    const [part] = parts;
    if (part === undefined || parts.length > 1)
      throw new Error(`a snapshot frame carries one chunk, not ${parts.length}`);
    if (this.#complete !== undefined) throw new Error('a chunk came after the last one');
    const chunk = decodeChunk(part);
    this.#awaiting = { request: chunk.request, sequence: chunk.sequence };
    if (chunk.total !== undefined) this.#complete = chunk.request;
    this.#incoming.pause();
    this.#emit({ type: 'chunk', from: this.from, chunk });
  }

  ended(): void {
    this.#over(this);
    if (this.#complete === undefined && !this.#settled) this.#emit({ type: 'chunksEnded', from: this.from });
  }

  /** This chunk is durable: read on if it is the one that is waited for. */
  staged(request: number, sequence: number): void {
    if (this.#awaiting?.request !== request || this.#awaiting.sequence !== sequence) return;
    this.#awaiting = undefined;
    this.#incoming.resume();
  }

  /** Everything is staged and decided: tells the sender, if this is that transfer. */
  done(request: number): void {
    if (this.#complete !== request) return;
    this.#settled = true;
    this.#incoming.write(asBuffer(doneFrame(request)), () => undefined);
    this.#incoming.end();
  }

  /** Not wanted: ends the stream with this reason. No `chunksEnded` follows. */
  refuse(reason: string): void {
    this.#settled = true;
    this.#incoming.refuse(grpc.status.FAILED_PRECONDITION, reason);
  }
}
