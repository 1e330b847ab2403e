/** The settings of a node. `load-config.ts` reads them, `config-fields.ts` says what each may be. */
import type { NodeId } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import type { PrefixQuota } from '../base/shared-limits.js';
import type { LogLevel } from './log.js';

/** An initial member as every member's configuration names it. */
export interface MemberConfig {
  readonly nodeId: NodeId;
  /** `host:port` at which the others find it; resolved at every dial. */
  readonly peerAddress: string;
}

/** What `fencepost start` runs a node with. Deep-frozen. */
export interface NodeConfig {
  /** Name of the cluster, 1–63 characters of `[A-Za-z0-9._-]`. Guards keep it beside their fences. Required. */
  readonly cluster: string;
  /** Name of this node, one of `members`. Required. */
  readonly nodeId: NodeId;
  /** Directory of log and state, absolute here; a relative one starts at the working directory. Required. */
  readonly dataDir: string;
  /** `host:port` where clients are served. Default 127.0.0.1:7101. */
  readonly clientAddress: string;
  /** `host:port` where this node listens for the others. Default 127.0.0.1:7201. */
  readonly peerAddress: string;
  /** All initial members, this node among them; the same list on each. Required. */
  readonly members: readonly MemberConfig[];
  /** Whether an empty data directory may form a new cluster (design: forming). Default false. */
  readonly form: boolean;
  /** When forming: the first token is greater than this revision. Text in the file. Default 0, none. */
  readonly floor: Revision;
  /** When forming: milliseconds in which nothing is granted, 0–86 400 000. Default 0. */
  readonly holdMs: number;
  /** Says that listening without TLS where other machines can connect is meant. Default false. */
  readonly insecure: boolean;
  /** Bytes that must be free for new leases to be granted. Default 536 870 912 (512 MiB). */
  readonly diskFloorBytes: number;
  /** Milliseconds between two looks at the clock; every time-out is a multiple. 1–1 000, default 10. */
  readonly tickMs: number;
  /** Milliseconds between a leader's heartbeats. Default 100. */
  readonly heartbeatMs: number;
  /** Least election time-out in milliseconds, at least three heartbeats. Default 500. */
  readonly electionMinMs: number;
  /** Greatest election time-out in milliseconds, at least 1.5 times the least, or votes split. Default 1 000. */
  readonly electionMaxMs: number;
  /** TTL in milliseconds of a lease whose client names none: from three times `electionMaxMs`, the least that a client may ask for, to a day. Default 15 000. */
  readonly defaultTtlMs: number;
  /**
   * When forming: requests that may wait for one domain, 0–1 000 000 000; the first of the limits that all members share.
   * Later it changes nothing (an operator does, by `fencepost limits set`), and a member that has others than the cluster
   * says so. Default 1 000.
   */
  readonly queueLimit: number;
  /** When forming: leases that one principal may hold, 1–1 000 000 000. Default 1 000 000. */
  readonly leasesPerPrincipal: number;
  /** When forming: requests of one principal that may wait, 0–1 000 000 000. Default 100 000. */
  readonly waitersPerPrincipal: number;
  /** When forming: what all principals together may have below a prefix; at most 100, each 0–1 000 000 000. Default none. */
  readonly prefixQuotas: readonly PrefixQuota[];
  /** Least level that is logged; audit lines always are. Default info. */
  readonly logLevel: LogLevel;
  /** Whether this node, while it leads, writes an audit line for each grant. Default false. */
  readonly auditGrants: boolean;
  /** Whether this node, while it leads, writes an audit line for each release and withdrawal. Default false. */
  readonly auditReleases: boolean;
}
