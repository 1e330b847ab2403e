/** Reads the notebooks of several processes while they are written, and puts their events in the order of their times. */
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { now } from './clock.js';

interface Open {
  readonly file: number;
  /** The beginning of a line whose end is not there yet. */
  rest: string;
}

/** `E` has the time of an event as `at`. */
export class Tail<E extends { readonly at: number }> {
  readonly #home: string;
  readonly #files: Open[] = [];
  readonly #buffer = Buffer.alloc(1 << 20);
  #waiting: E[] = [];

  /** `home` is the folder of the notebooks. */
  constructor(home: string) {
    this.#home = home;
  }

  /**
   * An empty notebook for one start of a process, by its path. A process that is killed leaves half a line now and then
   * (the kernel writes page by page), so the next start must not write on behind it.
   */
  open(name: string): string {
    const path = join(this.#home, `${name}.${this.#files.length}.jsonl`);
    this.#files.push({ file: openSync(path, 'wx+'), rest: '' });
    return path;
  }

  /**
   * The events that are complete: all from before this call began, none of which can be told before one that it follows
   * from. `all` gives the rest too; for the end.
   */
  read(all = false): E[] {
    const before = now();
    for (const open of this.#files) this.#readOne(open);
    this.#waiting.sort((a, b) => a.at - b.at);
    const first = all ? -1 : this.#waiting.findIndex(({ at }) => at > before);
    return this.#waiting.splice(0, first < 0 ? this.#waiting.length : first);
  }

  close(): void {
    for (const { file } of this.#files) closeSync(file);
    this.#files.length = 0;
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
