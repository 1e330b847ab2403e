/** The clients of a lease scenario: each call has a name, and one outcome. */
import type { Call, LeaseRef } from '../../src/base/api.js';
import type { CallResult } from '../../src/replica/types.js';
import { LeaseOracle } from './lease-oracle.js';
import { BASE } from './replica-node.js';
import type { ReplicaNode } from './replica-node.js';
import { outcomeText } from './replica-text.js';

/** A client's call. */
export interface Operation {
  readonly name: string;
  readonly number: number;
  readonly node: ReplicaNode;
  readonly call: Call;
  readonly sentAt: number;
  /** False while it is still on its way to the node. */
  arrived: boolean;
  /** The client never gets the answer. */
  readonly deaf: boolean;
  outcome: string;
  lease: LeaseRef | undefined;
}

/** See the file's comment. */
export class ReplicaClients {
  readonly operations = new Map<string, Operation>();
  readonly oracle = new LeaseOracle();
  /** The base of the history: what tokens are shown without. */
  base: number = BASE;
  readonly #now: () => number;
  readonly #print: (line: string) => void;
  #calls = 0;

  constructor(now: () => number, print: (line: string) => void) {
    this.#now = now;
    this.#print = print;
  }

  /** What a client asked under this name. */
  operation(name: string | undefined): Operation {
    const found = this.operations.get(name ?? '');
    if (found === undefined) throw new Error(`nobody asked for ${String(name)}`);
    return found;
  }

  /** Numbers calls. */
  nextNumber(): number {
    this.#calls++;
    return this.#calls;
  }

  /** The answer of a replica to the call with this number. */
  answered(number: number, result: CallResult): void {
    const operation = [...this.operations.values()].find((candidate) => candidate.number === number);
    if (operation !== undefined) this.#answer(operation, result);
  }

  /** The process of `node` is gone: so are the calls that it had. */
  lost(node: ReplicaNode): void {
    for (const operation of this.operations.values()) {
      if (operation.node === node && operation.arrived && operation.outcome === 'pending')
        this.#answer(operation, 'lost');
    }
  }

  #answer(operation: Operation, result: CallResult | 'lost'): void {
    operation.outcome = result === 'lost' ? 'lost' : outcomeText(result, this.base);
    this.#print(
      `${operation.call.type} ${operation.name}: ${operation.outcome}${operation.deaf ? ', which its client does not get' : ''}`,
    );
    if (result === 'lost' || result.type !== 'answer') return;
    const { answer } = result;
    const { oracle } = this;
    const now = this.#now();
    if (answer.type === 'acquire' && answer.outcome.type === 'granted') {
      const { lease } = answer.outcome;
      operation.lease = lease;
      oracle.granted(answer.requestId, lease.domain, lease.token, operation.sentAt, now);
      if (!operation.deaf) oracle.held(lease.domain, lease.token, operation.sentAt, lease.ttlMs, now);
    }
    if (answer.type !== 'renew' || operation.call.type !== 'renew' || operation.deaf) return;
    for (const [at, { domain, token }] of operation.call.leases.entries()) {
      const state = answer.results[at];
      if (state?.type === 'live') oracle.held(domain, token, operation.sentAt, state.ttlMs, now);
    }
  }
}
