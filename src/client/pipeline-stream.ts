/**
 * One stream of operations to one node. It lives as long as calls follow each other and ends when there was none for a
 * moment: an open stream keeps the process alive, an idle connection does not.
 */
import type { Client, ClientDuplexStream, StatusObject } from '@grpc/grpc-js';
import type { PipelineCall } from '../wire/public-pipeline-messages.js';
import { readResults } from '../wire/public-pipeline-read.js';
import { PIPELINE_METHOD, RequestBatch } from '../wire/public-pipeline.js';
import type { Reply } from './channel.js';

/** A stream without calls ends after this, in milliseconds. */
const IDLE_MS = 100;
const MAX_ID = 0xffff_ffff;

/** A way to make a call, as `Channel.send` is one. */
export type Send = (call: PipelineCall, timeoutMs: number, done: (reply: Reply) => void) => () => boolean;

/** A call that is not answered. */
export interface OpenOperation {
  readonly done: (reply: Reply) => void;
  /** False while it has not been handed to the stream. */
  readonly sent: boolean;
  /** Makes it in another way, with the time that is left; giving it up gives up that. */
  instead(send: Send): void;
}

/** What a stream needs of its channel. */
export interface PipelineOwner {
  /** Called once. The stream ended, with these calls open. */
  ended(status: StatusObject, open: readonly OpenOperation[]): void;
  /** False when nothing can have left through the connection. */
  mayHaveLeft(): boolean;
  /** A call was given up after it was sent, and no other is open. */
  deserted(): void;
}

/** See the head of the file. */
export class PipelineStream {
  readonly #raw: ClientDuplexStream<Buffer, Buffer>;
  readonly #owner: PipelineOwner;
  readonly #batch = new RequestBatch();
  readonly #open = new Map<number, Operation>();
  /** Not handed to the stream yet. */
  #waiting: Operation[] = [];
  #id = 0;
  #usable = true;
  #scheduled = false;
  #clogged = false;
  #usedAt = 0;
  #idle: NodeJS.Timeout | undefined;
  #deadline: NodeJS.Timeout | undefined;
  /** When `#deadline` fires. */
  #deadlineAt = Infinity;

  constructor(client: Client, owner: PipelineOwner) {
    this.#owner = owner;
    const { path, requestSerialize, responseDeserialize } = PIPELINE_METHOD;
    this.#raw = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
    this.#raw.on('data', (bytes: Buffer) => {
      this.#received(bytes);
    });
    this.#raw.on('drain', () => {
      this.#clogged = false;
      this.#flush();
    });
    // Every ending arrives as a status; the error beside it must have a listener.
    this.#raw.on('error', () => undefined);
    this.#raw.on('status', (status: StatusObject) => {
      const open = this.#over();
      owner.ended(status, open);
    });
  }

  /** False when it has ended, or is ending: calls need another one. */
  get usable(): boolean {
    return this.#usable;
  }

  /** As `Channel.send`. */
  send(call: PipelineCall, timeoutMs: number, done: (reply: Reply) => void): () => boolean {
    const now = performance.now();
    this.#usedAt = now;
    const operation = new Operation(this.#nextId(), call, timeoutMs, now + timeoutMs, done);
    this.#open.set(operation.id, operation);
    this.#waiting.push(operation);
    this.#schedule();
    if (operation.deadline < this.#deadlineAt) this.#setDeadline(operation.deadline);
    return () => this.#giveUp(operation);
  }

  /** Ends it at once; each open call gets this reply, one that was not sent never left. */
  abort(reply: Extract<Reply, { readonly type: 'silent' | 'foreign' }>): void {
    for (const operation of this.#over()) {
      operation.done(reply.type === 'silent' && !operation.sent ? { ...reply, reached: false } : reply);
    }
    this.#raw.cancel();
  }

  #nextId(): number {
    do this.#id = this.#id === MAX_ID ? 1 : this.#id + 1;
    while (this.#open.has(this.#id));
    return this.#id;
  }

  /** After this turn of the event loop, with everything that it makes us send. */
  #schedule(): void {
    if (this.#scheduled || this.#clogged) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    const waiting = this.#waiting;
    let at = 0;
    for (; at < waiting.length && !this.#clogged && this.#usable; at++) {
      const operation = waiting[at];
      // Given up before it left.
      if (operation === undefined || !this.#open.has(operation.id)) continue;
      this.#batch.add(operation.id, operation.timeoutMs, operation.call);
      operation.sent = true;
      if (this.#batch.full) this.#write();
    }
    this.#waiting = waiting.slice(at);
    if (this.#batch.count > 0) this.#write();
  }

  #write(): void {
    this.#clogged = !this.#raw.write(this.#batch.finish());
  }

  #received(bytes: Buffer): void {
    let read;
    try {
      read = readResults(bytes);
    } catch (error) {
      const why = `the answer cannot be read: ${error instanceof Error ? error.message : String(error)}`;
      this.abort({ type: 'foreign', why });
      return;
    }
    const { header, results } = read;
    for (const result of results) {
      const operation = this.#open.get(result.id);
      // Given up meanwhile.
      if (operation === undefined) continue;
      this.#open.delete(result.id);
      if (result.type === 'answer') operation.done({ type: 'answer', header, answer: result.answer, version: '' });
      else operation.done({ type: 'failure', failure: result.failure, retryDelayMs: result.retryDelayMs });
    }
    this.#restSoon();
  }

  #giveUp(operation: Operation): boolean {
    if (operation.givenUp !== undefined) return operation.givenUp();
    const reached = operation.sent && this.#owner.mayHaveLeft();
    if (!this.#open.delete(operation.id)) return reached;
    this.#restSoon();
    if (operation.sent && this.#open.size === 0) this.#owner.deserted();
    return reached;
  }

  /** Nothing is open: ends the stream if that lasts. */
  #restSoon(): void {
    if (this.#open.size > 0 || this.#idle !== undefined || !this.#usable) return;
    const rest = (afterMs: number): void => {
      this.#idle = setTimeout(() => {
        this.#idle = undefined;
        if (this.#open.size > 0 || !this.#usable) return;
        const leftMs = this.#usedAt + IDLE_MS - performance.now();
        if (leftMs > 1) {
          rest(leftMs);
          return;
        }
        this.#usable = false;
        this.#raw.end();
      }, afterMs).unref();
    };
    rest(IDLE_MS);
  }

  #setDeadline(at: number): void {
    clearTimeout(this.#deadline);
    this.#deadlineAt = at;
    // Rounded up: a timer must not find that it is too early.
    const afterMs = Math.min(2 ** 31 - 1, Math.ceil(at - performance.now()) + 1);
    this.#deadline = setTimeout(() => {
      this.#endLate();
    }, afterMs).unref();
  }

  /** One timer for all: it looks at all deadlines and is set for the next one. */
  #endLate(): void {
    const now = performance.now();
    this.#deadlineAt = Infinity;
    let next = Infinity;
    for (const operation of [...this.#open.values()]) {
      if (operation.deadline > now) {
        next = Math.min(next, operation.deadline);
        continue;
      }
      const reached = this.#giveUp(operation);
      const why = `no answer within ${Math.ceil(operation.timeoutMs)} ms`;
      operation.done({ type: 'silent', reached, why });
    }
    if (next < this.#deadlineAt) this.#setDeadline(next);
  }

  /** Nothing more happens on it; returns what was open. */
  #over(): Operation[] {
    this.#usable = false;
    clearTimeout(this.#idle);
    clearTimeout(this.#deadline);
    const open = [...this.#open.values()];
    this.#open.clear();
    this.#waiting = [];
    return open;
  }
}

class Operation implements OpenOperation {
  readonly id: number;
  readonly call: PipelineCall;
  /** Whole milliseconds, at least 1. */
  readonly timeoutMs: number;
  readonly deadline: number;
  readonly done: (reply: Reply) => void;
  sent = false;
  /** Gives up what is done instead. */
  givenUp: (() => boolean) | undefined;

  constructor(id: number, call: PipelineCall, timeoutMs: number, deadline: number, done: (reply: Reply) => void) {
    this.id = id;
    this.call = call;
    this.timeoutMs = Math.max(1, Math.ceil(timeoutMs));
    this.deadline = deadline;
    this.done = done;
  }

  instead(send: Send): void {
    this.givenUp = send(this.call, Math.max(1, this.deadline - performance.now()), this.done);
  }
}
