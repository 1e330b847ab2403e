/**
 * What waits to be written to one stream, bounded by count and bytes. What is pushed in one turn of the event loop
 * leaves as one frame, and no more is handed to the stream than it has room for.
 *
 * Parts are encoded protobuf messages of the frame's type with one repeated field set; written one behind the other
 * they are the message with all of them, so a frame is a plain concatenation.
 */
import { assert } from '../base/assert.js';
import { MAX_FRAME_BYTES } from './channel.js';

/** A frame is closed when it has this many bytes; one part may be greater. */
const FRAME_BYTES = 512 * 1024;
/** Bytes handed to a stream and not yet taken by its socket. More would only wait in buffers that nobody bounds. */
const WINDOW_BYTES = 1024 * 1024;

/** Writes one frame; calls `flushed` when the socket has taken it. */
export type Sink = (frame: Buffer, flushed: () => void) => void;

/** Bounds of what waits. */
export interface OutboxLimits {
  readonly count: number;
  readonly bytes: number;
}

/** See the head of this file. */
export class Outbox {
  readonly #limits: OutboxLimits;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #sink: { readonly write: Sink; unflushed: number } | undefined;
  #scheduled = false;
  #drained: (() => void) | undefined;

  constructor(limits: OutboxLimits) {
    this.#limits = limits;
  }

  /** True when nothing waits. */
  get empty(): boolean {
    return this.#parts.length === 0;
  }

  /** Queues one part; false, and nothing is kept, when there is no room. */
  push(part: Uint8Array): boolean {
    assert(
      part.byteLength <= MAX_FRAME_BYTES,
      `a message between nodes has ${part.byteLength} bytes, at most ${MAX_FRAME_BYTES} fit a frame`,
    );
    if (this.#parts.length >= this.#limits.count || this.#bytes + part.byteLength > this.#limits.bytes) return false;
    this.#parts.push(part);
    this.#bytes += part.byteLength;
    this.#schedule();
    return true;
  }

  /** Begins to write, also what waits already. */
  attach(write: Sink): void {
    this.#sink = { write, unflushed: 0 };
    this.#schedule();
  }

  /** Stops writing and drops what waits: it was meant for a stream that has ended. */
  detach(): void {
    this.#sink = undefined;
    this.#parts = [];
    this.#bytes = 0;
    this.#drained = undefined;
  }

  /** Calls `then` once, when everything that waits now has been handed over; a detach forgets it. */
  whenEmpty(then: () => void): void {
    this.#drained = then;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#sink === undefined) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.flush();
    });
  }
  /** Hands over what there is room for, now instead of at the end of this turn. */
  flush(): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    while (this.#parts.length > 0 && sink.unflushed < WINDOW_BYTES) {
      const frame = this.#take();
      sink.unflushed += frame.byteLength;
      sink.write(frame, () => {
        sink.unflushed -= frame.byteLength;
        if (this.#sink === sink) this.flush();
      });
    }
    if (this.#parts.length === 0 && this.#drained !== undefined) {
      const then = this.#drained;
      this.#drained = undefined;
      then();
    }
  }

  #take(): Buffer {
    let count = 0;
    let bytes = 0;
    for (const part of this.#parts) {
      if (count > 0 && bytes + part.byteLength > FRAME_BYTES) break;
      count += 1;
      bytes += part.byteLength;
    }
    const parts = this.#parts.splice(0, count);
    this.#bytes -= bytes;
    return Buffer.concat(parts, bytes);
  }
}
