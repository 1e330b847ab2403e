/**
 * What the client library promises of each request that it makes (design 9). SEEN: it says which revision its client had
 * been shown, so that once-only holds however late a copy comes (contract 5; F6). ORPHAN: one whose outcome it does not
 * know is withdrawn, so that nobody waits for a lease that nobody has. A process that was killed promises nothing.
 */
import type { AcquireAnswer } from '../../../src/base/api.js';
import type { Attempt, AttemptObserver, Told } from '../clients/attempts.js';
import type { Coverage } from '../coverage.js';
import type { Report } from '../observation.js';

/** One request id of a client. */
interface Request {
  readonly process: string;
  readonly client: string;
  readonly domain: string;
  /** Some copy of it may have reached a log, and its client was not told what came of it. */
  unknown: boolean;
  /**
   * An answer settled it: every copy that comes later is answered likewise. That another holds the domain does not, nor does
   * a place in its queue.
   */
  settled: boolean;
  withdrawn: boolean;
}

/** See the head of the file. */
export class Library implements AttemptObserver {
  readonly #report: Report;
  readonly #coverage: Coverage;
  readonly #runsIt: (client: string) => boolean;
  readonly #requests = new Map<string, Request>();
  readonly #killed = new Set<string>();

  /** `runsIt`: whether a machine runs the library; the others speak for themselves. */
  constructor(report: Report, coverage: Coverage, runsIt: (client: string) => boolean) {
    this.#report = report;
    this.#coverage = coverage;
    this.#runsIt = runsIt;
  }

  sent({ client, process, call, sentAt }: Attempt): void {
    if (call.type === 'withdraw') {
      const request = this.#requests.get(call.requestId);
      if (request !== undefined) request.withdrawn = true;
      return;
    }
    if (call.type !== 'acquire' || !this.#runsIt(client)) return;
    const { requestId, domain, seenRevision } = call;
    if (seenRevision === 0) {
      const text = `${sentAt.toFixed(2)}: ${client} asks for ${domain} and does not say which revision it has seen`;
      this.#report({ code: 'SEEN', text });
    }
    if (this.#requests.has(requestId)) return;
    this.#requests.set(requestId, { process, client, domain, unknown: false, settled: false, withdrawn: false });
  }

  told({ call, reply }: Told): void {
    const request = call.type === 'acquire' ? this.#requests.get(call.requestId) : undefined;
    if (request === undefined) return;
    switch (reply.type) {
      case 'answer':
        if (reply.answer.type === 'acquire') answered(request, reply.answer.outcome);
        return;
      case 'failure':
        request.unknown ||= reply.failure.outcome === 'unknown';
        return;
      case 'silent':
        request.unknown ||= reply.reached;
        return;
      case 'foreign':
        request.unknown = true;
    }
  }

  dropped({ call }: Attempt, reached: boolean): void {
    const request = call.type === 'acquire' ? this.#requests.get(call.requestId) : undefined;
    if (request !== undefined) request.unknown ||= reached;
  }

  killed(process: string): void {
    this.#killed.add(process);
  }

  /** The clients have ended: what they do not know is withdrawn by now. */
  finish(): void {
    for (const [id, { process, client, domain, unknown, settled, withdrawn }] of this.#requests) {
      if (!unknown || settled) continue;
      if (withdrawn) this.#coverage.count('request of unknown outcome withdrawn');
      else if (!this.#killed.has(process)) {
        this.#report({ code: 'ORPHAN', text: `${client} does not know what came of ${id} of ${domain}, and left it` });
      }
    }
  }
}

function answered(request: Request, outcome: AcquireAnswer['outcome']): void {
  switch (outcome.type) {
    case 'queued':
      request.unknown = true;
      return;
    case 'notGranted':
      request.settled ||= outcome.reason === 'wait_over';
      return;
    case 'granted':
    case 'ended':
      request.settled = true;
  }
}
