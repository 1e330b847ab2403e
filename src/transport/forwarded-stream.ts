/** The receiving end of a forward stream: clients' calls that a peer took, and the way back for their results. */
import * as grpc from '@grpc/grpc-js';
import { MAX_HELD_CALLS } from '../base/limits.js';
import type { NodeId } from '../base/ids.js';
import type { CallId, CallResult, Event, Hello } from '../replica/types.js';
import { decodeForwardedCall, encodeForwardedResult } from '../wire/forward.js';
import { decodeFrame, partFrame } from '../wire/peer-frames.js';
import type { Incoming, StreamHandler } from './incoming.js';
import { Outbox } from './outbox.js';

/** Results that may wait for a peer that does not read; beyond, its stream is ended. */
const RESULT_LIMITS = { count: MAX_HELD_CALLS, bytes: 16 * 1024 * 1024 };

/**
 * See the head of this file. The principal is passed on as the peer stated it: without TLS between peers the peer port
 * trusts whoever reaches it (S6).
 */
export class ForwardedStream implements StreamHandler {
  readonly node: NodeId;
  readonly #incoming: Incoming;
  readonly #emit: (event: Event) => void;
  readonly #over: (stream: ForwardedStream) => void;
  readonly #results = new Outbox(RESULT_LIMITS);
  /** Calls of this stream without a result: an id of an older stream must not be answered here. */
  readonly #open = new Set<CallId>();

  /** `over` is called once, when the stream has ended. */
  constructor(incoming: Incoming, hello: Hello, emit: (event: Event) => void, over: (stream: ForwardedStream) => void) {
    this.node = hello.node;
    this.#incoming = incoming;
    this.#emit = emit;
    this.#over = over;
    this.#results.attach((frame, flushed) => {
      incoming.write(frame, flushed);
    });
  }

  frame(bytes: Buffer): void {
    const { parts, numbers } = decodeFrame(bytes, 'forward frame');
    for (const part of parts) {
      const call = decodeForwardedCall(part);
      this.#open.add(call.id);
      this.#emit({ type: 'forwarded', from: this.node, ...call });
    }
    for (const id of numbers) if (this.#open.delete(id)) this.#emit({ type: 'forwardCancelled', from: this.node, id });
  }

  ended(): void {
    this.#results.detach();
    this.#over(this);
    this.#emit({ type: 'forwarderLost', node: this.node });
  }

  /** Sends a result back; nothing happens when the call is not of this stream, or was cancelled. */
  answer(id: CallId, result: CallResult): void {
    if (!this.#open.delete(id)) return;
    if (this.#results.push(partFrame(encodeForwardedResult({ id, result })))) return;
    this.#incoming.refuse(
      grpc.status.RESOURCE_EXHAUSTED,
      `more than ${RESULT_LIMITS.count} results wait: node ${this.node} does not read them`,
    );
  }
}
