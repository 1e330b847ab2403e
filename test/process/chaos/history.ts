/** The whole history of one domain, for the judges of `test/support/history`. */
import type { Operation, Outcome } from '../../support/history/operations.js';
import { judge } from '../../support/history/judge.js';
import type { Verdict } from '../../support/history/judge.js';
import type { Began, Ended } from './events.js';

/** Steps of one search. The proxies of the run stand still meanwhile, so it may not take long. */
const BUDGET = 300_000;

/** Gathers the calls on one domain. */
export class DomainHistory {
  readonly #began = new Map<string, Began>();
  readonly #ended = new Map<string, Ended>();

  /** Calls that were begun. */
  get size(): number {
    return this.#began.size;
  }

  began(event: Began): void {
    this.#began.set(event.op, event);
  }

  ended(event: Ended): void {
    this.#ended.set(event.op, event);
  }

  /** Looks for an order in which the calls can have taken effect, and for what no order can excuse. */
  judge(): Verdict {
    const operations = [...this.#began.values()].map((event) => operationOf(event, this.#ended.get(event.op)));
    return judge(operations, undefined, BUDGET);
  }
}

function operationOf({ actor, call, at }: Began, ended: Ended | undefined): Operation {
  return { client: actor, call, invokedAt: at, returnedAt: ended?.at, outcome: outcomeOf(ended) };
}

function outcomeOf(ended: Ended | undefined): Outcome {
  if (ended?.answer !== undefined) return { type: 'answer', answer: ended.answer, revision: ended.revision };
  return { type: ended?.failed ?? 'unknown' };
}
