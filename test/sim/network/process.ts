/** A process as the network knows it: whether it lives and runs, and what it is told. */
import type { NodeId } from '../../../src/base/ids.js';
import type { Event, Hello } from '../../../src/replica/types.js';
import { FORMAT } from '../../../src/wire/proto.js';
import type { Endpoint, Surroundings } from '../ports.js';
import { eventText } from './trace.js';

/** See the head of the file. What a process does happens in {@link run}: never when it is gone, later when it stands still. */
export class SimProcess {
  readonly endpoint: Endpoint;
  readonly node: NodeId;
  /** What it says of itself on every stream. */
  readonly hello: Hello;
  readonly #surroundings: Surroundings;
  #alive = true;
  /** Set while it stands still: what it will do when it goes on. */
  #held: (() => void)[] | undefined;
  #pauses = 0;

  constructor(surroundings: Surroundings, endpoint: Endpoint) {
    const { member, boot, genesis } = endpoint;
    this.#surroundings = surroundings;
    this.endpoint = endpoint;
    this.node = member.node;
    this.hello = {
      cluster: genesis.cluster,
      incarnation: genesis.incarnation,
      node: member.node,
      directory: member.directory,
      boot,
      format: FORMAT,
    };
  }

  get alive(): boolean {
    return this.#alive;
  }

  get paused(): boolean {
    return this.#held !== undefined;
  }

  run(task: () => void): void {
    if (!this.#alive) return;
    if (this.#held !== undefined) this.#held.push(task);
    else task();
  }

  /** A timer of the process. */
  after(ms: number, task: () => void): () => void {
    let cancelled = false;
    const cancel = this.#surroundings.scheduler.after(ms, () => {
      this.run(() => {
        if (!cancelled) task();
      });
    });
    return () => {
      cancelled = true;
      cancel();
    };
  }

  /** Resolves when the process runs; never, when it is gone. */
  running(): Promise<void> {
    return new Promise((resolve) => {
      this.run(resolve);
    });
  }

  /** Tells its executor. */
  emit(event: Event): void {
    if (!this.#alive) return;
    const text = eventText(this.node, event);
    if (text !== undefined) this.#surroundings.trace(text, 'arrives');
    this.endpoint.dispatch(event);
  }

  /** Stands still from now on. Returns what tells whether it has done so ever since. */
  pause(): () => boolean {
    this.#held ??= [];
    const pause = ++this.#pauses;
    return () => this.#held !== undefined && this.#pauses === pause;
  }

  /** Does what came meanwhile, in order. */
  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const task of held) this.run(task);
  }

  /** Nothing happens in it any more. */
  die(): void {
    this.#alive = false;
    this.#held = undefined;
  }
}
