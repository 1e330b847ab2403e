/** What callers may ask for, with units, ranges and defaults; and the checks, which report every fault at once. */
import { hostname } from 'node:os';
import { domainFault } from '../base/domain.js';
import { isNodeId } from '../base/ids.js';
import type { Domain, NodeId } from '../base/ids.js';
import type { Metadata } from '../base/api.js';
import {
  DEFAULT_CALL_MS,
  DEFAULT_TTL_MS,
  MAX_CALL_MS,
  MAX_HOLDER_BYTES,
  MAX_METADATA_BYTES,
  MAX_TTL_MS,
} from '../base/limits.js';
import type { Revision } from '../base/revision.js';
import { utf8Length } from '../base/utf8.js';
import { FencepostError } from './errors.js';

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
}

/** For `acquire`, `tryAcquire` and `withLease`. */
export interface AcquireOptions {
  /**
   * For how long the lease outlives its last renewal, in milliseconds: from the cluster's minimum (3 000) to
   * 86 400 000. Default: 15 000. Shorter means a sooner takeover after a crash, and less time to survive a failover.
   */
  readonly ttlMs?: number;
  /**
   * How long to try while another holds the domain, in milliseconds; 0 to 86 400 000. Default: 0, one try. There is no
   * queue yet: the client asks again, at irregular intervals up to a second, each time under a new request id.
   *
   * When no node answers, the error comes after `callTimeoutMs`, however long `waitMs` is. An acquire never takes longer
   * than `waitMs` and one `callTimeoutMs` together.
   */
  readonly waitMs?: number;
  /** Shown to operators with the lease; keys and values together at most 4 096 bytes. Default: none. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Gives the attempt up when it aborts; what may have been granted is withdrawn. Default: none. */
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
  readonly metadata: Metadata;
  readonly signal: AbortSignal | undefined;
}

const MAX_ENDPOINTS = 100;
const MIN_CALL_MS = 100;
const MAX_WAIT_MS = 86_400_000;
const ENDPOINT = /^(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/[\]]+):(\d{1,5})$/;

/** Checks the options of a client. */
export function clientSettings(options: ConnectOptions): ClientSettings {
  const { endpoints, holder = defaultHolder(), callTimeoutMs = DEFAULT_CALL_MS } = options;
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
  refuse('connect', faults);
  return { endpoints: [...endpoints], holder, callTimeoutMs };
}

/** Checks what an acquire asks for. */
export function acquireSettings(domain: string, options: AcquireOptions): AcquireSettings {
  const { ttlMs = DEFAULT_TTL_MS, waitMs = 0, metadata = {}, signal } = options;
  const faults = domainFaults(domain);
  if (!isInteger(ttlMs, 1, MAX_TTL_MS))
    faults.push(`ttlMs must be an integer from 1 to ${MAX_TTL_MS}, not ${show(ttlMs)}`);
  if (!isInteger(waitMs, 0, MAX_WAIT_MS))
    faults.push(`waitMs must be an integer from 0 to ${MAX_WAIT_MS}, not ${show(waitMs)}`);
  const pairs = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  if (pairs.some((pair) => pair.some((text: unknown) => typeof text !== 'string' || !text.isWellFormed()))) {
    faults.push('metadata must have well-formed text as keys and values');
  } else if (pairs.reduce((sum, [key, value]) => sum + utf8Length(key) + utf8Length(value), 0) > MAX_METADATA_BYTES) {
    faults.push(`metadata has more than ${MAX_METADATA_BYTES} bytes, keys and values together`);
  }
  refuse('acquire', faults);
  return { domain: domain as Domain, ttlMs, waitMs, metadata: pairs, signal };
}

/** Checks a domain. */
export function checkedDomain(domain: string): Domain {
  refuse('call', domainFaults(domain));
  return domain as Domain;
}

/** Checks a domain and a token. */
export function checkedLease(domain: string, token: bigint): { domain: Domain; token: Revision } {
  const faults = domainFaults(domain);
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

function domainFaults(domain: string): string[] {
  const fault = typeof domain === 'string' ? domainFault(domain) : 'must be text';
  return fault === undefined ? [] : [`domain ${show(domain)} ${fault}`];
}

function refuse(what: string, faults: readonly string[]): void {
  if (faults.length > 0) throw new FencepostError('INVALID_OPTIONS', `${what}: ${faults.join('; ')}.`);
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
