/** Waits for members to do what is rare: a fault that would hardly ever meet it comes then. */
import type { Observer, Step } from './observation.js';

/**
 * Looks at something that a member is about to carry out, and at the step from which it follows; true when it is what the
 * snare was laid for. It acts then.
 */
export type Snare = (effect: Step['effects'][number], step: Step) => boolean;

/** See the head of the file. */
export class Snares implements Observer {
  readonly #laid = new Map<string, Snare>();

  /** Shows `snare` every effect until it returns true. It takes the place of the one of that name. */
  lay(name: string, snare: Snare): void {
    this.#laid.set(name, snare);
  }

  /** Nothing is waited for any more. */
  clear(): void {
    this.#laid.clear();
  }

  started(): void {
    // A start hands nothing to anybody.
  }

  stepped(step: Step): void {
    if (this.#laid.size === 0) return;
    for (const effect of step.effects)
      for (const [name, snare] of this.#laid) if (snare(effect, step)) this.#laid.delete(name);
  }

  ended(): void {
    // The next process is as good.
  }
}
