/** Drives the forming machine over the peer port and the data directory. It goes on for as long as the node runs. */
import type { NodeId } from '../base/ids.js';
import type { Forming, FormingEffect, FormingEvent } from '../replica/forming.js';
import type { FormRequest, FormResponse, Genesis, Time } from '../replica/types.js';

/** What the driver works with. */
export interface FormingPorts {
  readonly time: () => Time;
  readonly ask: (node: NodeId, request: FormRequest, timeoutMs: number) => Promise<FormResponse>;
  /** Makes the directory a member's; rejects when the disk or the directory refuses. */
  readonly store: (genesis: Genesis) => Promise<void>;
  readonly formed: (genesis: Genesis) => void;
  readonly refused: (message: string) => void;
  /** The record could not be stored. */
  readonly failed: (error: unknown) => void;
  readonly log: (message: string) => void;
}

/** How long a member may take to answer. */
const ASK_TIMEOUT_MS = 1_000;
const TICK_MS = 50;

/** See the head of the file. */
export class FormingDriver {
  readonly #forming: Forming;
  readonly #ports: FormingPorts;
  readonly #asked = new Map<number, (response: FormResponse) => void>();
  #lastAsk = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(forming: Forming, ports: FormingPorts) {
    this.#forming = forming;
    this.#ports = ports;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#step({ type: 'tick' });
    }, TICK_MS);
    this.#step({ type: 'tick' });
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Answers a member that forms. */
  answer(request: FormRequest): Promise<FormResponse> {
    return new Promise((resolve) => {
      this.#lastAsk++;
      this.#asked.set(this.#lastAsk, resolve);
      this.#step({ type: 'asked', id: this.#lastAsk, request });
    });
  }

  #step(event: FormingEvent): void {
    for (const effect of this.#forming.step(this.#ports.time(), [event])) this.#perform(effect);
  }

  #perform(effect: FormingEffect): void {
    switch (effect.type) {
      case 'ask':
        this.#ports.ask(effect.node, effect.request, ASK_TIMEOUT_MS).then(
          (response) => {
            if (this.#timer !== undefined) this.#step({ type: 'answered', node: effect.node, response });
          },
          () => {
            if (this.#timer !== undefined) this.#step({ type: 'unreachable', node: effect.node });
          },
        );
        return;
      case 'respond':
        this.#asked.get(effect.id)?.(effect.response);
        this.#asked.delete(effect.id);
        return;
      case 'store':
        this.#ports.store(effect.genesis).then(
          () => {
            this.#step({ type: 'stored' });
          },
          (error: unknown) => {
            this.#ports.failed(error);
          },
        );
        return;
      case 'formed':
        this.#ports.formed(effect.genesis);
        return;
      case 'refused':
        this.#ports.refused(effect.message);
        return;
      case 'log':
        this.#ports.log(effect.message);
    }
  }
}
