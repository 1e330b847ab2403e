/** Every sending of a call by a client, with what came of it: what the judges and the history are made from. */
import type { Call } from '../../../src/base/api.js';
import type { Incarnation, NodeId } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import type { Reply } from '../../../src/client/channel.js';

/** A call on its way to one node. */
export interface Attempt {
  readonly number: number;
  /** The machine that sent it; its clients never share a name with those of another. */
  readonly client: string;
  /** Names one life of one process. */
  readonly process: string;
  /** Rate of the sender's clocks. */
  readonly rate: number;
  readonly node: NodeId;
  readonly call: Call;
  /** True time. */
  readonly sentAt: number;
  /** The header with which the node answered, whether or not that arrived. */
  answeredBy: { readonly incarnation: Incarnation | ''; readonly revision: Revision } | undefined;
  /** What its sender was told; undefined while, or for ever if, it was told nothing. */
  reply: Reply | undefined;
  /** True time at which the sender was told. */
  receivedAt: number | undefined;
}

/** An attempt whose sender was told something. */
export type Told = Attempt & { readonly reply: Reply; readonly receivedAt: number };

/** Somebody who watches the attempts. */
export interface AttemptObserver {
  sent(attempt: Attempt): void;
  told(attempt: Told): void;
  /** Its sender gave it up; `reached`: it may have arrived. */
  dropped?(attempt: Attempt, reached: boolean): void;
  /** A process is gone without a word. */
  killed?(process: string): void;
}

/** Numbers the attempts of a run and keeps them all. */
export class Attempts {
  readonly all: Attempt[] = [];
  readonly #observers: readonly AttemptObserver[];
  #open = 0;

  constructor(observers: readonly AttemptObserver[]) {
    this.#observers = observers;
  }

  /** Attempts of processes that live, of which nothing came yet. */
  get open(): number {
    return this.#open;
  }

  /** A call leaves. */
  sent(attempt: Omit<Attempt, 'number' | 'answeredBy' | 'reply' | 'receivedAt'>): Attempt {
    const made: Attempt = {
      ...attempt,
      number: this.all.length + 1,
      answeredBy: undefined,
      reply: undefined,
      receivedAt: undefined,
    };
    this.all.push(made);
    this.#open++;
    for (const observer of this.#observers) observer.sent(made);
    return made;
  }

  /** Its sender is told. */
  told(attempt: Attempt, reply: Reply, at: number): void {
    this.#open--;
    const told: Told = Object.assign(attempt, { reply, receivedAt: at });
    for (const observer of this.#observers) observer.told(told);
  }

  /** Its sender gave it up, or is gone; `reached`: it may have arrived. */
  dropped(attempt: Attempt, reached: boolean): void {
    this.#open--;
    for (const observer of this.#observers) observer.dropped?.(attempt, reached);
  }

  /** A process is gone without a word. */
  killed(process: string): void {
    for (const observer of this.#observers) observer.killed?.(process);
  }
}
