/** Cool-downs at one leader (design 7): each domain stays closed for its full time, by this leader's clock, and no longer. */
import type { Command } from '../../../src/lease/commands.js';
import type { LeaseModel } from './lease-model.js';

/** Rounding of doubles. */
const EPSILON_MS = 1e-6;
/** What is due is looked at in steps of so many milliseconds, at a tick, and what was refused is tried again after so many. */
const LATE_MS = 60;

interface Closed {
  readonly since: number;
  readonly until: number;
  /** The EndCoolDown on its way. */
  opening: number | undefined;
  /** The step at whose end it was found overdue. */
  overdueIn: number | undefined;
}

/** See the head of the file. One for each leadership, from the apply of its no-op. */
export class CoolDowns {
  readonly #term: number;
  readonly #closed = new Map<string, Closed>();

  constructor(term: number, leases: LeaseModel, nowMs: number) {
    this.#term = term;
    this.follow(leases, nowMs);
  }

  /** An entry was applied. */
  follow(leases: LeaseModel, nowMs: number): void {
    for (const [domain, { since }] of this.#closed) {
      if (leases.closed.get(domain)?.since !== since) this.#closed.delete(domain);
    }
    for (const { domain, since, ms } of leases.closed.values()) {
      if (this.#closed.has(domain)) continue;
      this.#closed.set(domain, { since, until: nowMs + ms, opening: undefined, overdueIn: undefined });
    }
  }

  /** This leader appended an EndCoolDown at `index`. */
  proposed(
    { term, domains }: Extract<Command, { readonly type: 'endCoolDown' }>,
    index: number,
    nowMs: number,
    fail: (text: string) => void,
  ): void {
    if (term !== this.#term) fail(`proposes an EndCoolDown of term ${term} in term ${this.#term}`);
    for (const { domain, since } of domains) {
      const closed = this.#closed.get(domain);
      if (closed?.since !== since) {
        fail(`opens ${domain}, which is not closed since ${since}`);
        continue;
      }
      if (nowMs < closed.until - EPSILON_MS) fail(`opens ${domain} ${closed.until - nowMs} ms early`);
      if (closed.opening !== undefined) fail(`opens ${domain} twice`);
      closed.opening = index;
    }
  }

  /** At the end of a step; `quiet`: since when it can propose what it likes. */
  checkOverdue(step: number, nowMs: number, quietAt: number, ticked: boolean, fail: (text: string) => void): void {
    for (const [domain, closed] of this.#closed) {
      const { until, opening, overdueIn } = closed;
      const over = opening === undefined && nowMs > Math.max(until, quietAt) + LATE_MS;
      closed.overdueIn = over ? (overdueIn ?? step) : undefined;
      if (over && ticked && overdueIn !== undefined && overdueIn < step) {
        fail(`keeps ${domain} closed, ${nowMs - until} ms longer than it asked for`);
      }
    }
  }
}
