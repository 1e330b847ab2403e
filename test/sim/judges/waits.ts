/**
 * WAIT: who is told that its wait is over has waited for as long as it asked for, and is granted nothing any more. COOL: a
 * domain that was closed by an expiry is not granted before its cool-down is over, by any clock that runs true to 1 %.
 */
import { CLOCK_DRIFT } from '../../../src/base/limits.js';
import type { Attempt, AttemptObserver, Told } from '../clients/attempts.js';
import type { Coverage } from '../coverage.js';
import type { Report } from '../observation.js';

/** True milliseconds of rounding that are no fault. */
const ROUNDING_MS = 0.01;

interface Wait {
  readonly sentAt: number;
  /** The shortest that any of its calls asked for. */
  leastMs: number;
  /** The revision at which it was told that it is over, by incarnation. */
  readonly over: Map<string, number>;
}

/** See the head of the file. */
export class Waits implements AttemptObserver {
  readonly #report: Report;
  readonly #coverage: Coverage;
  readonly #waits = new Map<string, Wait>();
  /** What each lease asked for, by incarnation, domain and token, and when what it left is open again. */
  readonly #coolDowns = new Map<string, number>();
  readonly #closedUntil = new Map<string, number>();

  constructor(report: Report, coverage: Coverage) {
    this.#report = report;
    this.#coverage = coverage;
  }

  sent({ call, sentAt }: Attempt): void {
    if (call.type !== 'acquire') return;
    const wait = this.#waits.get(call.requestId);
    if (wait === undefined) this.#waits.set(call.requestId, { sentAt, leastMs: call.waitMs, over: new Map() });
    else wait.leastMs = Math.min(wait.leastMs, call.waitMs);
  }

  told({ call, reply, receivedAt }: Told): void {
    if (call.type !== 'acquire' || reply.type !== 'answer' || reply.answer.type !== 'acquire') return;
    const { outcome } = reply.answer;
    const wait = this.#waits.get(call.requestId);
    if (wait === undefined || reply.header === undefined) return;
    const { incarnation, revision } = reply.header;
    if (outcome.type === 'queued') this.#coverage.count('told to be queued');
    if (outcome.type === 'granted') {
      const over = wait.over.get(incarnation);
      // Ids that came without a revision are remembered only as far back as the table reaches.
      if (over !== undefined && outcome.lease.token > over && call.seenRevision > 0) {
        this.#fault('WAIT', receivedAt, `request ${call.requestId} is granted, and was over at ${over}`);
      }
      return;
    }
    const left = outcome.type === 'ended' && outcome.ended.reason === 'left_queue';
    const waitOver = outcome.type === 'notGranted' && outcome.reason === 'wait_over';
    if (!left && !waitOver) return;
    if (!wait.over.has(incarnation)) wait.over.set(incarnation, revision);
    this.#coverage.count(left ? 'told to have left the queue' : 'told that the wait is over');
    const waitedMs = receivedAt - wait.sentAt;
    if (waitOver && waitedMs < wait.leastMs / (1 + CLOCK_DRIFT) - ROUNDING_MS) {
      this.#fault('WAIT', receivedAt, `request ${call.requestId} is told after ${waitedMs} ms that its wait is over`);
    }
  }

  /** A lease was granted, as the first member to apply it shows. */
  granted(
    incarnation: string,
    { domain, token, coolDownMs }: { readonly domain: string; readonly token: number; readonly coolDownMs: number },
    at: number,
  ): void {
    const until = this.#closedUntil.get(`${incarnation} ${domain}`) ?? 0;
    if (at < until - ROUNDING_MS) {
      this.#fault('COOL', at, `${domain} is granted ${(until - at).toFixed(2)} ms before its cool-down is over`);
    }
    if (coolDownMs > 0) this.#coolDowns.set(`${incarnation} ${domain} ${token}`, coolDownMs);
  }

  /** A lease has ended by time, as the first member to apply it shows. */
  expired(incarnation: string, domain: string, token: number, at: number): void {
    const ms = this.#coolDowns.get(`${incarnation} ${domain} ${token}`);
    if (ms === undefined) return;
    this.#coverage.count('cool-down begun');
    this.#closedUntil.set(`${incarnation} ${domain}`, at + ms / (1 + CLOCK_DRIFT));
  }

  #fault(code: string, at: number, text: string): void {
    this.#report({ code, text: `${at.toFixed(2)}: ${text}` });
  }
}
