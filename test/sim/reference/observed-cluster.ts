/** The memory cluster of the tests under the relation: every step of every replica is shown to it. */
import { MemoryCluster } from '../../support/memory-cluster.js';
import type { ClusterSettings } from '../../support/cluster-node.js';
import type { Observer, Process, Step } from '../observation.js';

/** See the head of the file. */
export class ObservedCluster extends MemoryCluster {
  /** Undefined while the base class starts its first nodes. */
  declare private observer: Observer | undefined;
  declare private runs: number;
  declare private processes: Map<string, Process>;
  /** Steps shown so far. */
  declare steps: number;

  constructor(observer: Observer, settings: ClusterSettings) {
    super(settings);
    this.observer = observer;
    this.runs = 0;
    this.steps = 0;
    this.processes = new Map();
    for (const name of this.nodes.keys()) this.#observe(name);
  }

  override start(name: string): void {
    super.start(name);
    if (this.observer !== undefined) this.#observe(name);
  }

  override stop(name: string): void {
    super.stop(name);
    const process = this.processes.get(name);
    this.processes.delete(name);
    if (process !== undefined) this.observer?.ended(process);
  }

  #observe(name: string): void {
    const { member, running } = this.node(name);
    const { observer } = this;
    if (running === undefined || observer === undefined) return;
    const { replica, store } = running;
    const process: Process = { member, run: ++this.runs, genesis: this.genesis };
    this.processes.set(name, process);
    observer.started(process, store.loaded, replica.context);
    const original = replica.step.bind(replica);
    replica.step = (time, events) => {
      const effects = original(time, events);
      this.steps++;
      const step: Step = { process, at: this.now, time, events, effects, context: replica.context };
      observer.stepped(step);
      return effects;
    };
  }
}
