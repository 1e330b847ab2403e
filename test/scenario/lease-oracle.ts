/**
 * What must hold for leases, checked from outside: LEASE (tokens of a domain only grow; nothing ends by time before
 * the safe deadline of the client that was told it holds it), ONCE (one request id, one token) and equal states at
 * equal positions of the log.
 */
import type { Domain } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { finishedLease, leaseOf } from '../../src/lease/lookup.js';
import type { State } from '../../src/lease/state.js';
import { hashState } from '../../src/lease/hash.js';

/** The moment after which a client that sent at `sentAt` must not act as holder (contract 3). */
export function safeDeadline(sentAt: number, ttlMs: number): number {
  return sentAt + ttlMs * 0.99 - Math.max(50, ttlMs * 0.02);
}

interface Held {
  readonly domain: string;
  readonly token: number;
  until: number;
}

/** See the file's comment. */
export class LeaseOracle {
  readonly faults: string[] = [];
  readonly #held = new Map<number, Held>();
  readonly #answered = new Map<string, readonly { readonly token: number; readonly at: number }[]>();
  readonly #granted = new Map<string, number>();
  readonly #hashes = new Map<number, string>();

  /** A client was told that it holds the lease, and counts from `sentAt`. */
  held(domain: string, token: number, sentAt: number, ttlMs: number, now: number): void {
    const until = safeDeadline(sentAt, ttlMs);
    // An answer after the client's own deadline does not count.
    if (until < now) return;
    const before = this.#held.get(token);
    if (before !== undefined) before.until = Math.max(before.until, until);
    else this.#held.set(token, { domain, token, until });
  }

  /** An acquire that was sent at `sentAt` is answered by a grant. A late answer may tell of an older grant, a late call not. */
  granted(request: string, domain: string, token: number, sentAt: number, now: number): void {
    const known = this.#granted.get(request);
    if (known !== undefined && known !== token) {
      this.faults.push(`ONCE: request ${request} was granted ${known} and ${token}`);
    }
    this.#granted.set(request, token);
    const before = this.#answered.get(domain) ?? [];
    const greater = before.find((answer) => answer.token > token && answer.at < sentAt);
    if (greater !== undefined) {
      this.faults.push(`LEASE: an acquire of ${domain} is granted ${token} after ${greater.token} was told`);
    }
    this.#answered.set(domain, [...before, { token, at: now }]);
  }

  /** A new history begins: positions are counted anew, and the leases of the former one are gone. Tokens go on. */
  begunAnew(): void {
    this.#hashes.clear();
    this.#held.clear();
  }

  /** A member has applied up to `applied`. */
  applied(name: string, state: State, applied: number, now: number): void {
    const hash = hashState(state);
    const known = this.#hashes.get(applied);
    if (known === undefined) this.#hashes.set(applied, hash);
    else if (known !== hash) this.faults.push(`SMS: ${name} has another state at ${applied} than a member before`);
    for (const { domain, token, until } of this.#held.values()) {
      if (state.revision < token || leaseOf(state, domain as Domain)?.token === token) continue;
      // The first member that has applied the end still knows why; it counts once.
      this.#held.delete(token);
      if (
        now >= until ||
        finishedLease(state, { domain: domain as Domain, token: token as Revision })?.reason !== 'expired'
      )
        continue;
      this.faults.push(
        `LEASE: at ${name} ${domain} ${token} has expired at ${now} ms; its holder is safe until ${until} ms`,
      );
    }
  }
}
