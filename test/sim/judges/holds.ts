/**
 * Who may act as holder, by the five rules of `lease.proto`, in true time: OVERLAP (two holders of one domain within
 * one incarnation), EARLY (a lease ended by time before its holder's safe deadline) and DEADLINE (a client claims a
 * lease that the rules have taken from it). Sound while every clock runs within the drift that contract 3 allows.
 */
import type { AttemptObserver, Attempt, Told } from '../clients/attempts.js';
import type { Coverage } from '../coverage.js';
import type { Report } from '../observation.js';

/** True milliseconds of rounding that are no fault. */
const ROUNDING_MS = 0.01;

/** How long after a deadline its holder is asked whether it still claims the lease: with and without slack, in true milliseconds. */
const AFTER_MS = [2, 30] as const;

/** Milliseconds on the client's own clock from before the send of the answered call (contract 3; rule 1 with the margin of design 9). */
export function safeHoldMs(ttlMs: number): number {
  return ttlMs * 0.99 - Math.max(50, ttlMs * 0.02);
}

/** One lease in the hands of one client. */
interface Hold {
  readonly domain: string;
  readonly token: number;
  readonly client: string;
  ttlMs: number;
  /** From the answer … */
  from: number;
  /** … to the safe deadline, in true time. */
  until: number;
  /** The holder gave it back, or was told that it is over. */
  over: number;
  /** An operator asked to end it: from then on it may end under its holder's feet. */
  forced: number;
}

/** A client says that it holds a lease now. */
export interface Claim {
  readonly client: string;
  readonly incarnation: string;
  readonly domain: string;
  readonly token: number;
  readonly at: number;
  /** By how much the client's clocks may have been read too low, in milliseconds: steps of the uptime after a suspend. */
  readonly slackMs: number;
}

/** See the head of the file. */
export class Holds implements AttemptObserver {
  readonly #report: Report;
  readonly #coverage: Coverage;
  /** By incarnation and domain: few at a time, newest last. */
  readonly #holds = new Map<string, Hold[]>();
  readonly #over = new Map<string, number>();
  readonly #forced = new Map<string, number>();
  readonly #withdrawn = new Map<string, number>();
  readonly #expired = new Map<string, number>();
  readonly #ids = new Map<string, Hold>();
  readonly #lookAt: (at: number) => void;

  /** `lookAt`: everybody is to be asked at that moment what they claim; a claim past its deadline shows then. */
  constructor(report: Report, coverage: Coverage, lookAt: (at: number) => void = () => undefined) {
    this.#report = report;
    this.#coverage = coverage;
    this.#lookAt = lookAt;
  }

  sent({ call, sentAt }: Attempt): void {
    switch (call.type) {
      case 'release':
        this.#end(this.#over, call.lease.domain, call.lease.token, sentAt);
        return;
      case 'withdraw': {
        this.#withdrawn.set(call.requestId, Math.min(sentAt, this.#withdrawn.get(call.requestId) ?? Infinity));
        const hold = this.#ids.get(call.requestId);
        if (hold !== undefined) this.#end(this.#over, hold.domain, hold.token, sentAt);
        return;
      }
      case 'forceRelease':
        this.#end(this.#forced, call.domain, call.token, sentAt);
        return;
      case 'acquire':
      case 'renew':
      case 'verify':
      case 'get':
      case 'list':
      case 'transferLeadership':
      case 'changeLimits':
      case 'getStatus':
      case 'getStateHash':
        return;
    }
  }

  told(attempt: Told): void {
    const { call, reply } = attempt;
    if (reply.type !== 'answer' || reply.header === undefined) return;
    const { answer, header } = reply;
    if (call.type === 'acquire' && answer.type === 'acquire' && answer.outcome.type === 'granted') {
      const { domain, token, ttlMs } = answer.outcome.lease;
      this.#confirmed(attempt, header.incarnation, domain, token, ttlMs, call.requestId);
    }
    if (call.type === 'renew' && answer.type === 'renew') {
      for (const [at, { domain, token }] of call.leases.entries()) {
        const result = answer.results[at];
        if (result?.type === 'live') this.#confirmed(attempt, header.incarnation, domain, token, result.ttlMs, '');
        else if (result?.type === 'ended') this.#end(this.#over, domain, token, attempt.receivedAt);
      }
    }
  }

  /** A member has applied the end of a lease by time; the first one counts. */
  expired(domain: string, token: number, at: number): void {
    const key = `${domain} ${token}`;
    if (this.#expired.has(key)) return;
    this.#expired.set(key, at);
    for (const hold of this.#named(domain, token)) {
      if (at < hold.until - ROUNDING_MS && at < hold.over) this.#early(hold, at);
    }
  }

  /** A client says that it holds a lease. */
  claimed({ client, incarnation, domain, token, at, slackMs }: Claim): void {
    this.#coverage.count('claim judged');
    const holds = this.#holds.get(`${incarnation} ${domain}`) ?? [];
    const own = holds.find((hold) => hold.token === token);
    if (own === undefined) {
      this.#fault('DEADLINE', at, `${client} claims ${domain} ${token}, which nobody granted it`);
      return;
    }
    if (at > own.until + slackMs + ROUNDING_MS) {
      const text = `${client} claims ${domain} ${token}; its safe deadline was ${own.until.toFixed(2)}`;
      this.#fault('DEADLINE', at, text);
    }
    if (own.forced <= at) return;
    for (const other of holds) {
      if (other.token === token || other.from > at || at >= endOf(other)) continue;
      this.#fault('OVERLAP', at, `${client} claims ${domain} ${token}, which ${textOf(other)} holds`);
    }
  }

  /** True when the rules let this client act as holder at `at`, and nobody has asked to end its lease. */
  holds(incarnation: string, domain: string, token: number, at: number): boolean {
    const hold = this.#holds.get(`${incarnation} ${domain}`)?.find((each) => each.token === token);
    return hold !== undefined && hold.from <= at && at < endOf(hold);
  }

  #confirmed(
    { client, rate, sentAt, receivedAt }: Told,
    incarnation: string,
    domain: string,
    token: number,
    ttlMs: number,
    requestId: string,
  ): void {
    const until = sentAt + safeHoldMs(ttlMs) / rate;
    const key = `${incarnation} ${domain}`;
    let holds = this.#holds.get(key);
    if (holds === undefined) this.#holds.set(key, (holds = []));
    let hold = holds.find((each) => each.token === token);
    const acquired = requestId !== '';
    if (receivedAt >= until || (!acquired && (hold === undefined || receivedAt >= hold.until))) {
      this.#coverage.count(acquired ? 'grant answered after its deadline' : 'renewal answered after deadline');
      return;
    }
    if (hold === undefined) {
      const over = Math.min(
        this.#over.get(`${domain} ${token}`) ?? Infinity,
        this.#withdrawn.get(requestId) ?? Infinity,
      );
      const forced = this.#forced.get(`${domain} ${token}`) ?? Infinity;
      hold = { domain, token, client, ttlMs, from: receivedAt, until, over, forced };
      holds.push(hold);
      for (const afterMs of AFTER_MS) this.#lookAt(until + afterMs);
    } else if (until <= hold.until) return;
    else {
      // A grant that is told again after the deadline was confirmed anew: it is held again, with a gap.
      if (receivedAt >= hold.until) hold.from = receivedAt;
      hold.until = until;
      for (const afterMs of AFTER_MS) this.#lookAt(until + afterMs);
    }
    if (acquired) this.#ids.set(requestId, hold);
    const expiredAt = this.#expired.get(`${domain} ${token}`);
    if (expiredAt !== undefined && expiredAt < until - ROUNDING_MS && receivedAt < hold.over)
      this.#early(hold, expiredAt);
    for (const other of holds) {
      if (other === hold || Math.max(hold.from, other.from) >= Math.min(endOf(hold), endOf(other))) continue;
      this.#fault('OVERLAP', receivedAt, `${domain} is held by ${textOf(hold)} and by ${textOf(other)}`);
    }
    // What is past its time can overlap nothing that comes. An operator may end leases faster than their holders hear.
    while (holds.length > 8 && (holds[0]?.until ?? Infinity) < receivedAt) holds.shift();
  }

  #end(ends: Map<string, number>, domain: string, token: number, at: number): void {
    const key = `${domain} ${token}`;
    const first = Math.min(at, ends.get(key) ?? Infinity);
    ends.set(key, first);
    for (const hold of this.#named(domain, token)) {
      if (ends === this.#forced) hold.forced = Math.min(hold.forced, at);
      else hold.over = Math.min(hold.over, at);
    }
  }

  /** The lease, in whatever incarnation it was granted. */
  *#named(domain: string, token: number): Generator<Hold> {
    for (const holds of this.#holds.values()) {
      for (const hold of holds) if (hold.domain === domain && hold.token === token) yield hold;
    }
  }

  #early(hold: Hold, at: number): void {
    this.#fault('EARLY', at, `${hold.domain} ${hold.token} has expired; ${textOf(hold)}`);
  }

  #fault(code: string, at: number, text: string): void {
    this.#report({ code, text: `${at.toFixed(2)}: ${text}` });
  }
}

function endOf({ until, over, forced }: Hold): number {
  return Math.min(until, over, forced);
}

function textOf({ token, client, from, until }: Hold): string {
  return `${client} (token ${token}, safe from ${from.toFixed(2)} to ${until.toFixed(2)})`;
}
