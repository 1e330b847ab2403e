/**
 * Who may hand operations to the replica: all streams of a node in turn, a few operations each, and no more at once than
 * the node can work on. So what one stream has queued holds up another for a moment at most, however much it is.
 */

/** Operations that all streams of a node together may have under way. */
export const MAX_NODE_RUNNING = 4_096;
/** Operations that a stream may begin before it is another one's turn. */
const TURN = 64;

/** A stream. */
export interface Sharer {
  /** True when it has an operation that may begin, and room for it. */
  readonly startable: boolean;
  /** Begins one; it counts as under way until {@link Shares.freed}. */
  startOne(): void;
}

/** See the head of the file. */
export class Shares {
  readonly #line = new Set<Sharer>();
  #running = 0;
  #scheduled = false;

  /** How many operations are under way. */
  get running(): number {
    return this.#running;
  }

  /** It has something to begin; it gets its turn when this turn of the event loop has been gathered. */
  want(sharer: Sharer): void {
    if (!sharer.startable) return;
    this.#line.add(sharer);
    this.#schedule();
  }

  /** One operation is under way no more. */
  freed(): void {
    this.#running--;
    if (this.#line.size > 0) this.#schedule();
  }

  /** The stream is gone. */
  leave(sharer: Sharer): void {
    this.#line.delete(sharer);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#share();
    });
  }

  #share(): void {
    for (const sharer of this.#line) {
      if (this.#running >= MAX_NODE_RUNNING) return;
      // Behind all others: a set is walked in the order of adding, what is added meanwhile included.
      this.#line.delete(sharer);
      for (let n = 0; n < TURN && this.#running < MAX_NODE_RUNNING && sharer.startable; n++) {
        this.#running++;
        sharer.startOne();
      }
      if (sharer.startable) this.#line.add(sharer);
    }
  }
}
