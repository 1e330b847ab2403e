/**
 * Sends one snapshot to one follower over a connection of its own: the twin of `transport/snapshot-sender.ts`. It reads
 * the store as production does, by promises; nothing of it goes on when its process is gone.
 */
import { AssertionFailed } from '../../../src/base/assert.js';
import type { Member } from '../../../src/raft/types.js';
import { CONNECT_TIMEOUT_MS } from '../../../src/transport/channel.js';
import { helloFault } from '../../../src/transport/greeting.js';
import type { Dialled, Network } from './dialling.js';
import type { SimProcess } from './process.js';

/** Chunks that may be under way, or come and not read. */
const WINDOW = 3;

/** One transfer. */
export interface SnapshotJob {
  readonly to: Member;
  readonly term: number;
  readonly request: number;
}

/** How a transfer ended; `index` is that of the snapshot, 0 when none of it was read. */
export interface SnapshotOutcome {
  readonly type: 'done' | 'failed' | 'aborted';
  readonly index: number;
}

/** See the head of the file. */
export class SnapshotSender {
  readonly #network: Network;
  readonly #process: SimProcess;
  readonly #job: SnapshotJob;
  readonly #dial: Dialled;
  #phase: 'greeting' | 'sending' | 'ended' = 'greeting';
  #aborted = false;
  #failed = false;
  #done = false;
  #index = 0;
  /** Chunks that were sent and not read. */
  #unread = 0;
  #wake: (() => void) | undefined;

  /** Begins at once; `over` is called once, later, when the transfer has ended; never when its process is gone. */
  constructor(network: Network, process: SimProcess, job: SnapshotJob, over: (outcome: SnapshotOutcome) => void) {
    this.#network = network;
    this.#process = process;
    this.#job = job;
    network.wire.surroundings.coverage.count('snapshot transfer begun');
    this.#dial = network.dial(process, job.to.node, 'snapshot', {
      answered: (carried) => {
        const other = carried();
        const fits = helloFault(process.hello, other, job.to.node) === undefined;
        if (!fits || other.directory !== job.to.directory) this.#end('not whom the snapshot is for');
        else if (this.#phase === 'greeting') this.#phase = 'sending';
        this.#wake?.();
      },
      read: () => {
        this.#unread--;
        this.#wake?.();
      },
      done: (carried) => {
        if (carried() === job.request) this.#done = true;
        this.#wake?.();
      },
      lost: (reason) => {
        this.#end(reason);
      },
    });
    const report = (ended: 'done' | 'failed'): void => {
      process.run(() => {
        over({ type: this.#aborted ? 'aborted' : ended, index: this.#index });
      });
    };
    this.#run().then(
      () => {
        report(this.#done ? 'done' : 'failed');
      },
      (error: unknown) => {
        if (error instanceof AssertionFailed) this.#network.raise(error);
        else report('failed');
      },
    );
  }

  /** Ends the transfer. */
  abort(): void {
    this.#aborted = true;
    this.#end('aborted');
  }

  async #run(): Promise<void> {
    const cancelWatchdog = this.#process.after(CONNECT_TIMEOUT_MS, () => {
      this.#end('no answer');
    });
    try {
      await this.#until(() => this.#phase === 'sending');
      cancelWatchdog();
      if (!this.#failed) await this.#sendAll();
      await this.#until(() => this.#done);
    } finally {
      cancelWatchdog();
      this.#end('ended');
    }
  }

  async #sendAll(): Promise<void> {
    const { term, request } = this.#job;
    const reader = this.#process.endpoint.openSnapshot();
    try {
      let complete = false;
      for (let sequence = 0; !this.#failed; sequence++) {
        const piece = await reader.next(this.#network.wire.parameters.chunkBytes);
        await this.#process.running();
        if (piece === undefined) break;
        this.#index = piece.meta.index;
        complete = piece.total !== undefined;
        if (this.#isOver()) break;
        this.#unread++;
        this.#dial.send({
          type: 'chunk',
          carried: this.#network.carriage.chunk({ ...piece, term, request, sequence }),
        });
        await this.#until(() => this.#unread < WINDOW);
      }
      if (!complete && !this.#failed) throw new Error('the snapshot ended without its last chunk');
    } finally {
      await reader.close();
    }
  }

  /** Waits for `condition`, which only what comes over the stream changes, or for the end of the transfer. */
  async #until(condition: () => boolean): Promise<void> {
    while (!condition() && !this.#failed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Apart, because a wait may have come between two looks at it. */
  #isOver(): boolean {
    return this.#failed;
  }

  /** No more is sent. A transfer that is done stays done. */
  #end(reason: string): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    if (!this.#done) this.#failed = true;
    this.#dial.stream.close('dialer', 'reset', reason);
    this.#wake?.();
  }
}
