/**
 * How a session waits in queues: it calls again and again with one id, to whatever node; some come back late, some give
 * up in the middle and say so, some are gone without a word.
 */
import type { AcquireCall } from '../../../src/base/api.js';
import { between, chance, skewed, weighted } from '../chance.js';
import type { Reply } from '../../../src/client/channel.js';
import type { ClientPorts } from './client-ports.js';

/** Ids that one session waits with at once. */
const MAX_WAITING = 4;

/** What becomes of a wait, with how often. */
const WAYS = [
  /** Called for at once, until it is over. */
  ['faithful', 6],
  /** Called for after a pause: detached meanwhile, and now and then forgotten by the cluster. */
  ['late', 3],
  /** Given up before it is over, with a Withdraw. */
  ['withdrawn', 2],
  /** Never called for again. */
  ['gone', 1],
] as const;

/** What a session does for its waits. */
export interface QueueingActs {
  readonly after: (ms: number, run: () => void) => void;
  readonly again: (call: AcquireCall) => void;
  readonly withdraw: (call: AcquireCall) => void;
}

interface Wait {
  readonly way: (typeof WAYS)[number][0];
  /** Nobody calls for it after this. */
  readonly untilMs: number;
  calls: number;
}

/** See the head of the file. */
export class Queueing {
  readonly #ports: ClientPorts;
  readonly #acts: QueueingActs;
  readonly #waits = new Map<string, Wait>();

  constructor(ports: ClientPorts, acts: QueueingActs) {
    this.#ports = ports;
    this.#acts = acts;
  }

  /** The first call of a wait is about to leave. */
  begin(call: AcquireCall): void {
    const { random } = this.#ports.surroundings;
    const { requestId, waitMs } = call;
    if (this.#waits.size >= MAX_WAITING) return;
    const way = weighted(random, WAYS);
    const wait: Wait = { way, untilMs: this.#ports.machine.uptimeMs + 1.5 * waitMs + 500, calls: 1 };
    this.#waits.set(requestId, wait);
    if (way !== 'withdrawn') return;
    this.#acts.after(skewed(random, 1, waitMs), () => {
      if (this.#waits.get(requestId) !== wait) return;
      this.#waits.delete(requestId);
      this.#ports.surroundings.coverage.count('wait given up');
      this.#acts.withdraw(call);
    });
  }

  /** A call was answered, or failed, or was given up (undefined). */
  told(call: AcquireCall, reply: Reply | undefined): void {
    const { surroundings, machine, parameters } = this.#ports;
    const { requestId } = call;
    const wait = this.#waits.get(requestId);
    if (wait === undefined) return;
    const { random, coverage } = surroundings;
    const over = reply?.type === 'answer' && reply.answer.type === 'acquire' && reply.answer.outcome.type !== 'queued';
    if (over || wait.way === 'gone' || machine.uptimeMs >= wait.untilMs) {
      this.#waits.delete(requestId);
      if (!over) coverage.count('wait left without a word');
      return;
    }
    wait.calls++;
    const late = wait.way === 'late' && chance(random, 500);
    const pauseMs = late ? skewed(random, 5, parameters.ttlMs[0]) : between(random, 0, 10);
    this.#acts.after(pauseMs, () => {
      if (this.#waits.get(requestId) !== wait) return;
      coverage.count(late ? 'called again late' : 'called again');
      this.#acts.again(call);
    });
  }

  /** The session is another, or does nothing any more. */
  forget(): void {
    this.#waits.clear();
  }
}
