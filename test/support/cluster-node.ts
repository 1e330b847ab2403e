import type { BootId, NodeId } from '../../src/base/ids.js';
import type { StateLimits } from '../../src/lease/types.js';
import type { Executor } from '../../src/node/executor.js';
import type { Member } from '../../src/raft/types.js';
import type { Replica } from '../../src/replica/replica.js';
import type { CallResult, Event, ReplicaOptions } from '../../src/replica/types.js';
import type { MemoryDisk, MemoryStore } from '../../src/testing/memory-store.js';

/** One node: its disk outlives its process. */
export interface ClusterNode {
  readonly member: Member;
  readonly disk: MemoryDisk;
  running:
    | { readonly executor: Executor; readonly replica: Replica; readonly store: MemoryStore; readonly boot: BootId }
    | undefined;
  paused: boolean;
  readonly inbox: Event[];
  readonly logs: {
    readonly level: string;
    readonly message: string;
    readonly fields: Readonly<Record<string, string | number>>;
  }[];
  failed: { readonly cause: 'disk' | 'assertion'; readonly error: Error } | undefined;
}

/** What a test may set. */
export interface ClusterSettings {
  readonly nodes?: number;
  readonly seed?: number;
  readonly options?: Partial<ReplicaOptions>;
  readonly holdMs?: number;
  readonly limits?: Partial<StateLimits>;
  /** Writes are reported before they are synced: a crash loses what was acknowledged. Only for the deliberate break. */
  readonly sync?: boolean;
}

/** A client's call and what became of it. */
export interface ClusterCall {
  readonly id: number;
  readonly node: NodeId;
  readonly sentAt: number;
  result: CallResult | undefined;
  answeredAt: number | undefined;
}
