/**
 * TOKEN: of two grants in one domain the later has the greater token (contract 1), and the resource refuses nobody who
 * may act as holder. SHARED: no two requests have one (domain, token). ONCE: one request, one token within an
 * incarnation, and none after it was withdrawn (contract 5). REVIVED: what was over is not live again.
 */
import type { LeaseRef } from '../../../src/base/api.js';
import type { Attempt, AttemptObserver, Told } from '../clients/attempts.js';
import type { Coverage } from '../coverage.js';
import type { Report } from '../observation.js';

/** A grant that somebody was told of. */
interface ToldGrant {
  readonly token: number;
  readonly at: number;
  readonly incarnation: string;
}

/** What is known of a request id. */
interface Request {
  /** Sent at least once without a revision: then once-only reaches only as far back as the table. */
  unseen: boolean;
  readonly grants: Map<string, number>;
  /** The revision that the answer to its withdrawal showed, by incarnation. */
  readonly withdrawn: Map<string, number>;
}

/** See the head of the file. */
export class Tokens implements AttemptObserver {
  readonly #report: Report;
  readonly #coverage: Coverage;
  /** By domain; tokens rise, unless one fell and was reported. */
  readonly #told = new Map<string, ToldGrant[]>();
  readonly #owners = new Map<string, string>();
  readonly #requests = new Map<string, Request>();
  /** When somebody was first told that a lease is over. */
  readonly #over = new Map<string, number>();
  /** Incarnations that began behind an older one: nothing is promised between them and what came before. */
  readonly #behind = new Set<string>();

  constructor(report: Report, coverage: Coverage) {
    this.#report = report;
    this.#coverage = coverage;
  }

  /** A history begins; `ahead`: its base is above everything issued before under the cluster's name. */
  begins(incarnation: string, ahead: boolean): void {
    if (!ahead) this.#behind.add(incarnation);
  }

  sent({ call }: Attempt): void {
    if (call.type === 'acquire' && call.seenRevision === 0) this.#request(call.requestId).unseen = true;
  }

  told(attempt: Told): void {
    const { call, reply, receivedAt, sentAt } = attempt;
    if (reply.type === 'foreign')
      this.#fault('CODEC', receivedAt, `${attempt.node} answers ${call.type}: ${reply.why}`);
    if (reply.type === 'failure' && reply.failure.reason === 'INTERNAL') {
      this.#fault('INTERNAL', receivedAt, `${attempt.node} answers ${call.type}: ${reply.failure.message}`);
    }
    if (reply.type !== 'answer') return;
    const { answer, header } = reply;
    if (answer.type !== call.type) {
      this.#fault('CODEC', receivedAt, `${attempt.node} answers ${call.type} with ${answer.type}`);
      return;
    }
    if (header === undefined) return;
    const { incarnation } = header;
    if (call.type === 'acquire' && answer.type === 'acquire') {
      if (answer.requestId !== call.requestId) {
        this.#fault('CODEC', receivedAt, `${call.requestId} is answered as ${answer.requestId}`);
      }
      if (answer.outcome.type === 'granted') {
        const { lease } = answer.outcome;
        this.granted(incarnation, lease.domain, lease.token, call.requestId, receivedAt);
        this.#inOrder(incarnation, lease, sentAt, receivedAt);
        this.#alive(lease, sentAt, receivedAt);
      } else if (answer.outcome.type === 'ended' && answer.outcome.ended.lease !== undefined) {
        this.#isOver(answer.outcome.ended.lease, receivedAt);
      }
    }
    if (call.type === 'renew' && answer.type === 'renew') {
      for (const [at, ref] of call.leases.entries()) {
        const state = answer.results[at];
        if (state?.type === 'live') this.#alive(ref, sentAt, receivedAt);
        else if (state !== undefined) this.#isOver(ref, receivedAt);
      }
    }
    if (call.type === 'release') this.#isOver(call.lease, receivedAt);
    if (call.type === 'withdraw') {
      const { withdrawn } = this.#request(call.requestId);
      const before = withdrawn.get(incarnation) ?? 0;
      // The first answer is the earliest proof; a later one shows a greater revision.
      if (before === 0) withdrawn.set(incarnation, header.revision);
    }
  }

  /** A request was granted, as an answer or a member's state shows. */
  granted(incarnation: string, domain: string, token: number, requestId: string, at: number): void {
    const owner = this.#owners.get(`${domain} ${token}`);
    if (owner !== undefined && owner !== requestId) {
      this.#fault('SHARED', at, `${domain} ${token} was granted to ${owner} and to ${requestId}`);
    }
    this.#owners.set(`${domain} ${token}`, requestId);
    const request = this.#request(requestId);
    const known = request.grants.get(incarnation);
    if (request.unseen) {
      if (known !== undefined && known !== token) this.#coverage.count('id without seen_revision granted again');
    } else {
      if (known !== undefined && known !== token) {
        this.#fault('ONCE', at, `request ${requestId} was granted ${known} and ${token} of ${domain}`);
      }
      const withdrawn = request.withdrawn.get(incarnation);
      if (withdrawn !== undefined && token > withdrawn) {
        this.#fault('ONCE', at, `request ${requestId}, withdrawn by ${withdrawn}, was granted ${token} of ${domain}`);
      }
    }
    request.grants.set(incarnation, token);
  }

  /** The resource refused somebody who may act as holder of a lease of the newest history. */
  refused(incarnation: string, domain: string, token: number, fence: number, at: number): void {
    if (this.#behind.size > 0) {
      this.#coverage.count('token fell behind an older history');
      return;
    }
    const text = `the resource refuses ${token} of ${domain}, which is held in ${incarnation}, because of ${fence}`;
    this.#fault('TOKEN', at, text);
  }

  #inOrder(incarnation: string, { domain, token }: LeaseRef, sentAt: number, at: number): void {
    let told = this.#told.get(domain);
    if (told === undefined) this.#told.set(domain, (told = []));
    for (let place = told.length - 1; place >= 0; place--) {
      const before = told[place];
      if (before === undefined || before.token <= token) break;
      if (before.at >= sentAt) continue;
      if (before.incarnation !== incarnation && this.#behind.size > 0) {
        this.#coverage.count('token fell behind an older history');
      } else this.#fault('TOKEN', at, `${domain} is granted ${token} after ${before.token} was told`);
      break;
    }
    const last = told.at(-1);
    if (last === undefined || last.token < token) told.push({ token, at, incarnation });
  }

  #alive(ref: LeaseRef, sentAt: number, at: number): void {
    const over = this.#over.get(key(ref));
    if (over !== undefined && over < sentAt) {
      this.#fault(
        'REVIVED',
        at,
        `${ref.domain} ${ref.token} is live, though it was said at ${over.toFixed(2)} to be over`,
      );
    }
  }

  #isOver(ref: LeaseRef, at: number): void {
    this.#over.set(key(ref), Math.min(at, this.#over.get(key(ref)) ?? Infinity));
  }

  #request(id: string): Request {
    let request = this.#requests.get(id);
    if (request === undefined) {
      request = { unseen: false, grants: new Map(), withdrawn: new Map() };
      this.#requests.set(id, request);
    }
    return request;
  }

  #fault(code: string, at: number, text: string): void {
    this.#report({ code, text: `${at.toFixed(2)}: ${text}` });
  }
}

function key({ domain, token }: LeaseRef): string {
  return `${domain} ${token}`;
}
