/** The results of one stream on their way out: those of one turn of the event loop leave as one message. */
import type { Header } from '../base/api.js';
import { ResponseBatch } from '../wire/public-pipeline.js';
import type { OperationOutcome } from '../wire/public-pipeline.js';

/** The writing half of a stream, as grpc-js has it. */
export interface Outlet {
  /** False when no more should be written before {@link Answers.drained}. */
  write(bytes: Buffer): boolean;
}

/** See the head of the file. */
export class Answers {
  readonly #outlet: Outlet;
  readonly #flushed: () => void;
  readonly #batch = new ResponseBatch();
  readonly #messages: { readonly bytes: Buffer; readonly count: number }[] = [];
  #header: Header | undefined;
  #unsent = 0;
  #scheduled = false;
  #clogged = false;
  #closed = false;

  /** `flushed` is called after each writing: there may be room again. */
  constructor(outlet: Outlet, flushed: () => void) {
    this.#outlet = outlet;
    this.#flushed = flushed;
  }

  /** Results that are not handed to the stream yet: more than a moment only when the client does not read. */
  get unsent(): number {
    return this.#unsent;
  }

  /** Adds a result, and what the node says of itself with it. */
  add(id: number, header: Header, outcome: OperationOutcome): void {
    if (this.#closed) return;
    // One header for all results of a message: the newest word on who leads, and what any of them has seen.
    const seen = this.#header;
    this.#header =
      seen === undefined || seen.revision <= header.revision ? header : { ...header, revision: seen.revision };
    this.#batch.add(id, outcome);
    this.#unsent++;
    if (this.#batch.full) this.#pack();
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  /** The stream takes more. */
  drained(): void {
    this.#clogged = false;
    this.#flush();
  }

  /** The stream is over: nothing is written any more. */
  close(): void {
    this.#closed = true;
    this.#messages.length = 0;
  }

  #pack(): void {
    if (this.#header === undefined || this.#batch.count === 0) return;
    const { count } = this.#batch;
    this.#messages.push({ bytes: this.#batch.finish(this.#header), count });
    this.#header = undefined;
  }

  #flush(): void {
    if (this.#closed) return;
    if (!this.#clogged) {
      this.#pack();
      for (const { bytes, count } of this.#messages.splice(0)) {
        this.#unsent -= count;
        // What is refused room is kept by the stream all the same.
        if (!this.#outlet.write(bytes)) this.#clogged = true;
      }
    }
    this.#flushed();
  }
}
