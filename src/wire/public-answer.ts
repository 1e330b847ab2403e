/** Answers → response messages: what a server sends. */
import type {
  Answer,
  DomainView,
  EndedView,
  EndReason,
  GetAnswer,
  Header,
  LeaseState,
  LeaseView,
  MemberView,
  NotGrantedReason,
  RoleView,
} from '../base/api.js';
import { unreachable } from '../base/assert.js';
import { wireRef } from './public-request.js';
import type {
  WireDomain,
  WireEnded,
  WireHeader,
  WireLease,
  WireLive,
  WireMember,
  WireResponse,
} from './public-types.js';

/** An answer with what is around it. */
export interface PublicResponse {
  /** Undefined only in answers of the cluster service that carry none, and inside a forward. */
  readonly header: Header | undefined;
  readonly answer: Answer;
  /** The version of the software that answers; in GetStatus only, else ''. */
  readonly version: string;
}

/** By the names in the files. */
export const END_REASONS = {
  unspecified: 'END_REASON_UNSPECIFIED',
  expired: 'END_REASON_EXPIRED',
  released: 'END_REASON_RELEASED',
  withdrawn: 'END_REASON_WITHDRAWN',
  force_released: 'END_REASON_FORCE_RELEASED',
  earlier_history: 'END_REASON_EARLIER_HISTORY',
  never_granted: 'END_REASON_NEVER_GRANTED',
  left_queue: 'END_REASON_LEFT_QUEUE',
} as const satisfies Record<EndReason, string>;

/** By the names in the files. */
export const ROLES = {
  follower: 'ROLE_FOLLOWER',
  candidate: 'ROLE_CANDIDATE',
  leader: 'ROLE_LEADER',
  stopped: 'ROLE_STOPPED',
} as const satisfies Record<RoleView, string>;

/** By the names in the files. */
export const NOT_GRANTED_REASONS = {
  held: 'NOT_GRANTED_REASON_HELD',
  wait_over: 'NOT_GRANTED_REASON_WAIT_OVER',
  queue_full: 'NOT_GRANTED_REASON_QUEUE_FULL',
  cool_down: 'NOT_GRANTED_REASON_COOL_DOWN',
  slots_differ: 'NOT_GRANTED_REASON_SLOTS_DIFFER',
  recovering: 'NOT_GRANTED_REASON_RECOVERING',
} as const satisfies Record<NotGrantedReason, string>;

/** The response message of an answer. */
export function responseOf({ header: of, answer, version }: PublicResponse): WireResponse {
  const header = of === undefined ? null : wireHeader(of);
  switch (answer.type) {
    case 'acquire': {
      const { requestId, outcome } = answer;
      switch (outcome.type) {
        case 'granted':
          return { type: answer.type, message: { header, requestId, granted: wireLease(outcome.lease) } };
        case 'queued': {
          const queued = { position: outcome.position, current: wireLeaseOrNull(outcome.current) };
          return { type: answer.type, message: { header, requestId, queued } };
        }
        case 'notGranted': {
          const { queueLength, coolDownLeftMs } = outcome;
          const reason = NOT_GRANTED_REASONS[outcome.reason];
          const notGranted = { reason, current: wireLeaseOrNull(outcome.current), queueLength, coolDownLeftMs };
          return { type: answer.type, message: { header, requestId, notGranted } };
        }
        case 'ended':
          return { type: answer.type, message: { header, requestId, ended: wireEnded(outcome.ended) } };
      }
      return unreachable(outcome);
    }
    case 'renew': {
      const results = answer.results.map((state) =>
        state.type === 'live' ? { live: wireLive(state) } : { ended: wireEnded(state.ended) },
      );
      return { type: answer.type, message: { header, results } };
    }
    case 'release': {
      const ended = answer.ended === undefined ? null : wireEnded(answer.ended);
      return { type: answer.type, message: { header, released: answer.released, ended } };
    }
    case 'withdraw':
      return { type: answer.type, message: { header } };
    case 'verify': {
      const { outcome } = answer;
      return outcome.type === 'live'
        ? { type: answer.type, message: { header, current: wireLive(outcome) } }
        : { type: answer.type, message: { header, ended: wireEnded(outcome.ended) } };
    }
    case 'get':
      return { type: answer.type, message: { header, domain: wireDomain(answer, answer.waiters) } };
    case 'list': {
      const domains = answer.domains.map((domain) => wireDomain(domain, []));
      return { type: answer.type, message: { header, domains, nextPageToken: answer.next } };
    }
    case 'forceRelease': {
      const currentToken = BigInt(answer.currentToken);
      return { type: answer.type, message: { released: answer.released, currentToken } };
    }
    case 'changeLimits':
      return { type: answer.type, message: { before: answer.before, after: answer.after } };
    case 'transferLeadership':
      return { type: answer.type, message: { leaderId: answer.leader } };
    case 'getStatus':
      return {
        type: answer.type,
        message: {
          cluster: of?.cluster ?? '',
          incarnation: of?.incarnation ?? '',
          nodeId: answer.node,
          leaderId: answer.leader ?? '',
          role: ROLES[answer.role],
          term: BigInt(answer.term),
          base: BigInt(answer.base),
          lastRevision: BigInt(answer.lastRevision),
          durableRevision: BigInt(answer.durableRevision),
          committedRevision: BigInt(answer.committedRevision),
          appliedRevision: BigInt(answer.appliedRevision),
          members: answer.members.map(wireMember),
          alarms: answer.alarms,
          version,
          limits: answer.limits ?? null,
        },
      };
    case 'getStateHash': {
      const hash = Buffer.from(answer.hash, 'hex');
      return { type: answer.type, message: { nodeId: answer.node, revision: BigInt(answer.revision), hash } };
    }
  }
  return unreachable(answer);
}

/** A header as its message. */
export function wireHeader(header: Header): WireHeader {
  return {
    cluster: header.cluster,
    incarnation: header.incarnation,
    revision: BigInt(header.revision),
    nodeId: header.node,
    leaderId: header.leader ?? '',
  };
}

/** A lease as its message. */
export function wireLease(lease: LeaseView): WireLease {
  return {
    domain: lease.domain,
    token: BigInt(lease.token),
    holder: lease.holder,
    metadata: Object.fromEntries(lease.metadata),
    ttlMs: lease.ttlMs,
    grantedAtUnixMs: BigInt(lease.grantedAtUnixMs),
  };
}

function wireLeaseOrNull(lease: LeaseView | undefined): WireLease | null {
  return lease === undefined ? null : wireLease(lease);
}

function wireDomain(view: DomainView, waiters: GetAnswer['waiters']): WireDomain {
  const { domain, lease, leftMs, queueLength, coolDownLeftMs } = view;
  return {
    name: domain,
    lease: wireLeaseOrNull(lease),
    leftMs,
    queueLength,
    waiters: waiters.map(({ holder, metadata, queuedAtUnixMs }) => ({
      holder,
      metadata: Object.fromEntries(metadata),
      queuedAtUnixMs: BigInt(queuedAtUnixMs),
    })),
    coolDownLeftMs,
  };
}

/** An end as its message. */
export function wireEnded(ended: EndedView): WireEnded {
  return {
    lease: ended.lease === undefined ? null : wireRef(ended.lease),
    reason: END_REASONS[ended.reason],
    by: ended.by,
    note: ended.note,
    currentToken: BigInt(ended.currentToken),
  };
}

function wireLive(state: Extract<LeaseState, { readonly type: 'live' }>): WireLive {
  return { ttlMs: state.ttlMs };
}

function wireMember(member: MemberView): WireMember {
  return {
    nodeId: member.node,
    peerAddress: member.peerAddress,
    voter: member.voter,
    reachable: member.reachable,
    lag: BigInt(member.lag),
    directoryId: member.directory ?? '',
  };
}
