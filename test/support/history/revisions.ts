/**
 * What the revisions of answers must do, in linear time and without a search:
 *  - An answer that came before a linearizable call was sent has a revision not above that call's.
 *  - A token is greater than every revision that was told before its request was first sent; one request is granted once.
 *  - In the order of their revisions all answers about a domain, those of LOCAL reads too, tell of one line of states.
 *  - A request that was withdrawn before a grant is over from there.
 */
import type { RequestId } from '../../../src/base/ids.js';
import { describe } from './describe.js';
import type { LogFacts, Operation } from './operations.js';
import { revisionOf } from './spans.js';
import type { Span } from './spans.js';
import type { DomainFacts } from './tenures.js';
import type { Told } from './told.js';

/**
 * True for a call whose answer includes everything that was answered before it was sent. That a request is still queued
 * is no claim to anything: its caller is to call again, and a leader that was deposed may say so.
 */
export function isLinearizable({ call, outcome }: Operation): boolean {
  if (outcome.type === 'answer' && outcome.answer.type === 'acquire' && outcome.answer.outcome.type === 'queued') {
    return false;
  }
  return (call.type !== 'get' && call.type !== 'verify') || call.freshness === 'linearizable';
}

/** Checks the revisions of all answers of a history against real time, and its tokens against revisions. */
export function checkRealTime(operations: readonly Told[]): string[] {
  const faults: string[] = [];
  const returned = operations.flatMap(({ operation: { outcome, returnedAt } }) =>
    outcome.type === 'answer' && returnedAt !== undefined ? [{ at: returnedAt, revision: outcome.revision }] : [],
  );
  returned.sort((left, right) => left.at - right.at);
  /** By request: the greatest revision told before it was first sent. */
  const toldBefore = new Map<RequestId, number>();
  let told = 0;
  let next = 0;
  for (const said of operations.toSorted((left, right) => left.operation.invokedAt - right.operation.invokedAt)) {
    const { operation, over, current = 0, grantedTo } = said;
    for (let other = returned[next]; other !== undefined && other.at < operation.invokedAt; other = returned[++next]) {
      told = Math.max(told, other.revision);
    }
    const { call, outcome } = operation;
    if (call.type === 'acquire' && !toldBefore.has(call.requestId)) toldBefore.set(call.requestId, told);
    if (outcome.type !== 'answer') continue;
    if (isLinearizable(operation) && outcome.revision < told) {
      faults.push(`STALE: revision ${told} was told before ${describe(operation)} was sent`);
    }
    const token = over ?? current;
    const before = grantedTo === undefined ? undefined : toldBefore.get(grantedTo);
    if (before !== undefined && token <= before) {
      faults.push(`ORDER: revision ${before} was told before the request of ${describe(operation)} was first sent`);
    }
    if (current > outcome.revision || (grantedTo !== undefined && token > outcome.revision)) {
      faults.push(`ORDER: a token above its own revision in ${describe(operation)}`);
    }
  }
  return faults;
}

/**
 * Checks that no two domains share a granted request, and that the log granted only what was asked for. One entry may end
 * leases of several domains and hand each over, so they may share a token.
 */
export function checkAcross(domains: readonly DomainFacts[], log: LogFacts | undefined): string[] {
  const faults: string[] = [];
  const granted = new Set<RequestId>();
  const known = new Set<RequestId>();
  for (const { requests } of domains) {
    for (const { id, token } of requests.values()) {
      known.add(id);
      if (token === undefined) continue;
      if (granted.has(id)) faults.push(`ONCE: request ${id} was granted in two domains`);
      granted.add(id);
    }
  }
  for (const [id, token] of log?.granted ?? []) {
    if (!known.has(id))
      faults.push(`PHANTOM: the log grants ${token} to ${id}, and no call of it can have been granted`);
  }
  return faults;
}

/** Checks that the answers about a domain, in the order of their revisions, can be those of one line of states. */
export function checkLine(spans: readonly Span[]): string[] {
  const ordered = spans.toSorted((left, right) => revisionOf(left.told) - revisionOf(right.told));
  let position = 0;
  for (let first = 0; first < ordered.length;) {
    const group: Span[] = [];
    const start = ordered[first];
    if (start === undefined) break;
    // Answers with one revision are answers of one state.
    for (let span = ordered[first]; span !== undefined; span = ordered[first]) {
      if (revisionOf(span.told) !== revisionOf(start.told)) break;
      group.push(span);
      first++;
    }
    position = group.reduce((least, { low }) => Math.max(least, low), position);
    if (group.some(({ free }) => free) && position % 2 === 1) position++;
    const bad = group.find(({ high }) => position > high);
    if (bad !== undefined) {
      return [`ORDER: by its revision, ${describe(bad.told.operation)} came after what it does not know yet`];
    }
  }
  return [];
}

/** Checks what is told of requests that were never granted anything: held before, over after their withdrawal. */
export function checkWithdrawals({ requests, told }: DomainFacts): string[] {
  const faults: string[] = [];
  const lastOpen = new Map<RequestId, number>();
  for (const said of told) {
    const { notGranted } = said;
    if (notGranted !== undefined) {
      lastOpen.set(notGranted, Math.max(lastOpen.get(notGranted) ?? 0, revisionOf(said)));
    }
  }
  for (const said of told) {
    const { operation, withdrawn } = said;
    const request = withdrawn === undefined ? undefined : requests.get(withdrawn);
    if (request === undefined) continue;
    if (said.left !== true && request.withdrawFrom > (operation.returnedAt ?? Infinity)) {
      faults.push(`LEASE: nobody had withdrawn the request of ${describe(operation)}`);
    }
    if (revisionOf(said) < (lastOpen.get(request.id) ?? 0)) {
      faults.push(`LEASE: a request was answered as not withdrawn after ${describe(operation)}`);
    }
  }
  return faults;
}
