/** A snapshot on its way in: installed only when every chunk came in order from one sender and the last is staged. */
import type { Message } from '../../../src/raft/types.js';
import type { Event, SnapshotChunk } from '../../../src/replica/types.js';
import { keyOf } from './members.js';
import { installing } from './raft-roles.js';
import type { RaftModel } from './raft-state.js';

interface Incoming {
  readonly from: string;
  readonly first: SnapshotChunk;
  readonly sender: Extract<Event, { readonly type: 'chunk' }>['from'];
  next: number;
  records: number;
  last: number | undefined;
}

/** See the head of the file. */
export class SnapshotIn {
  #incoming: Incoming | undefined;
  /** Accepted, and not yet handed to the disk. */
  readonly #accepted: SnapshotChunk[] = [];

  /** A chunk came: if it is the one that was expected it must be staged; every other must not. */
  chunk(model: RaftModel, event: Extract<Event, { readonly type: 'chunk' }>): void {
    if (this.#accepts(model, event)) this.#accepted.push(event.chunk);
    // What was refused ends the transfer.
    else this.ended(keyOf(event.from));
  }

  /** Whether `chunk` is the next to be staged. */
  stages(chunk: SnapshotChunk): boolean {
    return this.#accepted.shift() === chunk;
  }

  #accepts(model: RaftModel, { from, chunk }: Extract<Event, { readonly type: 'chunk' }>): boolean {
    if (chunk.term < model.term || installing(model)) return false;
    const sender = keyOf(from);
    if (chunk.sequence === 0) {
      this.#incoming = { from: sender, first: chunk, sender: from, next: 0, records: 0, last: undefined };
    }
    const incoming = this.#incoming;
    if (incoming?.from !== sender || incoming.last !== undefined) return false;
    const { first } = incoming;
    if (first.term !== chunk.term || first.request !== chunk.request || first.meta.index !== chunk.meta.index) {
      return false;
    }
    if (incoming.next !== chunk.sequence) return false;
    incoming.next++;
    incoming.records += chunk.records.length;
    if (chunk.total === undefined) return true;
    if (chunk.total.count !== incoming.records) {
      this.#incoming = undefined;
      return false;
    }
    incoming.last = chunk.sequence;
    return true;
  }

  /** The connection ended; what is whole may still be installed. */
  ended(from: string): void {
    if (this.#incoming?.from === from && this.#incoming.last === undefined) this.#incoming = undefined;
  }

  /** A chunk is durable. The whole is, if it was the last: what the member may now be asked to install. */
  staged(model: RaftModel, request: number, sequence: number): Message | undefined {
    const incoming = this.#incoming;
    if (incoming?.first.request !== request || incoming.last !== sequence) return undefined;
    const { term, meta } = incoming.first;
    // Behind its term nothing is decided, and the staged snapshot is dropped like one that is not wanted.
    this.#incoming = undefined;
    return { type: 'installSnapshot', from: incoming.sender, to: model.self, term, meta, request };
  }
}
