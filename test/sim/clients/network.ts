/** The way between client machines and nodes: TCP connections that are slow, break, fall silent and come back. */
import type { NodeId } from '../../../src/base/ids.js';
import { between, chance } from '../chance.js';
import type { ClientParameters } from '../parameters.js';
import type { Surroundings } from '../ports.js';

/** In 1 000 parcels: how many take up to ten times as long. */
const SPIKE = 20;

/** The links of one client machine, by node. A link that is cut keeps what is on it, as TCP does, until it is healed. */
export class ClientLinks {
  readonly #surroundings: Surroundings;
  readonly #parameters: ClientParameters;
  readonly #cut = new Map<NodeId, (() => void)[]>();

  constructor(surroundings: Surroundings, parameters: ClientParameters) {
    this.#surroundings = surroundings;
    this.#parameters = parameters;
  }

  /** Nothing passes between this machine and `node`, in both directions, and nobody is told. */
  cut(node: NodeId): void {
    if (this.#cut.has(node)) return;
    this.#cut.set(node, []);
    this.#surroundings.coverage.count('client link cut');
  }

  /** Everything passes again; half of what was on its way was given up meanwhile. */
  heal(): void {
    for (const [node, parcels] of this.#cut) {
      this.#cut.delete(node);
      for (const deliver of parcels) {
        if (chance(this.#surroundings.random, 500)) continue;
        this.#surroundings.coverage.count('client message late by a cut');
        this.pass(node, deliver);
      }
    }
  }

  /** True when a call, or an answer, is to be lost. */
  loses(): boolean {
    const lost = chance(this.#surroundings.random, this.#parameters.loss);
    if (lost) this.#surroundings.coverage.count('client message lost');
    return lost;
  }

  /** Carries something between this machine and `node`. */
  pass(node: NodeId, deliver: () => void): void {
    const { scheduler, random } = this.#surroundings;
    const [least, most] = this.#parameters.latencyMs;
    const slower = chance(random, SPIKE) ? 10 : 1;
    scheduler.after(between(random, least, most) * slower, () => {
      const kept = this.#cut.get(node);
      if (kept === undefined) deliver();
      else kept.push(deliver);
    });
  }
}
