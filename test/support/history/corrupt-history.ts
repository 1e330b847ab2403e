/** One thing made wrong in a history that holds: what a judge is for. */
import type { AcquireAnswer, Answer, EndedView, LeaseState, LeaseView } from '../../../src/base/api.js';
import { nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import type { Revision } from '../../../src/base/revision.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Operation } from './operations.js';
import { notGranted } from '../answers.js';

type Change = (operation: Operation, all: readonly Operation[]) => Operation | undefined;

/** By name: makes one operation wrong; undefined where it does not apply. */
export const CORRUPTIONS = {
  'a grant of another token': acquireTold((outcome) =>
    outcome.type === 'granted'
      ? { ...outcome, lease: { ...outcome.lease, token: plus(outcome.lease.token, 1) } }
      : undefined,
  ),
  'granted becomes held': acquireTold((outcome) =>
    outcome.type === 'granted' ? notGranted('held', outcome.lease) : undefined,
  ),
  'held becomes granted': acquireTold((outcome) =>
    outcome.type === 'notGranted' && outcome.current !== undefined
      ? { type: 'granted', lease: outcome.current }
      : undefined,
  ),
  'a lease with another holder': viewed((lease) => ({ ...lease, holder: `${lease.holder}!` })),
  'a lease with another time of its grant': viewed((lease) => ({
    ...lease,
    grantedAtUnixMs: lease.grantedAtUnixMs + 1,
  })),
  'a domain shown free': told('get', (answer) =>
    answer.lease === undefined ? undefined : { ...answer, lease: undefined },
  ),
  'a domain shown held': (operation, all) => {
    const lease = lastLease(operation, all);
    if (operation.outcome.type !== 'answer' || lease === undefined) return undefined;
    const { answer } = operation.outcome;
    if (answer.type !== 'get' || answer.lease !== undefined) return undefined;
    return withAnswer(operation, { ...answer, lease });
  },
  'live becomes ended': stated((state, token, operation) =>
    state.type === 'live' ? { type: 'ended', ended: endedNow(operation, token) } : undefined,
  ),
  'ended becomes live': stated((state) => (state.type === 'ended' ? { type: 'live', ttlMs: 1_000 } : undefined)),
  'another reason': endOf((ended) => ({ ...ended, reason: ended.reason === 'expired' ? 'released' : 'expired' })),
  'another live token beside an end': endOf((ended) => ({
    ...ended,
    currentToken: ended.currentToken === 0 ? plus(ended.lease?.token ?? ZERO_REVISION, 1) : ZERO_REVISION,
  })),
  'released becomes not released': told('release', (answer, operation) =>
    answer.released && operation.call.type === 'release'
      ? { ...answer, released: false, ended: endedNow(operation, operation.call.lease.token) }
      : undefined,
  ),
  'not released becomes released': told('release', (answer) =>
    answer.released ? undefined : { ...answer, released: true, ended: undefined },
  ),
  'a force-release that did it': told('forceRelease', (answer) =>
    answer.released ? undefined : { ...answer, released: true },
  ),
  'a force-release that did not': told('forceRelease', (answer) =>
    answer.released ? { ...answer, released: false } : undefined,
  ),
  'a revision before': revised(-20),
  'a revision after': revised(20),
  'an answer two seconds early': moved(-2_000),
  'an answer two seconds late': moved(2_000),
  'a grant that says it was not done': (operation) =>
    operation.call.type === 'acquire' && isGrant(operation)
      ? { ...operation, outcome: { type: 'not-done' } }
      : undefined,
} satisfies Record<string, Change>;

/** The name of a corruption. */
export type Corruption = keyof typeof CORRUPTIONS;

/** The history with one operation made wrong in this way; undefined when it applies to none. */
export function corrupt(
  history: readonly Operation[],
  how: Corruption,
  random: Random,
): readonly Operation[] | undefined {
  const start = nextInt(random, 0, Math.max(0, history.length - 1));
  for (let i = 0; i < history.length; i++) {
    const index = (start + i) % history.length;
    const operation = history[index];
    const changed = operation === undefined ? undefined : CORRUPTIONS[how](operation, history);
    if (changed !== undefined) return history.with(index, changed);
  }
  return undefined;
}

function withAnswer(operation: Operation, answer: Answer): Operation {
  if (operation.outcome.type !== 'answer') return operation;
  return { ...operation, outcome: { ...operation.outcome, answer } };
}

function told<Type extends Answer['type']>(
  type: Type,
  change: (answer: Extract<Answer, { type: Type }>, operation: Operation) => Answer | undefined,
): Change {
  return (operation) => {
    if (operation.outcome.type !== 'answer' || operation.outcome.answer.type !== type) return undefined;
    const answer = change(operation.outcome.answer as Extract<Answer, { type: Type }>, operation);
    return answer && withAnswer(operation, answer);
  };
}

function acquireTold(change: (outcome: AcquireAnswer['outcome']) => AcquireAnswer['outcome'] | undefined): Change {
  return told('acquire', (answer) => {
    const outcome = change(answer.outcome);
    return outcome && { ...answer, outcome };
  });
}

function stated(change: (state: LeaseState, token: Revision, operation: Operation) => LeaseState | undefined): Change {
  return (operation) => {
    const { call, outcome } = operation;
    if (outcome.type !== 'answer') return undefined;
    const { answer } = outcome;
    if (call.type === 'verify' && answer.type === 'verify') {
      const state = change(answer.outcome, call.lease.token, operation);
      return state && withAnswer(operation, { ...answer, outcome: state });
    }
    const [result] = answer.type === 'renew' ? answer.results : [];
    const [lease] = call.type === 'renew' ? call.leases : [];
    const state = result && lease && change(result, lease.token, operation);
    return state && withAnswer(operation, { type: 'renew', results: [state] });
  };
}

function endOf(change: (ended: EndedView) => EndedView): Change {
  const inState = stated((state) => (state.type === 'ended' ? { ...state, ended: change(state.ended) } : undefined));
  const inAcquire = acquireTold((outcome) =>
    outcome.type === 'ended' && outcome.ended.lease !== undefined
      ? { ...outcome, ended: change(outcome.ended) }
      : undefined,
  );
  const inRelease = told('release', (answer) => answer.ended && { ...answer, ended: change(answer.ended) });
  return (operation, all) => inState(operation, all) ?? inAcquire(operation, all) ?? inRelease(operation, all);
}

function viewed(change: (lease: LeaseView) => LeaseView): Change {
  const inGet = told('get', (answer) => answer.lease && { ...answer, lease: change(answer.lease) });
  const inAcquire = acquireTold((outcome) => {
    if (outcome.type === 'granted') return { ...outcome, lease: change(outcome.lease) };
    return outcome.type === 'notGranted' && outcome.current !== undefined
      ? { ...outcome, current: change(outcome.current) }
      : undefined;
  });
  return (operation, all) => inGet(operation, all) ?? inAcquire(operation, all);
}

function revised(by: number): Change {
  return (operation) =>
    operation.outcome.type === 'answer'
      ? { ...operation, outcome: { ...operation.outcome, revision: plus(operation.outcome.revision, by) } }
      : undefined;
}

function moved(byMs: number): Change {
  return (operation) =>
    operation.returnedAt === undefined
      ? undefined
      : { ...operation, invokedAt: operation.invokedAt + byMs, returnedAt: operation.returnedAt + byMs };
}

function isGrant({ outcome }: Operation): boolean {
  return outcome.type === 'answer' && outcome.answer.type === 'acquire' && outcome.answer.outcome.type === 'granted';
}

/** The newest lease of the same domain that an answer showed before. */
function lastLease(operation: Operation, all: readonly Operation[]): LeaseView | undefined {
  for (const { outcome } of all.slice(0, all.indexOf(operation)).reverse()) {
    if (outcome.type !== 'answer') continue;
    const { answer } = outcome;
    if (answer.type !== 'acquire' || answer.outcome.type !== 'granted' || operation.call.type !== 'get') continue;
    if (answer.outcome.lease.domain === operation.call.domain) return answer.outcome.lease;
  }
  return undefined;
}

function endedNow({ call }: Operation, token: Revision): EndedView {
  const domain = call.type === 'renew' ? call.leases[0]?.domain : 'lease' in call ? call.lease.domain : call.domain;
  const lease = domain === undefined ? undefined : { domain, token };
  return { lease, reason: 'expired', by: '', note: '', currentToken: ZERO_REVISION };
}

function plus(revision: Revision, by: number): Revision {
  return (revision + by) as Revision;
}
