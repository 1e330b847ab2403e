/** The one queue of a data directory: log writes, cuts and chunks, in the order submitted, one under way at a time. */
import type { LogWrite } from '../raft/types.js';
import type { StoreListener } from '../replica/ports.js';
import type { SnapshotChunk } from '../replica/types.js';
import type { DiskState } from './disk-state.js';
import { merge, performLogWrite, single, type MergedWrite } from './write-log.js';
import { performCut, performStage, sweepSome, type EncodedCut } from './write-table.js';

type Job =
  | { readonly type: 'log'; readonly write: MergedWrite }
  | { readonly type: 'cut'; readonly cut: EncodedCut }
  | { readonly type: 'stage'; readonly chunk: SnapshotChunk }
  | { readonly type: 'sweep'; readonly prefix: number };

/** Carries jobs out until one fails; then reports that, once, and nothing ever again. */
export class WriteQueue {
  readonly #disk: DiskState;
  readonly #jobs: Job[] = [];
  #listener: StoreListener | undefined;
  #running: Promise<void> | undefined;
  #failed = false;

  constructor(disk: DiskState) {
    this.#disk = disk;
  }

  /** From now on outcomes are reported. */
  listen(listener: StoreListener): void {
    this.#listener = listener;
  }

  /** Takes a log write; joins it to the one before it in the queue if that still waits. */
  log(write: LogWrite): void {
    const tail = this.#jobs.at(-1);
    const merged = tail?.type === 'log' ? merge(tail.write, write) : undefined;
    if (merged !== undefined) this.#jobs.pop();
    this.#push({ type: 'log', write: merged ?? single(write) });
  }

  /** Takes a cut. */
  cut(cut: EncodedCut): void {
    this.#push({ type: 'cut', cut });
  }

  /** Takes a chunk of a snapshot. */
  stage(chunk: SnapshotChunk): void {
    this.#push({ type: 'stage', chunk });
  }

  /** The disk failed, here or elsewhere: the rest of the queue is not carried out. */
  fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#jobs.length = 0;
    this.#listener?.failed(error instanceof Error ? error : new Error(String(error)));
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    await this.#running;
  }

  #push(job: Job): void {
    if (this.#failed) return;
    this.#jobs.push(job);
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // Leaves the caller's turn first: what it submits in the same turn is merged.
    await Promise.resolve();
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      try {
        await this.#perform(job);
      } catch (error) {
        this.fail(error);
      }
    }
    this.#running = undefined;
  }

  async #perform(job: Job): Promise<void> {
    const disk = this.#disk;
    switch (job.type) {
      case 'log': {
        const before = disk.table.prefix;
        await performLogWrite(disk, job.write);
        if (disk.table.prefix !== before) this.#jobs.push({ type: 'sweep', prefix: before });
        for (const seq of job.write.seqs)
          this.#report((listener) => {
            listener.written(seq);
          });
        return;
      }
      case 'cut':
        if (await performCut(disk, job.cut))
          this.#report((listener) => {
            listener.cutWritten(job.cut.snapshot.index);
          });
        return;
      case 'stage': {
        const left = await performStage(disk, job.chunk);
        if (left !== undefined) this.#jobs.push({ type: 'sweep', prefix: left });
        this.#report((listener) => {
          listener.staged(job.chunk.request, job.chunk.sequence);
        });
        return;
      }
      case 'sweep':
        if (await sweepSome(disk, job.prefix)) this.#jobs.push(job);
        return;
    }
  }

  /** Silent after a failure, which may have come from the mark's timer meanwhile. */
  #report(tell: (listener: StoreListener) => void): void {
    if (!this.#failed && this.#listener !== undefined) tell(this.#listener);
  }
}
