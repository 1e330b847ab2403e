/**
 * The tenures of one domain as its operations tell of them: in the order of their tokens, which is the order in which
 * they were granted, with the earliest moment at which each can have begun and ended. Whatever contradicts itself without
 * any regard to time is found here.
 *
 * A grant of which no answer and no log tells is left out: it would explain nothing that was told.
 */
import type { AcquireCall, EndReason, LeaseView, Metadata } from '../../../src/base/api.js';
import type { RequestId } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import { safeDeadline } from '../../scenario/lease-oracle.js';
import { describe } from './describe.js';
import type { LogFacts } from './operations.js';
import { tokenOf } from './told.js';
import type { End, Told } from './told.js';

/** What is known of one request id. */
export interface Request {
  readonly id: RequestId;
  /** Its Acquires that were not refused as not done. They may differ in their metadata. */
  readonly asked: AcquireCall[];
  /** What it was granted; undefined: nothing, or nothing that is known. */
  token: Revision | undefined;
  /** The first moment at which one of its calls can have been granted something; Infinity: none can. */
  grantFrom: number;
  /** The first moment at which a Withdraw of it can have taken effect. */
  withdrawFrom: number;
}

/** One lease from grant to end. */
export interface Tenure {
  readonly token: Revision;
  /** Whom it was granted to; several where answers leave it open. */
  readonly requests: readonly Request[];
  /** The first moment at which it can end, whoever it was granted to; a Withdraw of `requests` comes on top. */
  readonly endFrom: number;
  /** False when a Withdraw cannot have ended it. */
  readonly withdrawable: boolean;
}

/** The history of one domain, without the order. */
export interface DomainFacts {
  readonly tenures: readonly Tenure[];
  readonly requests: ReadonlyMap<RequestId, Request>;
  /** The operations that were answered. */
  readonly told: readonly Told[];
  readonly faults: readonly string[];
}

interface Draft {
  readonly token: Revision;
  request: Request | undefined;
  view: LeaseView | undefined;
  ttlMs: number | undefined;
  end: End | undefined;
  /** The holder may act until here. */
  safeUntil: number;
  releaseFrom: number;
  forceFrom: number;
  /** Operations that were told that they, and nobody else, ended it by force. */
  forced: number;
}

/** Ends that say that the lease had been there. The others say that nothing is known of it. */
const REAL_ENDS: ReadonlySet<EndReason> = new Set(['expired', 'released', 'withdrawn', 'force_released']);

/** Gathers the facts of the operations of one domain. */
export function gather(operations: readonly Told[], log: LogFacts | undefined): DomainFacts {
  const gatherer = new Gatherer();
  const told = operations.filter(({ operation }) => operation.outcome.type === 'answer');
  for (const said of operations) gatherer.asked(said);
  for (const said of told) gatherer.told(said);
  if (log !== undefined) gatherer.log(log);
  for (const said of operations) gatherer.mayEnd(said);
  return { tenures: gatherer.tenures(log), requests: gatherer.requests, told, faults: gatherer.faults };
}

class Gatherer {
  readonly requests = new Map<RequestId, Request>();
  readonly faults: string[] = [];
  readonly #drafts = new Map<Revision, Draft>();

  /** Notes a request, and from when it can have been granted something. */
  asked({ operation, grantedTo, waits }: Told): void {
    const { call, invokedAt, outcome } = operation;
    if ((call.type !== 'acquire' && call.type !== 'withdraw') || outcome.type === 'not-done') return;
    const request = this.#request(call.requestId);
    if (call.type === 'withdraw') {
      request.withdrawFrom = Math.min(request.withdrawFrom, invokedAt);
      return;
    }
    request.asked.push(call);
    // A call that was told that it is not granted, or withdrawn, has granted nothing.
    if (outcome.type === 'unknown' || grantedTo !== undefined || waits === true) {
      request.grantFrom = Math.min(request.grantFrom, invokedAt);
    }
  }

  told(said: Told): void {
    const { operation, current, view, ttlMs, over, end, grantedTo, confirms, fault } = said;
    if (fault !== undefined) {
      this.#fault(`ANSWER: ${describe(operation)} ${fault}`);
      return;
    }
    if (current !== undefined && current > 0) {
      const draft = this.#draft(current);
      this.#ttl(draft, view?.ttlMs ?? ttlMs, said);
      if (view !== undefined) this.#view(draft, view, said);
      if (confirms === true) {
        const safeUntil = operation.safeUntil ?? safeDeadline(operation.invokedAt, draft.ttlMs ?? 0);
        draft.safeUntil = Math.max(draft.safeUntil, safeUntil);
      }
      if (grantedTo !== undefined && over === undefined) this.#bind(draft, this.#request(grantedTo));
    }
    if (over === undefined || end === undefined || !(REAL_ENDS.has(end.reason) || grantedTo !== undefined)) return;
    const draft = this.#draft(over);
    if (grantedTo !== undefined) this.#bind(draft, this.#request(grantedTo));
    if (REAL_ENDS.has(end.reason)) this.#end(draft, end, said);
    if (operation.call.type === 'forceRelease') draft.forced++;
  }

  /** Notes from when a call can have ended a lease. */
  mayEnd({ operation, over, end }: Told): void {
    const { call, invokedAt, outcome } = operation;
    if (outcome.type === 'not-done') return;
    const token = tokenOf(call);
    const draft = token === undefined ? undefined : this.#drafts.get(token);
    if (draft === undefined) return;
    const unknown = outcome.type === 'unknown';
    if (call.type === 'release') {
      // "Not released, and how it ended is forgotten" may follow a first attempt of the same call that released it.
      const can = unknown || end?.reason === 'released' || end?.reason === 'unspecified';
      if (can) draft.releaseFrom = Math.min(draft.releaseFrom, invokedAt);
    } else if (call.type === 'forceRelease') {
      if (over !== undefined) draft.forceFrom = invokedAt;
      else if (unknown && draft.forced === 0) draft.forceFrom = Math.min(draft.forceFrom, invokedAt);
    }
  }

  log({ granted }: LogFacts): void {
    for (const [id, token] of granted) {
      const request = this.requests.get(id);
      if (request !== undefined) this.#bind(this.#draft(token), request);
    }
  }

  tenures(log: LogFacts | undefined): Tenure[] {
    const drafts = [...this.#drafts.values()].sort((left, right) => left.token - right.token);
    // With the log nothing is open: who is not in it was granted nothing.
    const open =
      log === undefined
        ? [...this.requests.values()].filter(({ token, grantFrom }) => token === undefined && grantFrom < Infinity)
        : [];
    return drafts.map((draft) => this.#tenure(draft, open));
  }

  #tenure(draft: Draft, open: readonly Request[]): Tenure {
    const { token, request, end, forced, safeUntil, releaseFrom, forceFrom } = draft;
    const requests = request === undefined ? open.filter((each) => fits(draft, each)) : [request];
    if (requests.length === 0) this.#fault(`PHANTOM: token ${token} was granted, and nobody asked for it`);
    if (request?.grantFrom === Infinity) {
      this.#fault(`PHANTOM: token ${token} was granted to ${request.id}, no call of which can have been granted it`);
    }
    if (request !== undefined && request.asked.length > 0 && !fits(draft, request)) {
      this.#fault(`LEASE: token ${token} is not what request ${request.id} asked for`);
    }
    if (forced > 1) this.#fault(`LEASE: token ${token} was ended by force ${forced} times`);
    const from: Partial<Record<EndReason, number>> = {
      expired: safeUntil,
      released: releaseFrom,
      force_released: forceFrom,
    };
    return {
      token,
      requests,
      endFrom: end === undefined ? Math.min(safeUntil, releaseFrom, forceFrom) : (from[end.reason] ?? Infinity),
      withdrawable: end === undefined || end.reason === 'withdrawn',
    };
  }

  #request(id: RequestId): Request {
    let request = this.requests.get(id);
    if (request === undefined) {
      request = { id, asked: [], token: undefined, grantFrom: Infinity, withdrawFrom: Infinity };
      this.requests.set(id, request);
    }
    return request;
  }

  #draft(token: Revision): Draft {
    let draft = this.#drafts.get(token);
    if (draft === undefined) {
      draft = {
        token,
        request: undefined,
        view: undefined,
        ttlMs: undefined,
        end: undefined,
        safeUntil: -Infinity,
        releaseFrom: Infinity,
        forceFrom: Infinity,
        forced: 0,
      };
      this.#drafts.set(token, draft);
    }
    return draft;
  }

  #bind(draft: Draft, request: Request): void {
    if (draft.request !== undefined && draft.request !== request) {
      this.#fault(`LEASE: token ${draft.token} was granted to ${draft.request.id} and to ${request.id}`);
    }
    if (request.token !== undefined && request.token !== draft.token) {
      this.#fault(`ONCE: request ${request.id} was granted ${request.token} and ${draft.token}`);
    }
    draft.request = request;
    request.token = draft.token;
  }

  #view(draft: Draft, view: LeaseView, said: Told): void {
    if (draft.view === undefined) draft.view = view;
    else if (!sameLease(draft.view, view)) {
      this.#fault(`LEASE: token ${draft.token} was shown as another lease before: ${describe(said.operation)}`);
    }
  }

  #ttl(draft: Draft, ttlMs: number | undefined, said: Told): void {
    if (ttlMs !== undefined && draft.ttlMs !== undefined && draft.ttlMs !== ttlMs) {
      this.#fault(`LEASE: token ${draft.token} had another TTL before: ${describe(said.operation)}`);
    }
    draft.ttlMs ??= ttlMs;
  }

  #end(draft: Draft, end: End, said: Told): void {
    const { end: known } = draft;
    if (known !== undefined && !sameEnd(known, end)) {
      this.#fault(`LEASE: token ${draft.token} had ended otherwise before: ${describe(said.operation)}`);
    }
    draft.end = known?.by === undefined ? end : known;
  }

  #fault(text: string): void {
    this.faults.push(text);
  }
}

/** Can the lease be what the request asked for? */
function fits({ view, ttlMs }: Draft, { asked }: Request): boolean {
  return asked.some(
    (call) =>
      (ttlMs === undefined || ttlMs === call.ttlMs) &&
      (view === undefined || (view.holder === call.holder && sameMetadata(view.metadata, call.metadata))),
  );
}

function sameLease(left: LeaseView, right: LeaseView): boolean {
  return (
    left.holder === right.holder &&
    left.ttlMs === right.ttlMs &&
    left.grantedAtUnixMs === right.grantedAtUnixMs &&
    sameMetadata(left.metadata, right.metadata)
  );
}

function sameMetadata(left: Metadata, right: Metadata): boolean {
  return (
    left.length === right.length &&
    left.every(([key, value], index) => right[index]?.[0] === key && right[index][1] === value)
  );
}

/** As far as both say. */
function sameEnd(left: End, right: End): boolean {
  if (left.reason !== right.reason) return false;
  return left.by === undefined || right.by === undefined || (left.by === right.by && left.note === right.note);
}
