import { appendFileSync, openSync } from 'node:fs';
import type { Applied, ClientEvent } from './events.js';

/** Appends events to a file; each is in the file, if not on the disk, before `note` returns. */
export class Notebook<E extends ClientEvent | Applied> {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  note(event: E): void {
    appendFileSync(this.#file, `${JSON.stringify(event)}\n`);
  }
}
