/** Snapshots on their way between the nodes of a memory cluster: each on a connection of its own, which keeps the order. */
import type { Effect, Event } from '../../src/replica/types.js';
import type { ClusterNode } from './cluster-node.js';

/** What a transfer needs of the cluster. */
export interface TransferSurroundings {
  readonly after: (ms: number, task: () => void) => void;
  /** Milliseconds that a message is under way. */
  readonly delay: () => number;
  readonly isCut: (from: ClusterNode, to: ClusterNode) => boolean;
  readonly dispatchTo: (node: ClusterNode, event: Event) => void;
}

/** Virtual milliseconds between two chunks. */
const CHUNK_EVERY_MS = 0.1;
/** A transfer that nobody ended is over after this. */
const GIVE_UP_MS = 5_000;

/** See the head of the file. */
export class MemoryTransfers {
  /** How many have not ended. */
  underWay = 0;
  readonly #surroundings: TransferSurroundings;
  /** By sender and receiver: ends the transfer under way. An aborted one (undefined) is not reported, as in production. */
  readonly #ends = new Map<string, (ok: boolean | undefined) => void>();
  #failed: { readonly error: unknown } | undefined;

  constructor(surroundings: TransferSurroundings) {
    this.#surroundings = surroundings;
  }

  /** Throws when a snapshot could not be read. */
  check(): void {
    if (this.#failed !== undefined) throw new Error('a snapshot could not be read', { cause: this.#failed.error });
  }

  /** Begins to send the newest cut of `from`. */
  send(from: ClusterNode, target: ClusterNode, effect: Extract<Effect, { type: 'sendSnapshot' }>): void {
    this.#send(from, target, effect).catch((error: unknown) => {
      this.#failed = { error };
    });
  }

  /** What `node` decided about a transfer: as its sender, or as its receiver. */
  end(node: ClusterNode, effect: Extract<Effect, { type: 'abortSnapshot' | 'refuseChunks' | 'chunksDone' }>): void {
    const { node: self } = node.member;
    const key = effect.type === 'abortSnapshot' ? `${self}>${effect.to.node}` : `${effect.from.node}>${self}`;
    this.#ends.get(key)?.(effect.type === 'abortSnapshot' ? undefined : effect.type === 'chunksDone');
  }

  async #send(
    from: ClusterNode,
    target: ClusterNode,
    { to, term, request }: Extract<Effect, { type: 'sendSnapshot' }>,
  ): Promise<void> {
    const { after, delay, isCut, dispatchTo } = this.#surroundings;
    const store = from.running?.store;
    if (store === undefined) return;
    this.underWay++;
    const key = `${from.member.node}>${to.node}`;
    let ended = false;
    let index = 0;
    this.#ends.set(key, (ok) => {
      if (ended) return;
      ended = true;
      this.#ends.delete(key);
      this.underWay--;
      if (ok !== undefined) dispatchTo(from, { type: 'snapshotSent', to, index, ok });
    });
    const reader = store.openSnapshot();
    let later = delay();
    for (let sequence = 0; ; sequence++) {
      const part = await reader.next(1_000);
      if (part === undefined) break;
      index = part.meta.index;
      const event: Event = { type: 'chunk', from: from.member, chunk: { ...part, term, request, sequence } };
      const { running } = target;
      after(later, () => {
        if (target.running === running && !isCut(from, target) && !ended) dispatchTo(target, event);
      });
      later += CHUNK_EVERY_MS;
    }
    await reader.close();
    after(GIVE_UP_MS, () => this.#ends.get(key)?.(false));
  }
}
