/** What callers may ask for, with units, ranges and defaults; and the checks, which report every fault at once. */
import { hostname } from 'node:os';
import {
  domainFault,
  leasedDomainFault,
  MAX_COUNTING_NAME_BYTES,
  MAX_DOMAIN_BYTES,
  MAX_SLOTS,
} from '../base/domain.js';
import { isNodeId } from '../base/ids.js';
import type { Domain, NodeId } from '../base/ids.js';
import type { Metadata } from '../base/api.js';
import {
  DEFAULT_CALL_MS,
  DEFAULT_TTL_MS,
  MAX_CALL_MS,
  MAX_COOL_DOWN_MS,
  MAX_HOLDER_BYTES,
  MAX_METADATA_BYTES,
  MAX_TTL_MS,
  MAX_WAIT_MS,
} from '../base/limits.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import { utf8Length } from '../base/utf8.js';
import { InvalidOptionsError } from './errors.js';
import type { FencepostError } from './errors.js';

/** For {@link connect}. */
export interface ConnectOptions {
  /** The client addresses of the nodes, `host:port` each (IPv6 in brackets); 1 to 100, best all of them. */
  readonly endpoints: readonly string[];
  /**
   * The name shown to operators as the holder of this client's leases; 1–255 bytes. Default: `<host name>/pid-<pid>`.
   */
  readonly holder?: string;
  /**
   * How long one call may take with all its repetitions, in milliseconds; 100 to 3 600 000. Default: 30 000.
   * Renewals have deadlines of their own, from the TTL.
   */
  readonly callTimeoutMs?: number;
  /**
   * How calls travel. `pipelined`: acquires, renewals, releases and withdrawals share one stream to a node, many in a
   * message; by far the cheaper way for a program that does many at a time, and not dearer for others. `unary`: each is a
   * call of its own, for a proxy that takes no long streams. Default: `pipelined`.
   */
  readonly transport?: 'pipelined' | 'unary';
}

/** For `acquire`, `tryAcquire` and `withLease`. */
export interface AcquireOptions {
  /**
   * For how long the lease outlives its last renewal, in milliseconds: from the cluster's minimum (3 000) to
   * 86 400 000. Default: 15 000. Shorter means a sooner takeover after a crash, and less time to survive a failover.
   */
  readonly ttlMs?: number;
  /**
   * How long to wait in the domain's queue while another holds it, in milliseconds; 0 to 86 400 000. Default: 0, do not
   * wait. First come, first served.
   *
   * While nobody answers, the place in the queue is kept for five seconds. An acquire never takes longer than `waitMs` and
   * one `callTimeoutMs` together.
   */
  readonly waitMs?: number;
  /**
   * How long the domain stays closed if this lease expires (not when it is released), in milliseconds; 0 to 600 000.
   * Default: 0. For resources that cannot compare tokens. A lease with it that is lost is left to expire.
   */
  readonly coolDownMs?: number;
  /**
   * 1: the domain has one holder. n > 1, up to 1 000: any one of n slots of this name; the lease's domain is then
   * `<name>#0` to `<name>#<n-1>`, each with an order of tokens of its own. The first acquire of a name fixes n for good.
   * Default: 1.
   */
  readonly slots?: number;
  /** Shown to operators with the lease; keys and values together at most 4 096 bytes. Default: none. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Gives the attempt up when it aborts; what may have been granted is withdrawn. Default: none. */
  readonly signal?: AbortSignal;
}

/** For `observe`. */
export interface ObserveOptions {
  /**
   * The first revision of interest, e.g. that of the last observation plus 1. Default: from now on, which begins with the
   * first observation.
   */
  readonly from?: bigint;
  /** Ends the observation when it aborts; the loop over it then ends without an error. Default: none. */
  readonly signal?: AbortSignal;
}

/** {@link ConnectOptions}, checked and complete. */
export interface ClientSettings {
  readonly endpoints: readonly string[];
  readonly holder: string;
  readonly callTimeoutMs: number;
}

/** {@link AcquireOptions}, checked and complete. */
export interface AcquireSettings {
  readonly domain: Domain;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly coolDownMs: number;
  readonly slots: number;
  readonly metadata: Metadata;
  readonly signal: AbortSignal | undefined;
  /** Told of each failure after which a waiting acquire asks again by itself. */
  readonly retrying?: ((error: FencepostError) => void) | undefined;
}

/** What is observed, and from when on, checked. */
export interface ObserveSettings {
  readonly prefix: string;
  /** 0: from now on. */
  readonly from: Revision;
  readonly signal: AbortSignal | undefined;
}

const TRANSPORTS: readonly unknown[] = ['pipelined', 'unary'];
const MAX_ENDPOINTS = 100;
const MIN_CALL_MS = 100;
const ENDPOINT = /^(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/[\]]+):(\d{1,5})$/;

/** Checks the options of a client. */
export function clientSettings(options: ConnectOptions): ClientSettings {
  refuseNoObject('connect', options);
  const { endpoints, holder = defaultHolder(), callTimeoutMs = DEFAULT_CALL_MS, transport = 'pipelined' } = options;
  const faults: string[] = [];
  if (!Array.isArray(endpoints) || endpoints.length === 0 || endpoints.length > MAX_ENDPOINTS) {
    faults.push(`endpoints must be a list of 1 to ${MAX_ENDPOINTS} addresses`);
  } else {
    const seen = new Set<unknown>();
    for (const endpoint of endpoints as readonly unknown[]) {
      const port = typeof endpoint === 'string' ? ENDPOINT.exec(endpoint)?.[1] : undefined;
      if (port === undefined || Number(port) < 1 || Number(port) > 65_535) {
        faults.push(`endpoints: ${show(endpoint)} is no host:port (IPv6 in brackets, port 1 to 65535)`);
      }
      if (seen.has(endpoint)) faults.push(`endpoints: ${show(endpoint)} is there twice`);
      seen.add(endpoint);
    }
  }
  if (typeof holder !== 'string' || !holder.isWellFormed() || !within(utf8Length(holder), 1, MAX_HOLDER_BYTES)) {
    faults.push(`holder must be well-formed text of 1 to ${MAX_HOLDER_BYTES} bytes`);
  }
  if (!isInteger(callTimeoutMs, MIN_CALL_MS, MAX_CALL_MS)) {
    faults.push(`callTimeoutMs must be an integer from ${MIN_CALL_MS} to ${MAX_CALL_MS}, not ${show(callTimeoutMs)}`);
  }
  if (!TRANSPORTS.includes(transport))
    faults.push(`transport must be ${TRANSPORTS.join(' or ')}, not ${show(transport)}`);
  refuse('connect', faults);
  return { endpoints: [...endpoints], holder, callTimeoutMs };
}

/** Checks what an acquire asks for. */
export function acquireSettings(domain: string, options: AcquireOptions): AcquireSettings {
  refuseNoObject('acquire', options);
  const { ttlMs = DEFAULT_TTL_MS, waitMs = 0, coolDownMs = 0, slots = 1, metadata = {}, signal } = options;
  const faults = domainFaults(domain);
  if (!isInteger(ttlMs, 1, MAX_TTL_MS))
    faults.push(`ttlMs must be an integer from 1 to ${MAX_TTL_MS}, not ${show(ttlMs)}`);
  if (!isInteger(waitMs, 0, MAX_WAIT_MS))
    faults.push(`waitMs must be an integer from 0 to ${MAX_WAIT_MS}, not ${show(waitMs)}`);
  if (!isInteger(coolDownMs, 0, MAX_COOL_DOWN_MS))
    faults.push(`coolDownMs must be an integer from 0 to ${MAX_COOL_DOWN_MS}, not ${show(coolDownMs)}`);
  if (!isInteger(slots, 1, MAX_SLOTS))
    faults.push(`slots must be an integer from 1 to ${MAX_SLOTS}, not ${show(slots)}`);
  if (slots > 1 && typeof domain === 'string' && domain.length > MAX_COUNTING_NAME_BYTES)
    faults.push(`domain ${show(domain)} has more than the ${MAX_COUNTING_NAME_BYTES} bytes of a name with slots`);
  if (!isSignal(signal)) faults.push('signal must be an AbortSignal');
  const pairs = isObject(metadata) ? Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)) : [];
  if (!isObject(metadata)) {
    faults.push(`metadata must be an object with text as values, not ${show(metadata)}`);
  } else if (pairs.some((pair) => pair.some((text: unknown) => typeof text !== 'string' || !text.isWellFormed()))) {
    faults.push('metadata must have well-formed text as keys and values');
  } else if (pairs.reduce((sum, [key, value]) => sum + utf8Length(key) + utf8Length(value), 0) > MAX_METADATA_BYTES) {
    faults.push(`metadata has more than ${MAX_METADATA_BYTES} bytes, keys and values together`);
  }
  refuse('acquire', faults);
  return { domain: domain as Domain, ttlMs, waitMs, coolDownMs, slots, metadata: pairs, signal };
}

/** Checks a name with slots, and their number. */
export function checkedSlots(name: string, count: number): Domain {
  return acquireSettings(name, { slots: count }).domain;
}

/** Checks what is to be observed. */
export function observeSettings(prefix: string, options: ObserveOptions): ObserveSettings {
  refuseNoObject('observe', options);
  const { from, signal } = options;
  const faults: string[] = [];
  if (typeof prefix !== 'string' || !prefix.isWellFormed() || utf8Length(prefix) > MAX_DOMAIN_BYTES) {
    faults.push(`prefix must be well-formed text of at most ${MAX_DOMAIN_BYTES} bytes`);
  }
  if (from !== undefined && (typeof from !== 'bigint' || from < 1n || from > BigInt(Number.MAX_SAFE_INTEGER))) {
    faults.push(`from must be a bigint from 1 to 2^53 - 1, not ${show(from)}`);
  }
  if (!isSignal(signal)) faults.push('signal must be an AbortSignal');
  refuse('observe', faults);
  return { prefix, from: from === undefined ? ZERO_REVISION : (Number(from) as Revision), signal };
}

/** Checks what a lease may be of: a domain, or a slot. */
export function checkedDomain(domain: string): Domain {
  refuse('call', domainFaults(domain, leasedDomainFault));
  return domain as Domain;
}

/** Checks a domain and a token. */
export function checkedLease(domain: string, token: bigint): { domain: Domain; token: Revision } {
  const faults = domainFaults(domain, leasedDomainFault);
  if (typeof token !== 'bigint' || token < 1n || token > BigInt(Number.MAX_SAFE_INTEGER)) {
    faults.push(`token must be a bigint from 1 to 2^53 - 1, not ${show(token)}`);
  }
  refuse('call', faults);
  return { domain: domain as Domain, token: Number(token) as Revision };
}

/** Checks the name of a node. */
export function checkedNode(name: string): NodeId {
  refuse('call', isNodeId(name) ? [] : [`node ${show(name)} must be 1–63 characters of [A-Za-z0-9._-]`]);
  return name as NodeId;
}

function defaultHolder(): string {
  return `${hostname()}/pid-${process.pid}`;
}

function domainFaults(domain: string, faultOf: (text: string) => string | undefined = domainFault): string[] {
  const fault = typeof domain === 'string' ? faultOf(domain) : 'must be text';
  return fault === undefined ? [] : [`domain ${show(domain)} ${fault}`];
}

/** What is called under a lease; looked at before the lease is acquired. */
export function checkWork(what: string, work: unknown): void {
  refuse(
    what,
    typeof work === 'function' ? [] : ['the last argument must be the function that is called with the lease'],
  );
}

function refuseNoObject(what: string, options: unknown): void {
  if (!isObject(options)) refuse(what, [`options must be an object, not ${show(options)}`]);
}

/** Also one of another realm, or of a library that has its own. */
function isSignal(value: unknown): boolean {
  if (value === undefined) return true;
  const { aborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>;
  return typeof aborted === 'boolean' && typeof addEventListener === 'function';
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuse(what: string, faults: readonly string[]): void {
  if (faults.length > 0) throw new InvalidOptionsError(`${what}: ${faults.join('; ')}.`);
}

function isInteger(value: unknown, least: number, greatest: number): boolean {
  return Number.isInteger(value) && within(value as number, least, greatest);
}

function within(value: number, least: number, greatest: number): boolean {
  return value >= least && value <= greatest;
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
