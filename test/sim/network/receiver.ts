/** The receiving end of a snapshot: the twin of `transport/snapshot-receiver.ts`. Reads on when a chunk is durable. */
import { assert } from '../../../src/base/assert.js';
import type { Member } from '../../../src/raft/types.js';
import type { SnapshotChunk } from '../../../src/replica/types.js';
import type { Network } from './dialling.js';
import type { Incoming, StreamHandler } from './incoming-stream.js';
import type { Part } from './part.js';
import type { SimProcess } from './process.js';

/** See the head of the file. */
export class SnapshotReceiver implements StreamHandler {
  readonly from: Member;
  readonly #network: Network;
  readonly #process: SimProcess;
  readonly #incoming: Incoming;
  readonly #end: (reason: string) => void;
  readonly #over: () => void;
  /** Chunks that have come and were not read. */
  readonly #buffer: SnapshotChunk[] = [];
  #awaiting: SnapshotChunk | undefined;
  /** The request whose last chunk was read. */
  #complete: number | undefined;
  #settled = false;

  /** `end` ends the stream, with {@link ended}; `over` is called once it has. */
  constructor(
    network: Network,
    process: SimProcess,
    incoming: Incoming,
    end: (reason: string) => void,
    over: () => void,
  ) {
    const { node, directory } = incoming.hello;
    this.from = { node, directory };
    this.#network = network;
    this.#process = process;
    this.#incoming = incoming;
    this.#end = end;
    this.#over = over;
  }

  frame(part: Part): void {
    assert(part.type === 'chunk', `a ${part.type} came over a snapshot connection`);
    this.#buffer.push(part.carried());
    this.#read();
  }

  ended(): void {
    this.#over();
    const { coverage } = this.#network.wire.surroundings;
    if (this.#complete !== undefined || this.#settled) return;
    coverage.count('snapshot transfer broken off');
    this.#process.emit({ type: 'chunksEnded', from: this.from });
  }

  /** This chunk is durable: reads on if it is the one that is waited for. */
  staged(request: number, sequence: number): void {
    if (this.#awaiting?.request !== request || this.#awaiting.sequence !== sequence) return;
    this.#awaiting = undefined;
    this.#read();
  }

  /** Everything is staged and decided: tells the sender, if this is that transfer. */
  done(request: number): void {
    if (this.#complete !== request) return;
    this.#settled = true;
    const carried = this.#network.carriage.done(request);
    this.#incoming.back(() => {
      this.#incoming.owner.done?.(carried);
    });
    this.#end('done');
  }

  /** Not wanted. No `chunksEnded` follows. */
  refuse(reason: string): void {
    this.#settled = true;
    this.#network.wire.surroundings.coverage.count('snapshot transfer refused');
    this.#end(reason);
  }

  #read(): void {
    if (this.#awaiting !== undefined || this.#incoming.over) return;
    const chunk = this.#buffer.shift();
    if (chunk === undefined) return;
    assert(this.#complete === undefined, 'a chunk came after the last one');
    this.#awaiting = chunk;
    if (chunk.total !== undefined) this.#complete = chunk.request;
    this.#incoming.back(() => this.#incoming.owner.read?.());
    this.#process.emit({ type: 'chunk', from: this.from, chunk });
  }
}
