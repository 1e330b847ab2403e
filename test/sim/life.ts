/** A member's process, and how it ends. */
import type { BootId } from '../../src/base/ids.js';
import type { Executor } from '../../src/node/executor.js';
import type { Store } from '../../src/replica/ports.js';
import type { Replica } from '../../src/replica/replica.js';
import type { SimForming } from './forming-driver.js';
import type { Listener } from './listener.js';
import type { Process } from './observation.js';

/** The name of every simulated cluster. */
export const CLUSTER = 'sim';

/** Why a process ended by itself. */
export type Ending =
  | { readonly type: 'stopped' }
  /** A check of the start, or of forming, says that it may not run. */
  | { readonly type: 'refused'; readonly message: string; readonly where: 'directory' | 'forming' }
  | { readonly type: 'disk'; readonly error: Error }
  | { readonly type: 'assertion'; readonly error: Error };

/** One process on its machine. */
export interface Life {
  readonly boot: BootId;
  readonly run: number;
  paused: boolean;
  /** What happened to it while it stood still; its timers apart from what arrived. */
  held: { readonly task: () => void; readonly timer: boolean }[];
  forming: SimForming | undefined;
  running:
    | {
        readonly executor: Executor;
        readonly replica: Replica;
        readonly process: Process;
        readonly listener: Listener;
      }
    | undefined;
  store: Store | undefined;
}
