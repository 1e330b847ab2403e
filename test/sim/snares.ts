/** Waits for a member to hand its disk something that is rare: a fault that would hardly ever meet it comes then. */
import type { Observer, Process, Step } from './observation.js';

/** What is waited for: a write that cuts the log, the switch to a snapshot, a chunk of one. */
export type SnareKind = 'cut' | 'install' | 'stage';

/** See the head of the file. One snare of each kind lies at a time; a new one takes the place of the one before. */
export class Snares implements Observer {
  readonly #laid = new Map<SnareKind, (process: Process) => void>();

  /** Calls `spring` once, with the next process that hands such a thing to its disk, just before it does. */
  lay(kind: SnareKind, spring: (process: Process) => void): void {
    this.#laid.set(kind, spring);
  }

  /** Nothing is waited for any more. */
  clear(): void {
    this.#laid.clear();
  }

  started(): void {
    // A start hands nothing to the disk.
  }

  stepped({ effects, process }: Step): void {
    if (this.#laid.size === 0) return;
    for (const effect of effects) {
      if (effect.type === 'stage') this.#spring('stage', process);
      if (effect.type !== 'persist') continue;
      if (effect.write.cutFrom !== undefined) this.#spring('cut', process);
      if (effect.write.install !== undefined) this.#spring('install', process);
    }
  }

  ended(): void {
    // The next process is as good.
  }

  #spring(kind: SnareKind, process: Process): void {
    const spring = this.#laid.get(kind);
    this.#laid.delete(kind);
    spring?.(process);
  }
}
