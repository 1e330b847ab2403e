/** Drives the production rules of forming over the simulated network and a member's disk: what `node/forming.ts` does. */
import type { Incarnation, NodeId } from '../../src/base/ids.js';
import type { Forming, FormingEffect, FormingEvent } from '../../src/replica/forming.js';
import type { Store } from '../../src/replica/ports.js';
import type { FormRequest, FormResponse, Genesis, Time } from '../../src/replica/types.js';
import type { SimNetwork } from './network/network.js';
import type { Disk, FormingEndpoint } from './ports.js';

/** How often forming looks around, and how long an ask may take, in milliseconds. */
const FORM_TICK_MS = 50;
const ASK_TIMEOUT_MS = 1_000;

/** The process in which it runs. */
export interface FormingPorts {
  readonly node: NodeId;
  readonly disk: Disk;
  readonly network: SimNetwork;
  readonly trace: (line: string) => void;
  readonly time: () => Time;
  /** True milliseconds that the machine takes for `ms`. */
  readonly trueMs: (ms: number) => number;
  readonly alive: () => boolean;
  /** Runs a task when the process does not stand still; never when it is gone. */
  readonly whenAwake: (task: () => void) => void;
  readonly later: (ms: number, task: () => void) => void;
  /** It makes a new history. */
  readonly decided: (incarnation: Incarnation) => void;
  /** The directory has become a member's. */
  readonly opened: (store: Store) => void;
  readonly formed: (genesis: Genesis) => void;
  readonly refused: (message: string) => void;
  /** The record could not be stored. */
  readonly failed: (error: unknown) => void;
}

/** See the head of the file. */
export class SimForming implements FormingEndpoint {
  readonly #forming: Forming;
  readonly #ports: FormingPorts;
  readonly #asked = new Map<number, (response: FormResponse) => void>();
  #asks = 0;
  #formed = false;

  constructor(forming: Forming, ports: FormingPorts) {
    this.#forming = forming;
    this.#ports = ports;
  }

  /** Looks around now and again and again. */
  tick(): void {
    this.#form({ type: 'tick' });
    this.#ports.later(this.#formed ? 4 * FORM_TICK_MS : FORM_TICK_MS, () => {
      this.tick();
    });
  }

  answer(request: FormRequest, respond: (response: FormResponse) => void): void {
    const id = ++this.#asks;
    this.#asked.set(id, respond);
    this.#form({ type: 'asked', id, request });
  }

  #form(event: FormingEvent): void {
    this.#ports.whenAwake(() => {
      for (const effect of this.#forming.step(this.#ports.time(), [event])) this.#perform(effect);
    });
  }

  #perform(effect: FormingEffect): void {
    const { node: self, network, trace, trueMs, alive } = this.#ports;
    switch (effect.type) {
      case 'ask': {
        const { node, request } = effect;
        network.ask(self, node, request, trueMs(ASK_TIMEOUT_MS), (response) => {
          if (!alive()) return;
          this.#form(response === undefined ? { type: 'unreachable', node } : { type: 'answered', node, response });
        });
        return;
      }
      case 'respond':
        this.#asked.get(effect.id)?.(effect.response);
        this.#asked.delete(effect.id);
        return;
      case 'store':
        trace(`${self} stores Genesis ${effect.genesis.incarnation.slice(0, 4)}`);
        this.#ports.decided(effect.genesis.incarnation);
        this.#storeGenesis(effect.genesis).catch(this.#ports.failed);
        return;
      case 'formed':
        this.#formed = true;
        this.#ports.formed(effect.genesis);
        return;
      case 'refused':
        this.#ports.refused(effect.message);
        return;
      case 'log':
        trace(`${self} says: ${effect.message}`);
    }
  }

  async #storeGenesis(genesis: Genesis): Promise<void> {
    const { disk, alive, opened } = this.#ports;
    await disk.storeGenesis(genesis);
    if (!alive()) return;
    opened(await disk.open());
    this.#form({ type: 'stored' });
  }
}
