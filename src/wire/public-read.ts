/**
 * Response messages → answers: what a client reads. A newer server may say what this version does not know; then a
 * lease counts as not granted, not live, ended for a reason unknown. What no server says is {@link UnexpectedResponse}.
 */
import type {
  AcquireAnswer,
  Answer,
  DomainView,
  EndedView,
  EndReason,
  GetAnswer,
  Header,
  LeaseRef,
  LeaseState,
  LeaseView,
  MemberView,
  Metadata,
  NotGrantedReason,
  RoleView,
} from '../base/api.js';
import { unreachable } from '../base/assert.js';
import { leasedDomainFault } from '../base/domain.js';
import { isHexId, isNodeId, parseRequestId } from '../base/ids.js';
import type { DirectoryId, Domain, Incarnation, NodeId } from '../base/ids.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import type { SharedLimits } from '../base/shared-limits.js';
import { END_REASONS, NOT_GRANTED_REASONS, ROLES } from './public-answer.js';
import type { PublicResponse } from './public-answer.js';
import type {
  WireAcquireResponse,
  WireDomain,
  WireEnded,
  WireEnum,
  WireGetStatusResponse,
  WireHeader,
  WireInt64,
  WireLease,
  WireLeaseRef,
  WireLimits,
  WireLive,
  WireMember,
  WireResponse,
} from './public-types.js';
import { UnexpectedResponse } from './public-unexpected.js';

/** Says nothing but "over". */
const ENDED_SOMEHOW: EndedView = {
  lease: undefined,
  reason: 'unspecified',
  by: '',
  note: '',
  currentToken: ZERO_REVISION,
};

/** What an outcome is that this version does not know. */
const NOTHING_SAID = { reason: 0, current: null, queueLength: 0, coolDownLeftMs: 0 };

/** The answer in a response message. Throws {@link UnexpectedResponse}. */
export function readResponse(response: WireResponse): PublicResponse {
  const { message } = response;
  const header = 'header' in message && message.header !== null ? readHeader(message.header) : undefined;
  if (response.type === 'getStatus') return readStatus(response.message);
  return { header, answer: readAnswer(response), version: '' };
}

function readAnswer(response: Exclude<WireResponse, { readonly type: 'getStatus' }>): Answer {
  switch (response.type) {
    case 'acquire':
      return readAcquire(response.message);
    case 'renew':
      return {
        type: response.type,
        results: response.message.results.map(({ live, ended }) => readState(live, ended)),
      };
    case 'release': {
      const { released, ended } = response.message;
      return { type: response.type, released, ended: ended === null ? undefined : readEnded(ended) };
    }
    case 'withdraw':
      return { type: response.type };
    case 'verify':
      return { type: response.type, outcome: readState(response.message.current, response.message.ended) };
    case 'get':
      return { type: response.type, ...readGet(response.message.domain) };
    case 'list':
      return {
        type: response.type,
        domains: response.message.domains.map(readDomain),
        next: response.message.nextPageToken,
      };
    case 'forceRelease': {
      const { released, currentToken } = response.message;
      return { type: response.type, released, currentToken: revision('currentToken', currentToken) };
    }
    case 'changeLimits': {
      const { before, after } = response.message;
      return { type: response.type, before: readLimits('before', before), after: readLimits('after', after) };
    }
    case 'transferLeadership':
      return { type: response.type, leader: node('leaderId', response.message.leaderId) };
    case 'getStateHash': {
      const { nodeId, revision: at, hash } = response.message;
      const text = Buffer.from(hash).toString('hex');
      return { type: response.type, node: node('nodeId', nodeId), revision: revision('revision', at), hash: text };
    }
  }
  return unreachable(response);
}

function readAcquire(message: WireAcquireResponse): AcquireAnswer {
  const requestId = parseRequestId(message.requestId);
  if (requestId === undefined) throw new UnexpectedResponse('requestId', 'is no UUID');
  const outcome = (): AcquireAnswer['outcome'] => {
    if (message.granted !== undefined) return { type: 'granted', lease: readLease(message.granted) };
    if (message.ended !== undefined) return { type: 'ended', ended: readEnded(message.ended) };
    if (message.queued !== undefined) {
      const { position, current } = message.queued;
      return { type: 'queued', position, current: current === null ? undefined : readLease(current) };
    }
    const { reason, current, queueLength, coolDownLeftMs } = message.notGranted ?? NOTHING_SAID;
    return {
      type: 'notGranted',
      reason: known<NotGrantedReason>(NOT_GRANTED_REASONS, reason) ?? 'held',
      current: current === null ? undefined : readLease(current),
      queueLength,
      coolDownLeftMs,
    };
  };
  return { type: 'acquire', requestId, outcome: outcome() };
}

function readState(live: WireLive | undefined, ended: WireEnded | undefined): LeaseState {
  if (live !== undefined) return { type: 'live', ttlMs: live.ttlMs };
  return { type: 'ended', ended: ended === undefined ? ENDED_SOMEHOW : readEnded(ended) };
}

/** An end. Throws {@link UnexpectedResponse}. */
export function readEnded(ended: WireEnded): EndedView {
  return {
    lease: ended.lease === null ? undefined : readRef(ended.lease),
    reason: known<EndReason>(END_REASONS, ended.reason) ?? 'unspecified',
    by: ended.by,
    note: ended.note,
    currentToken: revision('currentToken', ended.currentToken),
  };
}

/** A lease. Throws {@link UnexpectedResponse}. */
export function readLease(lease: WireLease): LeaseView {
  const { domain: of, token } = readRef(lease);
  return {
    domain: of,
    token,
    holder: lease.holder,
    metadata: readMetadata(lease.metadata),
    ttlMs: lease.ttlMs,
    grantedAtUnixMs: integer('grantedAtUnixMs', lease.grantedAtUnixMs),
  };
}

function readRef(ref: WireLeaseRef): LeaseRef {
  const token = revision('token', ref.token);
  if (token === ZERO_REVISION) throw new UnexpectedResponse('token', 'is 0');
  return { domain: domain('domain', ref.domain), token };
}

function readGet(of: WireDomain | null): Omit<GetAnswer, 'type'> {
  if (of === null) throw new UnexpectedResponse('domain', 'is missing');
  const waiters = of.waiters.map(({ holder, metadata, queuedAtUnixMs }) => ({
    holder,
    metadata: readMetadata(metadata),
    queuedAtUnixMs: integer('queuedAtUnixMs', queuedAtUnixMs),
  }));
  return { ...readDomain(of), waiters };
}

function readDomain(of: WireDomain): DomainView {
  const { leftMs, queueLength, coolDownLeftMs } = of;
  return {
    domain: domain('name', of.name),
    lease: of.lease === null ? undefined : readLease(of.lease),
    leftMs,
    queueLength,
    coolDownLeftMs,
  };
}

function readMetadata(metadata: WireLease['metadata']): Metadata {
  return Object.entries(metadata).sort(([left], [right]) => (left < right ? -1 : 1));
}

/** The header that comes with an answer. Throws {@link UnexpectedResponse}. */
export function readHeader(header: WireHeader): Header {
  return {
    cluster: header.cluster,
    incarnation: incarnation(header.incarnation),
    revision: revision('revision', header.revision),
    node: node('nodeId', header.nodeId),
    leader: header.leaderId === '' ? undefined : node('leaderId', header.leaderId),
  };
}

function readStatus(message: WireGetStatusResponse): PublicResponse {
  const leader = message.leaderId === '' ? undefined : node('leaderId', message.leaderId);
  const appliedRevision = revision('appliedRevision', message.appliedRevision);
  const of = node('nodeId', message.nodeId);
  return {
    header: {
      cluster: message.cluster,
      incarnation: incarnation(message.incarnation),
      revision: appliedRevision,
      node: of,
      leader,
    },
    answer: {
      type: 'getStatus',
      node: of,
      leader,
      role: known<RoleView>(ROLES, message.role) ?? 'stopped',
      term: integer('term', message.term),
      base: revision('base', message.base),
      lastRevision: revision('lastRevision', message.lastRevision),
      durableRevision: revision('durableRevision', message.durableRevision),
      committedRevision: revision('committedRevision', message.committedRevision),
      appliedRevision,
      members: message.members.map(readMember),
      alarms: message.alarms,
      limits: message.limits === null ? undefined : readLimits('limits', message.limits),
    },
    version: message.version,
  };
}

function readLimits(field: string, limits: WireLimits | null): SharedLimits {
  if (limits === null) throw new UnexpectedResponse(field, 'is missing');
  const { queueLimit, leasesPerPrincipal, waitersPerPrincipal, prefixQuotas } = limits;
  return { queueLimit, leasesPerPrincipal, waitersPerPrincipal, prefixQuotas };
}

function readMember(member: WireMember): MemberView {
  const { directoryId } = member;
  if (directoryId !== '' && !isHexId(directoryId)) throw new UnexpectedResponse('directoryId', 'is not 32 hex digits');
  return {
    node: node('nodeId', member.nodeId),
    directory: directoryId === '' ? undefined : (directoryId as DirectoryId),
    peerAddress: member.peerAddress,
    voter: member.voter,
    reachable: member.reachable,
    lag: integer('lag', member.lag),
  };
}

function integer(field: string, value: WireInt64): number {
  if (value < 0 || value > Number.MAX_SAFE_INTEGER) {
    throw new UnexpectedResponse(field, `is ${value.toString()}, not from 0 to 2^53 - 1`);
  }
  return Number(value);
}

/** A revision, or 0. Throws {@link UnexpectedResponse}. */
export function revision(field: string, value: WireInt64): Revision {
  return integer(field, value) as Revision;
}

function node(field: string, value: string): NodeId {
  if (!isNodeId(value)) throw new UnexpectedResponse(field, 'is no node id');
  return value;
}

function incarnation(value: string): Incarnation | '' {
  if (value !== '' && !isHexId(value)) throw new UnexpectedResponse('incarnation', 'is not 32 hex digits');
  return value as Incarnation | '';
}

/** A domain or a slot. Throws {@link UnexpectedResponse}. */
export function domain(field: string, value: string): Domain {
  const fault = leasedDomainFault(value);
  if (fault !== undefined) throw new UnexpectedResponse(field, fault);
  return value as Domain;
}

/** The key under which `names` has `value`. */
function known<T extends string>(names: Readonly<Record<T, string>>, value: WireEnum): T | undefined {
  for (const name in names) if (names[name] === value) return name;
  return undefined;
}
