/** The parts of a simulated world as they see each other. */
import type { Call, Header } from '../../src/base/api.js';
import type { WatchCall } from '../../src/base/watch.js';
import type { WatchSink } from '../../src/server/watch-table.js';
import type { BootId, DirectoryId, NodeId } from '../../src/base/ids.js';
import type { Random } from '../../src/base/random.js';
import type { Member } from '../../src/raft/types.js';
import type { SnapshotReader, Store } from '../../src/replica/ports.js';
import type { CallResult, Event, FormRequest, FormResponse, Genesis, Principal } from '../../src/replica/types.js';
import type { Coverage } from './coverage.js';
import type { Scheduler } from './scheduler.js';

/** What every part is given. Each part gets a stream of chance of its own, so that one does not disturb the others. */
export interface Surroundings {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly coverage: Coverage;
  /**
   * A line of the run's story, in the language of test/scenario; for the digest, and kept for the last events. What
   * `arrives` at a member is for the digest alone: the member's step tells it once more, with its contents.
   */
  readonly trace: (line: string, what?: 'arrives') => void;
}

/** What a data directory is found to be at a start. */
export type Found =
  | { readonly type: 'empty' }
  | { readonly type: 'new'; readonly directory: DirectoryId }
  | { readonly type: 'member'; readonly directory: DirectoryId };

/** What a crash leaves. */
export interface CrashHow {
  /** `unsynced`: power loss, what was not synced may be gone though later synced writes stay. `none`: a killed process. */
  readonly lose: 'unsynced' | 'none';
  /** Whether the write under way reached the disk: not at all, in part (a torn batch or file), or whole but unreported. */
  readonly underWay: 'lost' | 'torn' | 'kept';
}

/** One data directory on one disk. Outlives processes. */
export interface Disk {
  /** As production looks at it. Rejects when it must refuse. */
  inspect(): Promise<Found>;
  /** Gives an empty directory its identity. */
  prepare(): Promise<DirectoryId>;
  /** Makes it a member's, in the steps of production: a crash may come between any two. */
  storeGenesis(genesis: Genesis): Promise<void>;
  /** Opens it for a process; rejects when a check of a start refuses. */
  open(): Promise<Store>;
  /** The process that had it open is gone. Promises of that process never settle any more. */
  crash(how: CrashHow): void;
  /** The write or sync under way, or the next one, fails; once. */
  fail(code: 'EIO' | 'ENOSPC'): void;
  /** No write ends until `resume`. */
  stall(): void;
  resume(): void;
  /**
   * Runs `run`, in a task of its own, once the `count`th operation that writes has begun, of whatever process; takes the
   * place of what was asked before.
   */
  atOperation(count: number, run: () => void): void;
  /** Nothing is asked any more. */
  atNoOperation(): void;
  /** What the start that has just ended should have removed and did not, in words. */
  leftOver(): string | undefined;
  /** Everything on it, as a copy: for rolled-back and cloned directories. Only while no process has it open. */
  copy(): unknown;
  /** Takes the place of what is on it. Only while no process has it open. */
  restore(copy: unknown): void;
  /** Empties it: the machine got a new disk. */
  wipe(): void;
  /**
   * Changes a stored byte; only while no process has it open. False when this kind of disk has no bytes. Afterwards
   * `open` must refuse, or give exactly what it would have given.
   */
  flip(): boolean;
}

/** A running process of a member, as the network sees it. */
export interface Endpoint {
  readonly member: Member;
  readonly boot: BootId;
  readonly genesis: Genesis;
  /** Queues an event for its executor; a process that stands still keeps it. */
  dispatch(event: Event): void;
  openSnapshot(): SnapshotReader;
}

/** A process's peer listener while forming and after. */
export interface FormingEndpoint {
  answer(request: FormRequest, respond: (response: FormResponse) => void): void;
}

/** A process's client listener. */
export interface Server {
  readonly node: NodeId;
  /** False while no process listens: a connect is refused. */
  readonly listening: boolean;
  /**
   * Hands a call to the process; `done` is called at most once, and never when the process ends first: then `lost` is.
   * The returned function is the client's going away.
   */
  call(
    principal: Principal,
    timeoutMs: number,
    call: Call,
    done: (header: Header, result: CallResult) => void,
    lost: () => void,
  ): () => void;
  /** Hands a watch to the process; `lost` is called once when the process ends before the stream does. The returned function closes the stream. */
  watch(principal: Principal, call: WatchCall, sink: WatchSink, lost: () => void): () => void;
}
