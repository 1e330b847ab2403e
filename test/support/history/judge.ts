/** Judges a history: every check of this folder, domain by domain (locality: a history holds if each domain's does). */
import type { Domain } from '../../../src/base/ids.js';
import { search } from './checker.js';
import { describe } from './describe.js';
import { leaseModel } from './lease-model.js';
import type { Look } from './lease-model.js';
import { eachLease } from './operations.js';
import type { LogFacts, Operation } from './operations.js';
import { checkAcross, checkLine, checkRealTime, checkWithdrawals, isLinearizable } from './revisions.js';
import { spansOf } from './spans.js';
import type { Span } from './spans.js';
import { gather } from './tenures.js';
import type { DomainFacts } from './tenures.js';
import { domainOf, toldBy } from './told.js';
import type { Told } from './told.js';

/** What is to be said of a history. `faults` begin with a code: ANSWER, LEASE, ONCE, ORDER, PHANTOM, STALE or LINEAR. */
export type Verdict =
  | { readonly type: 'holds' }
  | { readonly type: 'violated'; readonly faults: readonly string[] }
  /** Not decided within the budget: no pass. */
  | { readonly type: 'unknown'; readonly domain: Domain };

/** Steps of one domain's search. A history that holds needs about one for each operation, times those under way with it. */
const DEFAULT_BUDGET = 5_000_000;

/**
 * Judges the history of one incarnation. `log` is what the applied log of any member says of grants: with it nothing has
 * to be guessed. `budget` limits the search of one domain.
 */
export function judge(history: readonly Operation[], log?: LogFacts, budget = DEFAULT_BUDGET): Verdict {
  const operations = history.flatMap(eachLease).map(toldBy);
  const domains = [...byDomain(operations)].map(([domain, its]) => ({ domain, facts: gather(its, log) }));
  const faults = [
    ...checkRealTime(operations),
    ...checkAcross(
      domains.map(({ facts }) => facts),
      log,
    ),
  ];
  let undecided: Domain | undefined;
  for (const { domain, facts } of domains) {
    const { spans, faults: misfits } = spansOf(facts);
    const found = [...facts.faults, ...misfits, ...checkLine(spans), ...checkWithdrawals(facts)];
    // The search of what contradicts itself already would say the same, less clearly.
    const verdict = found.length > 0 ? found : inOrder(facts, spans, budget);
    if (verdict === 'unknown') undecided ??= domain;
    else faults.push(...verdict);
  }
  if (faults.length > 0) return { type: 'violated', faults };
  return undecided === undefined ? { type: 'holds' } : { type: 'unknown', domain: undecided };
}

function byDomain(operations: readonly Told[]): Map<Domain, Told[]> {
  const groups = new Map<Domain, Told[]>();
  for (const operation of operations) {
    const domain = domainOf(operation.operation.call);
    const group = groups.get(domain);
    if (group === undefined) groups.set(domain, [operation]);
    else group.push(operation);
  }
  return groups;
}

function inOrder(facts: DomainFacts, spans: readonly Span[], budget: number): string[] | 'unknown' {
  const looks = spans.flatMap((span): Look[] => {
    const { invokedAt, returnedAt } = span.told.operation;
    if (!isLinearizable(span.told.operation)) return [];
    if (returnedAt === undefined) throw new Error(`an answer without its time: ${describe(span.told.operation)}`);
    return [{ ...span, invokedAt, returnedAt }];
  });
  const found = search(leaseModel(facts.tenures), looks, budget);
  if (found.type === 'unknown') return 'unknown';
  if (found.type === 'linearizable') return [];
  const { position } = found.state;
  const tenure = facts.tenures[position >> 1];
  const where =
    tenure === undefined || position % 2 === 0
      ? `nobody holds it, ${position >> 1} leases are over`
      : `token ${tenure.token} lives, and nothing can have ended it by then`;
  return [
    `LINEAR: after ${found.done} answers, where ${where}, nothing explains ${describe(found.operation.told.operation)}`,
  ];
}
