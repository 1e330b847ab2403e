/**
 * One stream of operations. It takes them in, lets those of one domain begin one after the other, hands them to the
 * replica when it is this stream's turn, and answers them many at a time. It reads no more than it may have open, and
 * what waits here is answered before its deadline as everything else.
 */
import { performance } from 'node:perf_hooks';
import type { Call, Header } from '../base/api.js';
import { nameOf } from '../base/domain.js';
import { failure } from '../base/errors.js';
import type { Failure } from '../base/errors.js';
import type { RequestId } from '../base/ids.js';
import { ANSWER_BEFORE_DEADLINE_MS, MAX_CALL_MS } from '../base/limits.js';
import type { CallId } from '../replica/types.js';
import { MAX_MESSAGE_OPERATIONS } from '../wire/public-pipeline-messages.js';
import type { PipelineCall } from '../wire/public-pipeline-messages.js';
import { readOperations } from '../wire/public-pipeline-read.js';
import type { PipelineOperation } from '../wire/public-pipeline-read.js';
import type { OperationOutcome } from '../wire/public-pipeline.js';
import { Answers } from './pipeline-answers.js';
import type { Outlet } from './pipeline-answers.js';
import { DomainOrder } from './pipeline-order.js';
import type { Ordered } from './pipeline-order.js';
import type { Sharer, Shares } from './pipeline-shares.js';

/** A stream is not read on while it has this many operations open, acquires that may wait left out. */
export const STREAM_WINDOW = 2_048;
/** Operations that a stream may have under way at once. */
export const MAX_STREAM_RUNNING = 1_024;
/** Acquires that may wait, and that a stream may have open: reading never stops for them, so they are refused beyond. */
export const MAX_STREAM_WAITING = 10_000;
/** The deadline of an operation that set none, in milliseconds. */
const DEFAULT_OPERATION_MS = 10_000;
/** How often the deadlines of what has not begun are looked at, in milliseconds. */
const DEADLINES_MS = 20;

/** What a stream needs of its node. */
export interface StreamPorts {
  readonly shares: Shares;
  /** The call in an operation that breaks no limit, or what is wrong with it. */
  parse(operation: PipelineOperation): PipelineCall | Failure;
  /** Hands a call to the replica; a failure when there is none yet. `answered` is called at most once, never before this returns. */
  open(call: Call, timeoutMs: number, answered: (header: Header, outcome: OperationOutcome) => void): CallId | Failure;
  cancel(id: CallId): void;
  /** True when this node has applied that the request is in a queue. */
  isWaiting(request: RequestId): boolean;
  /** For results that no replica gave. */
  header(): Header;
  /** Something here waits for time to pass. */
  watch(): void;
}

/** The stream as grpc-js has it. */
export interface Inlet extends Outlet {
  pause(): unknown;
  resume(): unknown;
  end(): unknown;
}

interface Operation extends Ordered {
  readonly id: number;
  readonly call: PipelineCall;
  /** When it is answered at the latest, and when its caller gives it up. */
  readonly answerBy: number;
  readonly deadline: number;
  /** `running` counts as under way; `waiting` is an acquire that is known to be in its queue. */
  phase: 'blocked' | 'ready' | 'running' | 'waiting' | 'done';
  under: CallId | undefined;
}

/** See the head of the file. */
export class PipelineStream implements Sharer {
  readonly #inlet: Inlet;
  readonly #ports: StreamPorts;
  readonly #answers: Answers;
  readonly #order = new DomainOrder<Operation>();
  readonly #open = new Map<number, Operation>();
  readonly #blocked = new Set<Operation>();
  /** In the order of their coming; what is done meanwhile is passed over. */
  readonly #ready: Operation[] = [];
  #next = 0;
  /** Acquires under way that may wait and are not known to be in their queue. */
  readonly #mayWait = new Set<Operation>();
  #lookedAt = 0;
  #running = 0;
  #patient = 0;
  #paused = false;
  /** Nothing more is coming, or wanted: the stream ends with its last result. */
  #ending = false;
  #over = false;

  constructor(inlet: Inlet, ports: StreamPorts) {
    this.#inlet = inlet;
    this.#ports = ports;
    this.#answers = new Answers(inlet, () => {
      this.#flushed();
    });
  }

  /** True when nothing waits for time to pass. */
  get calm(): boolean {
    return this.#blocked.size === 0 && this.#next === this.#ready.length && this.#mayWait.size === 0;
  }

  get startable(): boolean {
    return this.#running < MAX_STREAM_RUNNING && this.#next < this.#ready.length;
  }

  /**
   * A message came. Returns what is wrong with it as a whole: then nothing of it was begun and the stream has to end.
   * Throws `UnreadablePipeline`.
   */
  receive(bytes: Buffer): Failure | undefined {
    const operations = readOperations(bytes);
    const fault = this.#faultOf(operations);
    if (fault !== undefined) return failure('INVALID_REQUEST', fault);
    const now = performance.now();
    for (const operation of operations) this.#take(operation, now);
    this.#ports.shares.want(this);
    if (this.#pressure >= STREAM_WINDOW && !this.#paused) {
      this.#paused = true;
      this.#inlet.pause();
    }
    if (!this.calm) this.#ports.watch();
    return undefined;
  }

  startOne(): void {
    const operation = this.#ready[this.#next];
    this.#next++;
    if (this.#next === this.#ready.length) {
      this.#ready.length = 0;
      this.#next = 0;
    }
    if (operation?.phase !== 'ready') {
      this.#ports.shares.freed();
      return;
    }
    this.#running++;
    operation.phase = 'running';
    if (isPatient(operation.call)) {
      this.#mayWait.add(operation);
      this.#ports.watch();
    }
    const timeoutMs = Math.max(1, operation.deadline - performance.now());
    const under = this.#ports.open(operation.call, timeoutMs, (header, outcome) => {
      this.#answer(operation, header, outcome);
    });
    if (typeof under === 'number') operation.under = under;
    else this.#answer(operation, this.#ports.header(), { type: 'failure', failure: under });
  }

  /** Time has passed: what waits too long is answered, and acquires that are in their queue hold back nothing more. */
  look(): void {
    const now = performance.now();
    if (now - this.#lookedAt >= DEADLINES_MS) {
      this.#lookedAt = now;
      for (const operation of this.#blocked) this.#giveUp(operation, now);
      for (let at = this.#next; at < this.#ready.length; at++) {
        const operation = this.#ready[at];
        if (operation?.phase === 'ready') this.#giveUp(operation, now);
      }
    }
    for (const operation of this.#mayWait) {
      if (operation.call.type !== 'acquire' || !this.#ports.isWaiting(operation.call.requestId)) continue;
      operation.phase = 'waiting';
      this.#mayWait.delete(operation);
      this.#stopRunning();
      this.#release(operation);
    }
    this.#ports.shares.want(this);
  }

  /** The stream takes more results. */
  drained(): void {
    this.#answers.drained();
  }

  /** The client has sent everything, or the node is stopping: ends the stream with its last result. */
  finish(): void {
    this.#ending = true;
    this.#endIfDone();
  }

  /** The stream is gone, and with it its operations. */
  drop(): void {
    if (this.#over) return;
    this.#over = true;
    this.#answers.close();
    this.#ports.shares.leave(this);
    for (const operation of this.#open.values()) {
      if (operation.under !== undefined) this.#ports.cancel(operation.under);
      if (operation.phase === 'running') this.#ports.shares.freed();
      operation.phase = 'done';
    }
    this.#open.clear();
    this.#blocked.clear();
    this.#mayWait.clear();
    this.#ready.length = 0;
    this.#next = 0;
  }

  /** What reading on depends on. */
  get #pressure(): number {
    return this.#open.size - this.#patient + this.#answers.unsent;
  }

  #faultOf(operations: readonly PipelineOperation[]): string | undefined {
    const { length } = operations;
    if (length < 1 || length > MAX_MESSAGE_OPERATIONS) {
      return `operations has ${length} elements; it must have 1 to ${MAX_MESSAGE_OPERATIONS}`;
    }
    const ids = new Set<number>();
    const twice = new Set<number>();
    for (const { id } of operations) {
      if (this.#open.has(id) || ids.has(id)) twice.add(id);
      ids.add(id);
    }
    if (twice.size === 0) return undefined;
    return `the ids ${[...twice].slice(0, 20).join(', ')} belong to operations of this stream that are still open`;
  }

  #take(incoming: PipelineOperation, now: number): void {
    const call = this.#ports.parse(incoming);
    if ('reason' in call) {
      this.#answers.add(incoming.id, this.#ports.header(), { type: 'failure', failure: call });
      return;
    }
    const patient = isPatient(call);
    if (patient && this.#patient >= MAX_STREAM_WAITING) {
      const text = `${MAX_STREAM_WAITING} acquires of this stream may wait already; wait for some of them, or open another stream`;
      this.#answers.add(incoming.id, this.#ports.header(), { type: 'failure', failure: failure('OVERLOADED', text) });
      return;
    }
    const timeoutMs = Math.min(incoming.timeoutMs === 0 ? DEFAULT_OPERATION_MS : incoming.timeoutMs, MAX_CALL_MS);
    const operation: Operation = {
      id: incoming.id,
      call,
      names: namesOf(call),
      before: 0,
      answerBy: now + timeoutMs - Math.min(ANSWER_BEFORE_DEADLINE_MS, timeoutMs / 4),
      deadline: now + timeoutMs,
      phase: 'ready',
      under: undefined,
    };
    this.#open.set(operation.id, operation);
    if (patient) this.#patient++;
    if (this.#order.enter(operation)) this.#ready.push(operation);
    else {
      operation.phase = 'blocked';
      this.#blocked.add(operation);
    }
  }

  #giveUp(operation: Operation, now: number): void {
    if (now < operation.answerBy) return;
    const text =
      operation.phase === 'blocked'
        ? 'until shortly before its deadline it waited for an earlier operation of its stream on the same domain'
        : 'until shortly before its deadline it waited for its turn: the stream has sent more than the node can do';
    const fault = failure('TIMED_OUT', `${text}; it was not begun`, { outcome: 'not-done' });
    this.#answer(operation, this.#ports.header(), { type: 'failure', failure: fault });
  }

  #answer(operation: Operation, header: Header, outcome: OperationOutcome): void {
    if (operation.phase === 'done') return;
    if (operation.phase === 'running') this.#stopRunning();
    if (operation.phase !== 'waiting') {
      this.#blocked.delete(operation);
      this.#mayWait.delete(operation);
      this.#release(operation);
    }
    operation.phase = 'done';
    this.#open.delete(operation.id);
    if (isPatient(operation.call)) this.#patient--;
    this.#answers.add(operation.id, header, outcome);
    this.#ports.shares.want(this);
  }

  #stopRunning(): void {
    this.#running--;
    this.#ports.shares.freed();
  }

  /** Those behind it may begin. */
  #release(operation: Operation): void {
    for (const next of this.#order.leave(operation)) {
      this.#blocked.delete(next);
      next.phase = 'ready';
      this.#ready.push(next);
    }
  }

  #flushed(): void {
    if (this.#paused && this.#pressure < STREAM_WINDOW / 2) {
      this.#paused = false;
      this.#inlet.resume();
    }
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (!this.#ending || this.#over || this.#open.size > 0 || this.#answers.unsent > 0) return;
    this.#over = true;
    this.#inlet.end();
  }
}

/** It may be held for long; what a stream reads must not depend on when it is answered. */
function isPatient(call: PipelineCall): boolean {
  return call.type === 'acquire' && call.waitMs > 0;
}

function namesOf(call: PipelineCall): readonly string[] {
  switch (call.type) {
    case 'acquire':
    case 'withdraw':
      return [call.domain];
    case 'release':
      return [nameOf(call.lease.domain)];
    case 'renew':
      return [...new Set(call.leases.map(({ domain }) => nameOf(domain)))];
  }
}
