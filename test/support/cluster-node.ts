import type { BootId } from '../../src/base/ids.js';
import type { Executor } from '../../src/node/executor.js';
import type { Member } from '../../src/raft/types.js';
import type { Replica } from '../../src/replica/replica.js';
import type { Event } from '../../src/replica/types.js';
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
