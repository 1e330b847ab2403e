/** What the package shows of leases: the API's plain data with tokens as `bigint`, in names and types of their own. */
import type { DomainView, EndedView, EndReason, GetAnswer, LeaseState, LeaseView, WaiterView } from '../base/api.js';
import type { ChangeView } from '../base/watch.js';

/** A lease as the cluster knows it. */
export interface LeaseInfo {
  /** What is owned: a domain, or a slot `<name>#<k>`. */
  readonly domain: string;
  /** The fencing token. */
  readonly token: bigint;
  /** Who the holder says it is. Never trusted. */
  readonly holder: string;
  /** What the holder wanted operators to see. Never trusted. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The TTL in force, in milliseconds. */
  readonly ttlMs: number;
  /** The leader's wall clock at the grant. For people; nothing is decided by it. */
  readonly grantedAt: Date;
}

/** How a lease ended. */
export interface EndInfo {
  /** Why; `unspecified` when the cluster has forgotten it. */
  readonly reason: EndReason;
  /** For `force_released`: who did it; else empty. */
  readonly by: string;
  /** For `force_released`: the text that was given; else empty. */
  readonly note: string;
  /** The token of the lease that is live in this domain now; 0 if none. Greater than yours: superseded. */
  readonly currentToken: bigint;
}

/** What became of a token. */
export type TokenState =
  { readonly current: true; readonly ttlMs: number } | { readonly current: false; readonly ended: EndInfo };

/** One domain, slot, or name with slots. */
export interface DomainSummary {
  /** Its name. */
  readonly domain: string;
  /** Undefined when nobody holds it. */
  readonly lease: LeaseInfo | undefined;
  /** Milliseconds to expiry if no renewal comes, as the leader measures it; 0 when another node answered. */
  readonly leftMs: number;
  /** How many wait. */
  readonly queueLength: number;
  /** Milliseconds for which it stays closed after an expiry, as the leader measures it; 0 for none. */
  readonly coolDownLeftMs: number;
}

/** One domain, with who waits for it. */
export interface DomainInfo extends DomainSummary {
  /** The first 100, next one first. */
  readonly waiters: readonly WaiterInfo[];
}

/** Somebody in a queue. */
export interface WaiterInfo {
  /** Who it says it is. Never trusted. */
  readonly holder: string;
  /** What it wanted operators to see. Never trusted. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The leader's wall clock when it queued. */
  readonly queuedAt: Date;
}

/** One change that was observed; `revision` is the one that made it. */
export type DomainChange =
  /** A lease began. */
  | { readonly type: 'granted'; readonly revision: bigint; readonly lease: LeaseInfo }
  /** A lease ended. `ended.currentToken`: who was handed the domain by the same revision; 0 for nobody. */
  | {
      readonly type: 'ended';
      readonly revision: bigint;
      readonly domain: string;
      readonly token: bigint;
      readonly ended: EndInfo;
    }
  /** The number of those who wait for a domain, or for a slot of a name, changed. */
  | {
      readonly type: 'queueChanged';
      readonly revision: bigint;
      readonly domain: string;
      readonly queueLength: number;
    };

/** The public form of a change. */
export function domainChange(change: ChangeView): DomainChange {
  const revision = BigInt(change.revision);
  switch (change.type) {
    case 'granted':
      return { type: 'granted', revision, lease: leaseInfo(change.lease) };
    case 'ended': {
      const { domain, token } = change.ended.lease;
      return { type: 'ended', revision, domain, token: BigInt(token), ended: endInfo(change.ended) };
    }
    case 'queueChanged': {
      const { type, domain, queueLength } = change;
      return { type, revision, domain, queueLength };
    }
  }
}

/** The public form of a lease. */
export function leaseInfo(view: LeaseView): LeaseInfo {
  return {
    domain: view.domain,
    token: BigInt(view.token),
    holder: view.holder,
    metadata: Object.fromEntries(view.metadata),
    ttlMs: view.ttlMs,
    grantedAt: new Date(view.grantedAtUnixMs),
  };
}

/** The public form of an end. */
export function endInfo(view: EndedView): EndInfo {
  return { reason: view.reason, by: view.by, note: view.note, currentToken: BigInt(view.currentToken) };
}

/** The public form of a renewal's or a verification's result. */
export function tokenState(state: LeaseState): TokenState {
  return state.type === 'live'
    ? { current: true, ttlMs: state.ttlMs }
    : { current: false, ended: endInfo(state.ended) };
}

/** The public form of a domain. */
export function domainInfo(answer: GetAnswer): DomainInfo {
  return { ...domainSummary(answer), waiters: answer.waiters.map(waiterInfo) };
}

/** The public form of a domain in a list. */
export function domainSummary({ domain, lease, leftMs, queueLength, coolDownLeftMs }: DomainView): DomainSummary {
  return { domain, lease: lease === undefined ? undefined : leaseInfo(lease), leftMs, queueLength, coolDownLeftMs };
}

function waiterInfo({ holder, metadata, queuedAtUnixMs }: WaiterView): WaiterInfo {
  return { holder, metadata: Object.fromEntries(metadata), queuedAt: new Date(queuedAtUnixMs) };
}
