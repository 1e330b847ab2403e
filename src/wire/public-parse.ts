/**
 * Requests as they came → calls within every limit, or the list of all faults, each naming the field by its name in
 * the `.proto` file, what it is and what it may be.
 */
import type { AcquireCall, Call, Freshness, LeaseRef, Metadata } from '../base/api.js';
import { unreachable } from '../base/assert.js';
import { domainFault, leasedDomainFault, MAX_COUNTING_NAME_BYTES, MAX_SLOTS } from '../base/domain.js';
import { isNodeId, parseRequestId } from '../base/ids.js';
import type { Domain, NodeId, RequestId } from '../base/ids.js';
import {
  DEFAULT_PAGE_SIZE,
  MAX_COOL_DOWN_MS,
  MAX_HOLDER_BYTES,
  MAX_METADATA_BYTES,
  MAX_NOTE_BYTES,
  MAX_PAGE_SIZE,
  MAX_RENEW_LEASES,
  MAX_WAIT_MS,
} from '../base/limits.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import { LIMIT_NAMES, LIMIT_RANGES, quotaFaults } from '../base/shared-limits.js';
import type { LimitsChange } from '../base/shared-limits.js';
import { utf8Length } from '../base/utf8.js';
import type {
  RequestMessages,
  WireAcquireRequest,
  WireChangeLimitsRequest,
  WireEnum,
  WireForceReleaseRequest,
  WireInt64,
  WireLeaseRef,
  WireListRequest,
  WireRenewRequest,
  WireRequest,
} from './public-types.js';

/** The limits that a node may set for itself, in milliseconds. */
export interface TtlLimits {
  readonly minTtlMs: number;
  readonly maxTtlMs: number;
  /** Taken for `ttl_ms` 0. */
  readonly defaultTtlMs: number;
}

/** A checked Acquire; without an id when the client left it to the node that takes the call. */
export type ParsedAcquire = Omit<AcquireCall, 'requestId'> & { readonly requestId: RequestId | undefined };
/** A checked call. */
export type ParsedCall = Exclude<Call, AcquireCall> | ParsedAcquire;
/** The call, or everything that is wrong with it. */
export type Parsed = { readonly ok: ParsedCall } | { readonly faults: readonly string[] };

/** Faults of one list that are listed; more are counted. */
const MAX_LISTED = 20;
const REPLACEMENT = '\ufffd';

/** Checks every field of a request against its limits. */
export function parseRequest(request: WireRequest, limits: TtlLimits): Parsed {
  if (request.message === undefined) return { faults: [`the bytes are no request message of ${request.type}`] };
  const faults: string[] = [];
  const ok = callOf(request as ReadableRequest, limits, faults);
  return faults.length === 0 ? { ok } : { faults };
}

type ReadableRequest = {
  readonly [T in WireRequest['type']]: { readonly type: T; readonly message: RequestMessages[T] };
}[WireRequest['type']];

/** Every check adds to `faults`; what is returned counts only when none was added. */
function callOf(request: ReadableRequest, limits: TtlLimits, faults: string[]): ParsedCall {
  switch (request.type) {
    case 'acquire':
      return acquire(request.message, limits, faults);
    case 'renew':
      return { type: request.type, leases: leases(request.message, faults) };
    case 'release':
      return { type: request.type, lease: lease('lease', request.message.lease, faults) };
    case 'withdraw':
      return {
        type: request.type,
        domain: domain('domain', request.message.domain, faults),
        requestId: requestId(request.message.requestId, faults),
      };
    case 'verify':
      return {
        type: request.type,
        lease: lease('lease', request.message.lease, faults),
        freshness: freshness(request.message.freshness, faults),
      };
    case 'get':
      return {
        type: request.type,
        domain: leasedDomain('domain', request.message.domain, faults),
        freshness: freshness(request.message.freshness, faults),
      };
    case 'list':
      return list(request.message, faults);
    case 'forceRelease':
      return forceRelease(request.message, faults);
    case 'changeLimits':
      return { type: request.type, change: limitsChange(request.message, faults) };
    case 'transferLeadership':
      return { type: request.type, to: member(request.message.toNodeId, faults) };
    case 'getStatus':
    case 'getStateHash':
      return { type: request.type };
  }
  return unreachable(request);
}

function acquire(message: WireAcquireRequest, limits: TtlLimits, faults: string[]): ParsedAcquire {
  const { waitMs, coolDownMs } = message;
  const call: ParsedAcquire = {
    type: 'acquire',
    domain: domain('domain', message.domain, faults),
    requestId: message.requestId === '' ? undefined : requestId(message.requestId, faults),
    holder: sized('holder', message.holder, MAX_HOLDER_BYTES, faults),
    ttlMs: ttl(message.ttlMs, limits, faults),
    waitMs,
    metadata: metadata(message.metadata, faults),
    coolDownMs,
    slots: Math.max(1, message.slots),
    seenRevision: seenRevision(message.seenRevision, faults),
  };
  if (waitMs > MAX_WAIT_MS) faults.push(`wait_ms is ${waitMs}; it must be from 0 to ${MAX_WAIT_MS}`);
  if (coolDownMs > MAX_COOL_DOWN_MS) {
    faults.push(`cool_down_ms is ${coolDownMs}; it must be from 0 to ${MAX_COOL_DOWN_MS}`);
  }
  if (message.slots > MAX_SLOTS) faults.push(`slots is ${message.slots}; it must be from 0 to ${MAX_SLOTS}`);
  if (message.slots > 1 && message.domain.length > MAX_COUNTING_NAME_BYTES) {
    faults.push(`domain has ${message.domain.length} bytes; a name with slots has at most ${MAX_COUNTING_NAME_BYTES}`);
  }
  return call;
}

function leases(message: WireRenewRequest, faults: string[]): readonly LeaseRef[] {
  const { length } = message.leases;
  if (length < 1 || length > MAX_RENEW_LEASES) {
    faults.push(`leases has ${length} elements; it must have 1 to ${MAX_RENEW_LEASES}`);
    return [];
  }
  const found: string[] = [];
  const refs = message.leases.map((ref, at) => lease(`leases[${at}]`, ref, found));
  pushSome('leases', found, faults);
  return refs;
}

function list({ prefix, pageSize, pageToken, freshness: fresh }: WireListRequest, faults: string[]): ParsedCall {
  if (!isText(prefix)) faults.push('prefix is not well-formed UTF-8, or holds U+FFFD');
  if (pageSize > MAX_PAGE_SIZE) faults.push(`page_size is ${pageSize}; it must be from 0 to ${MAX_PAGE_SIZE}`);
  if (pageToken !== '' && leasedDomainFault(pageToken) !== undefined) {
    faults.push('page_token is none that this cluster gave: take next_page_token of the page before');
  }
  return {
    type: 'list',
    prefix,
    pageSize: pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize,
    after: pageToken,
    freshness: freshness(fresh, faults),
  };
}

function forceRelease(message: WireForceReleaseRequest, faults: string[]): ParsedCall {
  return {
    type: 'forceRelease',
    domain: leasedDomain('domain', message.domain, faults),
    token: token('token', message.token, faults),
    note: sized('note', message.note, MAX_NOTE_BYTES, faults),
  };
}

/** At least one limit, each in its range. */
function limitsChange(message: WireChangeLimitsRequest, faults: string[]): LimitsChange {
  const change: { -readonly [K in keyof LimitsChange]: LimitsChange[K] } = {};
  for (const name of LIMIT_NAMES) {
    const value = message[name];
    if (value === undefined) continue;
    const { least, most } = LIMIT_RANGES[name];
    if (value < least || value > most) {
      faults.push(`${wireName(name)} is ${value}; it must be from ${least} to ${most}`);
    }
    change[name] = value;
  }
  if (message.prefixQuotas !== null) {
    change.prefixQuotas = message.prefixQuotas.quotas;
    pushSome('prefix_quotas.quotas', quotaFaults('prefix_quotas.quotas', change.prefixQuotas), faults);
  }
  if (Object.keys(change).length === 0) {
    faults.push(`no limit is given: set at least one of ${[...LIMIT_NAMES, 'prefixQuotas'].map(wireName).join(', ')}`);
  }
  return change;
}

/** Adds the first faults of a list, and how many more it has. */
function pushSome(field: string, found: readonly string[], faults: string[]): void {
  faults.push(...found.slice(0, MAX_LISTED));
  if (found.length > MAX_LISTED) faults.push(`${field}: ${found.length - MAX_LISTED} more faults`);
}

/** `queueLimit` → `queue_limit`. */
function wireName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function lease(field: string, ref: WireLeaseRef | null, faults: string[]): LeaseRef {
  if (ref === null) {
    faults.push(`${field} is missing`);
    return { domain: '' as Domain, token: ZERO_REVISION };
  }
  return {
    domain: leasedDomain(`${field}.domain`, ref.domain, faults),
    token: token(`${field}.token`, ref.token, faults),
  };
}

function domain(field: string, value: string, faults: string[]): Domain {
  const fault = domainFault(value);
  if (fault !== undefined) faults.push(`${field} ${fault}`);
  return value as Domain;
}

function leasedDomain(field: string, value: string, faults: string[]): Domain {
  const fault = leasedDomainFault(value);
  if (fault !== undefined) faults.push(`${field} ${fault}`);
  return value as Domain;
}

function requestId(value: string, faults: string[]): RequestId {
  const id = parseRequestId(value);
  if (id === undefined)
    faults.push('request_id must be a UUID in text form, e.g. 123e4567-e89b-42d3-a456-426614174000');
  return id ?? ('' as RequestId);
}

function token(field: string, value: WireInt64, faults: string[]): Revision {
  if (value < 1 || value > Number.MAX_SAFE_INTEGER) {
    faults.push(`${field} is ${value.toString()}; it must be from 1 to 2^53 - 1`);
  }
  return Number(value) as Revision;
}

function seenRevision(value: WireInt64, faults: string[]): Revision {
  if (value < 0 || value > Number.MAX_SAFE_INTEGER) {
    faults.push(`seen_revision is ${value.toString()}; it must be from 0 to 2^53 - 1`);
  }
  return Number(value) as Revision;
}

function ttl(value: number, limits: TtlLimits, faults: string[]): number {
  if (value === 0) return limits.defaultTtlMs;
  if (value < limits.minTtlMs || value > limits.maxTtlMs) {
    faults.push(
      `ttl_ms is ${value}; it must be from ${limits.minTtlMs} to ${limits.maxTtlMs}, or 0 for ${limits.defaultTtlMs}`,
    );
  }
  return value;
}

function metadata(map: Readonly<Record<string, string>>, faults: string[]): Metadata {
  const pairs = Object.entries(map).sort(([left], [right]) => (left < right ? -1 : 1));
  let bytes = 0;
  for (const [key, value] of pairs) bytes += utf8Length(key) + utf8Length(value);
  if (!pairs.flat().every(isText)) {
    faults.push('metadata has a key or a value that is not well-formed UTF-8, or holds U+FFFD');
  }
  if (bytes > MAX_METADATA_BYTES) {
    faults.push(`metadata has ${bytes} bytes in keys and values; at most ${MAX_METADATA_BYTES} are allowed`);
  }
  return pairs;
}

function sized(field: string, value: string, maxBytes: number, faults: string[]): string {
  const bytes = utf8Length(value);
  if (bytes < 1 || bytes > maxBytes) faults.push(`${field} has ${bytes} bytes; it must have 1 to ${maxBytes}`);
  if (!isText(value)) faults.push(`${field} is not well-formed UTF-8, or holds U+FFFD`);
  return value;
}

function freshness(value: WireEnum, faults: string[]): Freshness {
  switch (value) {
    case 'FRESHNESS_UNSPECIFIED':
    case 'FRESHNESS_LINEARIZABLE':
      return 'linearizable';
    case 'FRESHNESS_LOCAL':
      return 'local';
    default:
      faults.push(`freshness ${value} is not known to this version; use LINEARIZABLE or LOCAL`);
      return 'linearizable';
  }
}

function member(value: string, faults: string[]): NodeId | undefined {
  if (value === '') return undefined;
  if (isNodeId(value)) return value;
  faults.push('to_node_id must be 1 to 63 characters of [A-Za-z0-9._-], or empty for the voter furthest ahead');
  return undefined;
}

/** Bytes that are no UTF-8 arrive as U+FFFD or lone surrogates: two different names would become one. */
export function isText(value: string): boolean {
  return value.isWellFormed() && !value.includes(REPLACEMENT);
}
