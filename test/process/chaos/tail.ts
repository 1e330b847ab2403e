/** Reads the notebooks of several processes while they are written, and puts their events in the order of their times. */
import { closeSync, openSync, readSync } from 'node:fs';
import { now } from './clock.js';

interface Open {
  readonly file: number;
  /** The beginning of a line whose end is not there yet. */
  rest: string;
}

/** `E` has the time of an event as `at`. */
export class Tail<E extends { readonly at: number }> {
  readonly #files = new Map<string, Open>();
  readonly #buffer = Buffer.alloc(1 << 20);
  #waiting: E[] = [];

  /** Adds a file; it must exist. */
  add(path: string): void {
    this.#files.set(path, { file: openSync(path, 'r'), rest: '' });
  }

  /**
   * The events that are complete: all from before this call began, none of which can be told before one that it follows
   * from. `all` gives the rest too; for the end.
   */
  read(all = false): E[] {
    const before = now();
    for (const open of this.#files.values()) this.#readOne(open);
    this.#waiting.sort((a, b) => a.at - b.at);
    const first = all ? -1 : this.#waiting.findIndex(({ at }) => at > before);
    return this.#waiting.splice(0, first < 0 ? this.#waiting.length : first);
  }

  close(): void {
    for (const { file } of this.#files.values()) closeSync(file);
    this.#files.clear();
  }

  #readOne(open: Open): void {
    for (;;) {
      const bytes = readSync(open.file, this.#buffer, 0, this.#buffer.byteLength, null);
      if (bytes === 0) return;
      const lines = (open.rest + this.#buffer.toString('utf8', 0, bytes)).split('\n');
      open.rest = lines.pop() ?? '';
      for (const line of lines) this.#waiting.push(JSON.parse(line) as E);
    }
  }
}
