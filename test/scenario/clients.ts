/**
 * The clients of a raft scenario: each put, read and renewal has a name and one outcome. A read and a renewal are
 * served by a confirmation round; a read's answer also waits until what was committed when it came is applied.
 */
import type { Effect, Entry, Rejection } from '../../src/raft/types.js';
import * as view from '../../src/raft/view.js';
import type { Invariants } from './invariants.js';
import type { SimNode } from './node.js';
import { payloadOf } from './text.js';

/** What has become of an operation. `unknown`: its leader stopped leading or stopped, so nothing can be said. */
export type Outcome = 'pending' | 'acked' | 'unknown' | `refused ${Rejection}`;

/** One call of a client. */
export interface Operation {
  readonly name: string;
  readonly kind: 'put' | 'read' | 'renew';
  readonly node: SimNode;
  readonly run: number;
  readonly term: number;
  /** Of a put: where it was appended. Of a read: what was committed when it came. */
  index: number;
  /** Of a read or renewal: the round that it waits for, and whether that is confirmed. */
  round: number;
  confirmed: boolean;
  outcome: Outcome;
  /** Of a read: what was acknowledged to anybody before it began, and what it saw. */
  readonly mustSee: readonly string[];
  sees: readonly string[] | undefined;
}

/** See the file's comment. */
export class Clients {
  readonly operations = new Map<string, Operation>();
  readonly #invariants: Invariants;
  readonly #print: (line: string) => void;
  #asking: Operation | undefined;

  constructor(invariants: Invariants, print: (line: string) => void) {
    this.#invariants = invariants;
    this.#print = print;
  }

  /** Begins an operation at `node`. */
  ask(name: string, kind: Operation['kind'], node: SimNode, onlyInTerm?: number): void {
    if (this.operations.has(name)) throw new Error(`there is a ${name} already`);
    const { raft } = node.up();
    const operation: Operation = {
      name,
      kind,
      node,
      run: node.run,
      term: node.view().term,
      index: kind === 'read' ? view.commitIndex(raft) : 0,
      round: 0,
      confirmed: false,
      outcome: 'pending',
      mustSee: kind === 'read' ? this.#invariants.acknowledgedSoFar() : [],
      sees: undefined,
    };
    this.operations.set(name, operation);
    this.#asking = operation;
    if (kind !== 'put') node.input({ type: 'confirm' });
    else node.input({ type: 'propose', payload: payloadOf(name), ...(onlyInTerm === undefined ? {} : { onlyInTerm }) });
    this.#asking = undefined;
    if (operation.outcome === 'pending' && operation.index === 0 && operation.round === 0) {
      throw new Error(`${node.name} does not answer ${name}`);
    }
  }

  /** An effect of `node` that may concern its clients. */
  answered(node: SimNode, effect: Effect): void {
    const asking = this.#asking?.node === node ? this.#asking : undefined;
    if (effect.type === 'proposed' && asking !== undefined) asking.index = effect.index;
    if (effect.type === 'pendingRound' && asking !== undefined) asking.round = effect.round;
    if (effect.type === 'rejected') {
      if (asking === undefined) this.#print(`${node.name} refuses: ${effect.reason}`);
      else this.#end(asking, `refused ${effect.reason}`);
    }
    if (effect.type === 'roleChanged') {
      // A node that leads no longer, or in another term, answers nothing more of what it took before.
      const term = view.isLeader(node.up().raft) ? node.view().term : undefined;
      for (const operation of this.#open(node)) if (operation.term !== term) this.#end(operation, 'unknown');
    }
    if (effect.type === 'confirmed') {
      this.#print(`${node.name} confirms round ${effect.round}`);
      for (const operation of this.#open(node)) {
        if (operation.kind !== 'put' && operation.round > 0 && operation.round <= effect.round)
          operation.confirmed = true;
        if (operation.kind === 'renew' && operation.confirmed) this.#end(operation, 'acked');
      }
      this.#answerReads(node);
    }
  }

  /** `node` has applied `entry`. */
  applied(node: SimNode, entry: Entry): void {
    for (const operation of this.#open(node)) {
      if (operation.kind !== 'put' || operation.index !== entry.index) continue;
      this.#end(operation, operation.term === entry.term ? 'acked' : 'unknown');
    }
    this.#answerReads(node);
  }

  /** The process of `node` is gone. */
  stopped(node: SimNode): void {
    for (const operation of this.#open(node)) this.#end(operation, 'unknown');
  }

  #open(node: SimNode): Operation[] {
    return [...this.operations.values()].filter(
      (o) => o.node === node && o.run === node.run && o.outcome === 'pending',
    );
  }

  #answerReads(node: SimNode): void {
    const { state, appliedIndex } = node.up();
    for (const operation of this.#open(node)) {
      if (operation.kind !== 'read' || !operation.confirmed || appliedIndex < operation.index) continue;
      operation.sees = state;
      this.#end(operation, 'acked');
    }
  }

  #end(operation: Operation, outcome: Outcome): void {
    operation.outcome = outcome;
    const { kind, name, sees, mustSee } = operation;
    this.#print(`${kind} ${name} ${outcome}${sees === undefined ? '' : ` sees [${sees.join(' ')}]`}`);
    if (outcome === 'acked' && kind === 'put') this.#invariants.acknowledged(name);
    if (outcome === 'acked' && kind === 'read') this.#invariants.readAnswered(name, mustSee, sees ?? []);
  }
}
