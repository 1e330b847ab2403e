/**
 * Where each answer lies on its domain's one line of states. Tokens fix the order of the tenures, so a domain passes
 * through positions 0, 1, 2 …: 2i is "free, before the tenure i", 2i + 1 is "tenure i lives". An answer that tells of the
 * state tells of a stretch of positions.
 */
import type { Revision } from '../../../src/base/revision.js';
import { describe } from './describe.js';
import type { DomainFacts, Request } from './tenures.js';
import type { Told } from './told.js';

/** See the head of the file. */
export interface Span {
  readonly told: Told;
  /** The least and the greatest position at which this could be answered. */
  readonly low: number;
  readonly high: number;
  /** Only where nobody holds the domain: the even positions. */
  readonly free: boolean;
  /** A request of which it is open whether it was granted one of the tenures. */
  readonly open: Request | undefined;
}

/** The spans of all answers, in the order of `facts.told`; answers that fit no position are `faults`. */
export function spansOf(facts: DomainFacts): { readonly spans: readonly Span[]; readonly faults: readonly string[] } {
  const tokens = facts.tenures.map(({ token }) => token);
  const places = new Map(tokens.map((token, index) => [token, index]));
  const open = new Set(facts.tenures.flatMap(({ token, requests }) => requests.filter((each) => each.token !== token)));
  const faults: string[] = [];
  const spans = facts.told.flatMap((told) => {
    if (told.fault !== undefined) return [];
    const span = spanOf(told, tokens, places, facts, open);
    if (span.low <= span.high && !(span.free && span.low === span.high && span.low % 2 === 1)) return [span];
    faults.push(`ORDER: no state with the revision ${revisionOf(told)} can answer ${describe(told.operation)}`);
    return [];
  });
  return { spans, faults };
}

/** The revision that came with the answer. */
export function revisionOf({ operation }: Told): Revision {
  if (operation.outcome.type !== 'answer') throw new Error('nothing is told without an answer');
  return operation.outcome.revision;
}

function spanOf(
  told: Told,
  tokens: readonly Revision[],
  places: ReadonlyMap<Revision, number>,
  facts: DomainFacts,
  open: ReadonlySet<Request>,
): Span {
  // The revision is that of the state which answered: it tells which grants had been made.
  const granted = countUpTo(tokens, revisionOf(told));
  let low = Math.max(0, 2 * granted - 1);
  let high = 2 * granted;
  const { current, over, end, notGranted, withdrawn, recovering } = told;
  if (current !== undefined && current > 0) {
    const live = 2 * (places.get(current) ?? 0) + 1;
    low = Math.max(low, live);
    high = Math.min(high, live);
  }
  const place = over === undefined ? undefined : places.get(over);
  if (place !== undefined) {
    if (end?.reason === 'never_granted') high = Math.min(high, 2 * place);
    else if (end?.reason === 'earlier_history') high = -1;
    else low = Math.max(low, 2 * place + 2);
  }
  if (recovering === true) high = Math.min(high, 0);
  const id = notGranted ?? withdrawn;
  const request = id === undefined ? undefined : facts.requests.get(id);
  const tenure = request?.token === undefined ? undefined : places.get(request.token);
  if (tenure !== undefined) {
    if (notGranted !== undefined) high = Math.min(high, 2 * tenure);
    else low = Math.max(low, 2 * tenure + 2);
  }
  return {
    told,
    low,
    high,
    free: current === 0 || recovering === true,
    open: request !== undefined && open.has(request) ? request : undefined,
  };
}

/** How many of the ascending `tokens` are not above `revision`. */
function countUpTo(tokens: readonly Revision[], revision: Revision): number {
  let low = 0;
  let high = tokens.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tokens[middle] ?? Infinity) <= revision) low = middle + 1;
    else high = middle;
  }
  return low;
}
