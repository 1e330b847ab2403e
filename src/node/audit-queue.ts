/**
 * Audit lines on their way to standard error. A line is taken in the middle of the replica's work, so nothing is written
 * then: lines wait here and go out later, a few at a time, by writes that the loop does not wait for. A reader that
 * stands still costs lines, which are counted, and never a leader its leadership.
 */

/** What stops waiting, and lines that are told of. */
export interface AuditQueuePorts<Line> {
  /** The text of a line, with its line end. Called just before it is written, not when it is added. */
  readonly format: (line: Line) => string;
  /** The line that says that `count` lines were dropped. */
  readonly dropped: (count: number) => Line;
  /** Begins to write `text` and calls `done` later, once; with an error when it was not written, or not as a whole. */
  readonly write: (text: string, done: (error: Error | undefined) => void) => void;
  /** Runs `work` soon, when what is under way now is over (`setImmediate`). */
  readonly soon: (work: () => void) => void;
}

/** Lines that wait at most: twice what an expiry storm of 50 000 leases makes. */
export const MAX_AUDIT_LINES = 100_000;
/** Details are dropped when this many wait, so that there is room left for losses. */
export const MAX_AUDIT_DETAILS = 50_000;
/** Bytes of one write: pipes keep up to this many together (PIPE_BUF), so that no other line comes in between. */
const WRITE_BYTES = 4_096;

/** See the head of the file. */
export class AuditQueue<Line> {
  readonly #ports: AuditQueuePorts<Line>;
  #waiting: Line[] = [];
  /** How many of {@link waiting}, from its beginning, have left. */
  #gone = 0;
  /** Since the last line that told of it. */
  #dropped = 0;
  #busy = false;
  #idle: (() => void)[] = [];

  constructor(ports: AuditQueuePorts<Line>) {
    this.#ports = ports;
  }

  /** Takes a line, or drops it when too many wait; a `detail` is dropped first. */
  add(line: Line, detail: boolean): void {
    if (this.#waiting.length - this.#gone >= (detail ? MAX_AUDIT_DETAILS : MAX_AUDIT_LINES)) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(line);
    if (this.#busy) return;
    this.#busy = true;
    this.#ports.soon(() => {
      this.#writeSome();
    });
  }

  /** Resolves when everything that was added has been written, or could not be. */
  idle(): Promise<void> {
    if (!this.#busy) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }

  /** Takes out all that is not being written yet, as text: for a process that is about to end. */
  rest(): string {
    let text = '';
    for (let line = this.#next(); line !== undefined; line = this.#next()) text += this.#ports.format(line);
    return text;
  }

  #writeSome(): void {
    let text = '';
    let bytes = 0;
    let lines = 0;
    // What does not fit any more is formatted a second time, by the next write.
    for (let line = this.#peek(); line !== undefined; line = this.#peek()) {
      const more = this.#ports.format(line);
      bytes += Buffer.byteLength(more);
      if (lines > 0 && bytes > WRITE_BYTES) break;
      this.#next();
      text += more;
      lines++;
    }
    if (lines === 0) {
      this.#busy = false;
      for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    this.#ports.write(text, (error) => {
      // They are told of with the next line that there is: where nothing can be written, nobody would hear it now.
      if (error !== undefined) this.#dropped += lines;
      this.#writeSome();
    });
  }

  /** The line that is next; undefined when none waits. */
  #peek(): Line | undefined {
    const line = this.#waiting[this.#gone];
    return line !== undefined && this.#dropped > 0 ? this.#ports.dropped(this.#dropped) : line;
  }

  /** Takes that line out. */
  #next(): Line | undefined {
    const line = this.#peek();
    if (line === undefined) return undefined;
    if (this.#dropped > 0) {
      this.#dropped = 0;
      return line;
    }
    this.#gone++;
    // Half of it has left: move the rest to the beginning, so that taking one out costs no more than that.
    if (this.#gone * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#gone);
      this.#gone = 0;
    }
    return line;
  }
}
