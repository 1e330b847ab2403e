/**
 * Calls over several endpoints: repeats a call by the error table until its deadline, and always the very same call, so
 * that a repetition has the same request id. Which endpoint comes next is decided in `endpoints.ts`.
 */
import type { Answer, Call, Header } from '../base/api.js';
import { ERRORS } from '../base/errors.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import type { OpenChannel, Reply } from './channel.js';
import type { Moment, Timeline } from './clock.js';
import { Endpoints } from './endpoints.js';
import type { Endpoint } from './endpoints.js';
import { ClosedError, errorOf, retold, UnexpectedAnswerError, UnreachableError } from './errors.js';
import type { FencepostError } from './errors.js';
import type { Timers } from './surroundings.js';

/** The answer that belongs to a call. */
export type AnswerTo<C extends Call> = Extract<Answer, { readonly type: C['type'] }>;

/** A call that was answered. */
export interface Answered<C extends Call> {
  readonly type: 'answer';
  readonly answer: AnswerTo<C>;
  /** Undefined for the few answers that have none. */
  readonly header: Header | undefined;
  /** From before the send of the attempt that was answered. */
  readonly sentAt: Moment;
  /** The node's version; empty but in a status. */
  readonly version: string;
  /** An earlier attempt of the call ended without an answer, and may still take effect. */
  readonly earlierUnknown: boolean;
}

/** A call that failed. */
export interface Failed {
  readonly type: 'failed';
  /** Its `outcome` is `unknown` as soon as that of one attempt is. */
  readonly error: FencepostError;
  /** Trailer `fencepost-revision`, see `Failure`; 0 when there was none. */
  readonly revision: Revision;
}

/** How a call ended, after all its repetitions. */
export type CallOutcome<C extends Call> = Answered<C> | Failed;

/** A call under way. */
export interface OpenCall<C extends Call> {
  /** Never rejects. */
  readonly result: Promise<CallOutcome<C>>;
  /** Ends it at once with this error; an answer that is under way then does not count. Nothing happens when it is over. */
  cancel(error: FencepostError): void;
}

/** What the transport needs. */
export interface TransportPorts {
  readonly timeline: Timeline;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  random(): number;
  readonly open: OpenChannel;
}

/** One attempt gets this long at first, and twice as long after each that ran out of it, in milliseconds. */
const FIRST_ATTEMPT_MS = 1_000;
const MAX_ATTEMPT_MS = 8_000;
/**
 * No further attempt is begun with less than this left, in milliseconds: its silence would say nothing. A node without
 * a leader answers a quarter of the time before the deadline, and looks for such calls every 20 ms.
 */
const MIN_ATTEMPT_MS = 150;
/** Pause before the next attempt when every endpoint has just failed, in milliseconds. */
const ROUND_PAUSE_MS = 100;

/** All endpoints of one client. */
export class Transport {
  readonly #ports: TransportPorts;
  readonly #endpoints: Endpoints;
  readonly #open = new Set<(error: FencepostError) => void>();
  #closed = false;

  constructor(endpoints: readonly string[], ports: TransportPorts) {
    this.#ports = ports;
    this.#endpoints = new Endpoints(
      endpoints.map((address) => [address, ports.open(address)]),
      Math.floor(ports.random() * endpoints.length),
    );
  }

  /** The greatest revision that a header showed; 0 before the first. */
  get seenRevision(): Revision {
    return this.#endpoints.seenRevision;
  }

  /**
   * Makes one call, repeated by the error table until `timeoutMs` is over. The first attempt may take `firstAttemptMs`: for
   * a call that a node holds on purpose.
   */
  call<C extends Call>(call: C, timeoutMs: number, firstAttemptMs = FIRST_ATTEMPT_MS): OpenCall<C> {
    return this.#start((end) => this.#run(call, timeoutMs, firstAttemptMs, end));
  }

  /** One attempt and no more: on the endpoint with this address, or on the one whose turn it is. */
  once<C extends Call>(call: C, timeoutMs: number, address?: string): OpenCall<C> {
    return this.#start((end) => {
      const endpoint =
        this.#endpoints.all.find((candidate) => candidate.address === address) ?? this.#endpoints.choose(this.#nowMs());
      return this.#send(endpoint, call, timeoutMs, (reply, sentAt) => {
        const judged = this.#judge(call, endpoint, reply, sentAt);
        end(judged.type === 'answer' ? judged : failed(judged.error));
      });
    });
  }

  /** Ends every open call with CLOSED and closes the connections. */
  close(): void {
    this.#closed = true;
    for (const cancel of [...this.#open]) cancel(closedError());
    for (const endpoint of this.#endpoints.all) endpoint.channel.close();
  }

  /** `begin` starts the work, which calls `end` at most once, and returns how to stop it. */
  #start<C extends Call>(begin: (end: (outcome: CallOutcome<C>) => void) => () => void): OpenCall<C> {
    if (this.#closed) return { result: Promise.resolve(failed(closedError())), cancel: () => undefined };
    let cancel: (error: FencepostError) => void = () => undefined;
    const result = new Promise<CallOutcome<C>>((resolve) => {
      let stop: () => void = () => undefined;
      const end = (outcome: CallOutcome<C>): void => {
        this.#open.delete(cancel);
        resolve(outcome);
      };
      cancel = (error) => {
        stop();
        end(failed(error));
      };
      this.#open.add(cancel);
      stop = begin(end);
    });
    return { result, cancel };
  }

  #run<C extends Call>(
    call: C,
    timeoutMs: number,
    firstAttemptMs: number,
    end: (outcome: CallOutcome<C>) => void,
  ): () => void {
    const endsAtMs = this.#nowMs() + timeoutMs;
    /** Endpoints of an older history, or of something else: a call that met no other ends. */
    const wrong = new Set<Endpoint>();
    let attempts = 0;
    let attemptMs = FIRST_ATTEMPT_MS;
    let unknown = false;
    /** Silences since a node last answered. */
    let silences = 0;
    let last: FencepostError | undefined;
    /** Why each endpoint that was asked said nothing, unless it did since. */
    const silence = new Map<Endpoint, string>();
    /** `last` is what a node said, not its silence. */
    let answeredLast = false;
    let stop: () => void = () => undefined;
    const fail = (error: FencepostError, revision = ZERO_REVISION): void => {
      end({ type: 'failed', error: unknown ? asUnknown(error) : error, revision });
    };
    const attempt = (): void => {
      const leftMs = endsAtMs - this.#nowMs();
      if (last !== undefined && leftMs < MIN_ATTEMPT_MS) {
        fail(last);
        return;
      }
      attempts++;
      const endpoint = this.#endpoints.choose(this.#nowMs());
      const limitMs = Math.min(attempts === 1 ? firstAttemptMs : attemptMs, leftMs);
      stop = this.#send(endpoint, call, limitMs, (reply, sentAt) => {
        const judged = this.#judge(call, endpoint, reply, sentAt);
        if (judged.type === 'answer') {
          end({ ...judged, earlierUnknown: unknown });
          return;
        }
        unknown ||= judged.error.outcome === 'unknown';
        const silent = reply.type === 'silent';
        if (silent) silence.set(endpoint, judged.error.message);
        else silence.delete(endpoint);
        const cut = silent && limitMs === leftMs;
        silences = silent ? silences + 1 : 0;
        // What a node said tells more than the silence of others, until all of them have been silent since.
        if (!answeredLast || !silent || (!cut && silences >= this.#endpoints.all.length)) {
          last = silent ? noAnswer(silence, judged.error) : judged.error;
          answeredLast = !silent;
        }
        if (judged.error.code === 'OLD_CLUSTER' || judged.error.code === 'UNEXPECTED_ANSWER') wrong.add(endpoint);
        if (judged.type === 'stop' || wrong.size === this.#endpoints.all.length) {
          fail(silent ? noAnswer(silence, judged.error) : judged.error, judged.revision);
          return;
        }
        // A slow cluster must not be asked ever more often.
        if (this.#nowMs() - sentAt.monotonicMs >= limitMs / 2 && limitMs <= attemptMs) {
          attemptMs = Math.min(attemptMs * 2, MAX_ATTEMPT_MS);
        }
        const pauseMs = this.#pauseMs(judged.delayMs, attempts);
        if (this.#nowMs() + pauseMs > endsAtMs - MIN_ATTEMPT_MS) fail(last ?? judged.error);
        else stop = this.#ports.timers.set(pauseMs, attempt);
      });
    };
    attempt();
    return () => {
      stop();
    };
  }

  /** The delay that a node asks for is meant for that node: in the first round another is tried soon. */
  #pauseMs(askedMs: number, attempts: number): number {
    const first = attempts < this.#endpoints.all.length;
    const delayMs = first ? Math.min(askedMs, ROUND_PAUSE_MS) : askedMs;
    const pauseMs = this.#endpoints.anyUsable(this.#nowMs()) ? delayMs : Math.max(delayMs, ROUND_PAUSE_MS);
    return pauseMs * (0.75 + this.#ports.random() / 2);
  }

  /** Sends with a limit of our own beside the channel's: nothing below is trusted to keep time. */
  #send(endpoint: Endpoint, call: Call, timeoutMs: number, done: (reply: Reply, sentAt: Moment) => void): () => void {
    const sentAt = this.#ports.timeline.now();
    let open = true;
    const finish = (reply: Reply): void => {
      if (!open) return;
      open = false;
      cancelTimer();
      done(reply, sentAt);
    };
    const cancelTimer = this.#ports.timers.set(timeoutMs, () => {
      const reached = giveUp();
      finish({ type: 'silent', reached, why: `no answer within ${Math.ceil(timeoutMs)} ms` });
    });
    const giveUp = endpoint.channel.send(call, timeoutMs, finish);
    return () => {
      if (!open) return;
      open = false;
      cancelTimer();
      giveUp();
    };
  }

  #judge<C extends Call>(call: C, endpoint: Endpoint, reply: Reply, sentAt: Moment): Judged<C> {
    const nowMs = this.#nowMs();
    switch (reply.type) {
      case 'answer': {
        const { header, answer, version } = reply;
        // A node tells its status also when it is of an older history; that is what its operator looks for.
        const lookedAt = call.type === 'getStatus' || call.type === 'getStateHash' ? undefined : header;
        const old = lookedAt === undefined ? undefined : this.#endpoints.learn(endpoint, lookedAt, nowMs);
        if (old !== undefined) return { type: 'retry', error: old, revision: ZERO_REVISION, delayMs: 0 };
        this.#endpoints.worked(endpoint);
        if (answers(call, answer)) {
          return { type: 'answer', answer, header, sentAt, version, earlierUnknown: false };
        }
        const error = new UnexpectedAnswerError(`${endpoint.address} answered ${call.type} with ${answer.type}.`);
        return { type: 'stop', error, revision: ZERO_REVISION };
      }
      case 'failure': {
        const { failure } = reply;
        const error = errorOf(failure, endpoint.address);
        const revision = (failure.revision ?? 0) as Revision;
        this.#endpoints.failed(endpoint, failure.reason, nowMs);
        const repeat = ERRORS[failure.reason].retryable && (failure.outcome === 'not-done' || mayRepeat(call));
        if (!repeat) return { type: 'stop', error, revision };
        return { type: 'retry', error, revision, delayMs: reply.retryDelayMs };
      }
      case 'silent': {
        this.#endpoints.silent(endpoint, nowMs);
        const outcome = reply.reached ? 'unknown' : 'not-done';
        const error = new UnreachableError(`${endpoint.address}: ${reply.why}`, { outcome });
        const repeat = !reply.reached || mayRepeat(call);
        return { type: repeat ? 'retry' : 'stop', error, revision: ZERO_REVISION, delayMs: 0 };
      }
      case 'foreign': {
        this.#endpoints.silent(endpoint, nowMs);
        const error = new UnexpectedAnswerError(`${endpoint.address}: ${reply.why}.`);
        return { type: mayRepeat(call) ? 'retry' : 'stop', error, revision: ZERO_REVISION, delayMs: 0 };
      }
    }
  }

  #nowMs(): number {
    return this.#ports.timeline.now().monotonicMs;
  }
}

type Judged<C extends Call> =
  | Answered<C>
  | {
      readonly type: 'retry';
      readonly error: FencepostError;
      readonly revision: Revision;
      readonly delayMs: number;
    }
  | { readonly type: 'stop'; readonly error: FencepostError; readonly revision: Revision };

/** Calls that may be repeated though the outcome of the attempt before is unknown: an id makes the copies one. */
function mayRepeat(call: Call): boolean {
  switch (call.type) {
    case 'acquire':
    case 'renew':
    case 'release':
    case 'withdraw':
    case 'verify':
    case 'get':
    case 'list':
    case 'getStatus':
    case 'getStateHash':
      return true;
    // A copy that comes late would act on what was done since, or tell the operator that it had no effect.
    case 'forceRelease':
    case 'transferLeadership':
    case 'changeLimits':
      return false;
  }
}

function failed(error: FencepostError): Failed {
  return { type: 'failed', error, revision: ZERO_REVISION };
}

/** One error for the silences of all endpoints that were asked. */
function noAnswer(silence: ReadonlyMap<Endpoint, string>, last: FencepostError): FencepostError {
  return retold(last, `no node answered (${[...silence.values()].join('; ')})`, {
    outcome: last.outcome,
  });
}

function asUnknown(error: FencepostError): FencepostError {
  return error.outcome === 'unknown' ? error : retold(error, error.message, { outcome: 'unknown', cause: error });
}

function closedError(): FencepostError {
  return new ClosedError('The client was closed.');
}

function answers<C extends Call>(call: C, answer: Answer): answer is AnswerTo<C> {
  return answer.type === call.type;
}
