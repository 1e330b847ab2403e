/**
 * Which endpoint gets the next attempt: the leader when an endpoint is known to be it, else the one that worked last,
 * else the next that is not to be avoided. Learns from headers, refuses what is of an older history. Reads no clock.
 */
import type { Header } from '../base/api.js';
import type { Reason } from '../base/errors.js';
import type { NodeId } from '../base/ids.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import type { Channel } from './channel.js';
import { OldClusterError } from './errors.js';

/** One configured endpoint. Only {@link Endpoints} writes to it. */
export interface Endpoint {
  /** `host:port` */
  readonly address: string;
  readonly channel: Channel;
  /** Learnt from headers; an address may come to belong to another node. */
  node: NodeId | undefined;
  /** Not to be chosen before this moment of the monotonic clock, while another can be. */
  avoidUntilMs: number;
  /** Silences in a row. */
  faults: number;
}

/** A silent endpoint is avoided for this long, twice as long after each further silence, in milliseconds. */
const AVOID_MS = 500;
const MAX_AVOID_MS = 10_000;
/** An endpoint of an older history is avoided for this long, in milliseconds. */
const AVOID_OLD_MS = 60_000;
/** An endpoint that answers, but cannot help now, is avoided for this long, in milliseconds. */
const AVOID_HELPLESS_MS = 100;

/** All endpoints of one client, and what is known of the cluster behind them. */
export class Endpoints {
  readonly all: readonly Endpoint[];
  #preferred: number;
  #leader: NodeId | undefined;
  #incarnation = '';
  #revision: Revision = ZERO_REVISION;

  /** `first` is the index of the endpoint to begin with: many clients with one list spread over it. */
  constructor(endpoints: readonly (readonly [address: string, channel: Channel])[], first: number) {
    this.all = endpoints.map(([address, channel]) => ({
      address,
      channel,
      node: undefined,
      avoidUntilMs: -Infinity,
      faults: 0,
    }));
    this.#preferred = first;
  }

  /** The greatest revision that a header showed; 0 before the first. */
  get seenRevision(): Revision {
    return this.#revision;
  }

  /** The endpoint for the next attempt. */
  choose(nowMs: number): Endpoint {
    const usable = (endpoint: Endpoint): boolean => endpoint.avoidUntilMs <= nowMs;
    const inOrder = this.all.map((_, offset) => this.#at(this.#preferred + offset));
    if (this.#leader !== undefined) {
      const leader = this.all.find((endpoint) => endpoint.node === this.#leader);
      // Not known which endpoint it is: one that has not said its name yet may be it.
      const direct = leader ?? inOrder.find((endpoint) => endpoint.node === undefined && usable(endpoint));
      if (direct !== undefined && usable(direct)) return direct;
    }
    const chosen =
      inOrder.find(usable) ?? inOrder.reduce((best, other) => (other.avoidUntilMs < best.avoidUntilMs ? other : best));
    this.#preferred = this.all.indexOf(chosen);
    return chosen;
  }

  /** True when an endpoint is left that need not be avoided. */
  anyUsable(nowMs: number): boolean {
    return this.all.some((endpoint) => endpoint.avoidUntilMs <= nowMs);
  }

  /**
   * The endpoint answered with this header. Returns an error, and learns nothing, when the header is of another
   * incarnation than one that was seen and of a lower revision: of a history that was left behind (design 9).
   */
  learn(endpoint: Endpoint, header: Header, nowMs: number): OldClusterError | undefined {
    if (header.incarnation !== '') {
      const other = this.#incarnation !== '' && header.incarnation !== this.#incarnation;
      if (other && header.revision < this.#revision) {
        this.#avoid(endpoint, nowMs + AVOID_OLD_MS);
        return new OldClusterError(
          `${endpoint.address} (node ${header.node}) is of incarnation ${header.incarnation} at revision ${header.revision}, ` +
            `older than revision ${this.#revision} of incarnation ${this.#incarnation}, which this client has seen. ` +
            'Its answer is not used: stop that node, or take it out of the endpoints.',
        );
      }
      this.#incarnation = header.incarnation;
      if (header.revision > this.#revision) this.#revision = header.revision;
    }
    endpoint.node = header.node;
    this.#leader = header.leader;
    return undefined;
  }

  /** The endpoint gave an answer that counts. */
  worked(endpoint: Endpoint): void {
    endpoint.faults = 0;
    endpoint.avoidUntilMs = -Infinity;
  }

  /** The endpoint gave no word in time. */
  silent(endpoint: Endpoint, nowMs: number): void {
    this.#avoid(endpoint, nowMs + Math.min(AVOID_MS * 2 ** Math.min(endpoint.faults, 10), MAX_AVOID_MS));
    endpoint.faults++;
  }

  /** The endpoint answered with an error that a repetition may cure. */
  failed(endpoint: Endpoint, reason: Reason, nowMs: number): void {
    switch (reason) {
      case 'TIMED_OUT':
        this.silent(endpoint, nowMs);
        return;
      case 'NO_LEADER':
      case 'LEADER_CHANGED':
      case 'SHUTTING_DOWN':
      case 'TOO_MANY_HELD_CALLS':
      case 'NOT_FORMED':
        this.#leader = undefined;
        this.#avoid(endpoint, nowMs + AVOID_HELPLESS_MS);
        return;
      // The leader's own trouble, to which every other node would pass the call on; and what no repetition cures.
      case 'OVERLOADED':
      case 'QUOTA_EXCEEDED':
      case 'DISK_FULL':
      case 'TRANSFER_FAILED':
      case 'INVALID_REQUEST':
      case 'REQUEST_ID_REUSED':
      case 'REQUEST_TOO_OLD':
      case 'NOT_A_VOTER':
      case 'UNKNOWN_MEMBER':
      case 'INTERNAL':
        return;
    }
  }

  #avoid(endpoint: Endpoint, untilMs: number): void {
    endpoint.avoidUntilMs = untilMs;
    if (this.#at(this.#preferred) === endpoint) this.#preferred = (this.#preferred + 1) % this.all.length;
  }

  #at(index: number): Endpoint {
    const endpoint = this.all[index % this.all.length];
    if (endpoint === undefined) throw new RangeError('a client needs at least one endpoint');
    return endpoint;
  }
}
