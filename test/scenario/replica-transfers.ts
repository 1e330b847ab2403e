/**
 * Snapshots on their way between the members of a lease scenario: chunk by chunk, each transfer on a connection of its
 * own. A scenario may hold the chunks and then deliver each when it likes, twice, late or damaged.
 */
import { digestText } from '../../src/base/digest.js';
import type { Member } from '../../src/raft/types.js';
import type { Effect, Event, SnapshotChunk } from '../../src/replica/types.js';
import { sortedRecords } from '../../src/testing/memory-image.js';
import { decodeChunk, encodeChunk } from '../../src/wire/chunk.js';
import type { ReplicaNode } from './replica-node.js';
import { HOLDER } from './replica-node.js';

/** What transfers need of the world around them. */
export interface TransferSurroundings {
  readonly isCut: (from: ReplicaNode, to: ReplicaNode) => boolean;
  readonly print: (line: string) => void;
  /** An event for a member, behind those that are due already. */
  readonly later: (node: ReplicaNode, event: Event) => void;
  /** An event that reaches a member now. */
  readonly arrive: (node: ReplicaNode, event: Event) => void;
}

interface SentChunk {
  readonly from: ReplicaNode;
  readonly to: ReplicaNode;
  readonly chunk: SnapshotChunk;
}

interface Connection {
  readonly from: ReplicaNode;
  readonly to: ReplicaNode;
  readonly request: number;
  /** The index of the snapshot. */
  readonly index: number;
}

/** See the file's comment. */
export class Transfers {
  /** Chunks leave only when the scenario delivers them. */
  held = false;
  readonly #world: TransferSurroundings;
  /** Every chunk that was held: `c1` is the first. */
  readonly #sent: SentChunk[] = [];
  readonly #open = new Set<Connection>();
  /** The chunk that a member is looking at. */
  #arriving: SentChunk | undefined;

  constructor(world: TransferSurroundings) {
    this.#world = world;
  }

  /** `from` sends its newest cut, so many records in a chunk. */
  begin(
    from: ReplicaNode,
    to: ReplicaNode,
    { term, request }: Extract<Effect, { type: 'sendSnapshot' }>,
    chunkRecords: number,
  ): void {
    const { table } = from.disk.image;
    const { snapshot: meta, summary, count, sum } = table;
    this.#world.print(`${from.name}>${to.name} snapshot at ${meta.index}`);
    const connection = { from, to, request, index: meta.index };
    this.#open.add(connection);
    if (to.running === undefined || this.#world.isCut(from, to)) {
      this.#end(connection, false);
      return;
    }
    const records = [...sortedRecords(table)];
    let sequence = 0;
    do {
      const part = records.splice(0, chunkRecords);
      const total = records.length === 0 ? { count, digest: digestText(sum) } : undefined;
      this.#leave({ from, to, chunk: { term, request, sequence, meta, summary, records: part, total } });
      sequence++;
    } while (records.length > 0);
  }

  /** Delivers the held chunk `name` over the bytes of the wire, as often as it is asked to; damaged by one letter. */
  deliver(name: string, damaged: boolean): void {
    const sent = this.#sent[Number(name.slice(1)) - 1];
    if (sent === undefined) throw new Error(`no held chunk is ${name}`);
    const { from, to, chunk } = sent;
    this.#world.print(`${from.name}>${to.name} ${chunkText(chunk)}`);
    const bytes = encodeChunk(chunk);
    if (damaged) bytes[indexOfHolder(bytes)] = HOLDER.charCodeAt(0) + 1;
    let read: SnapshotChunk;
    try {
      read = decodeChunk(bytes);
    } catch (error) {
      this.#world.print(`${to.name} cannot read it: ${error instanceof Error ? error.message : String(error)}`);
      this.broken(from, to);
      return;
    }
    this.#arrive({ from, to, chunk: read });
  }

  /** The connection from `from` to `to` breaks: both ends notice. */
  broken(from: ReplicaNode, to: ReplicaNode): void {
    const broken = [...this.#open].filter((each) => each.from === from && each.to === to);
    if (broken.length === 0) throw new Error(`${from.name} sends no snapshot to ${to.name}`);
    for (const connection of broken) this.#broken(connection);
  }

  /** The process of `node` is gone, and its connections with it. */
  ended(node: ReplicaNode): void {
    for (const connection of [...this.#open])
      if (connection.from === node || connection.to === node) this.#broken(connection);
  }

  /** `to` has staged everything that `from` sent. */
  done(to: ReplicaNode, from: Member): void {
    for (const connection of this.#between(from, to)) this.#end(connection, true);
  }

  /** `to` does not want the chunk that it got: the connection on which that came ends. */
  refused(to: ReplicaNode, from: Member, reason: string): void {
    this.#world.print(`${to.name} refuses a chunk: ${reason}`);
    const request = this.#arriving?.chunk.request;
    for (const connection of this.#between(from, to)) {
      if (request === undefined || connection.request === request) this.#end(connection, false);
    }
  }

  /** `from` gave its transfer to `to` up. */
  aborted(from: ReplicaNode, to: Member): void {
    for (const connection of [...this.#open]) {
      if (connection.from !== from || connection.to.member.node !== to.node) continue;
      this.#open.delete(connection);
      this.#world.later(connection.to, { type: 'chunksEnded', from: from.member });
    }
  }

  #leave(sent: SentChunk): void {
    const { from, to, chunk } = sent;
    if (!this.held) {
      this.#world.later(to, { type: 'chunk', from: from.member, chunk });
      return;
    }
    this.#sent.push(sent);
    this.#world.print(`${from.name}>${to.name} ${chunkText(chunk)} held c${this.#sent.length}`);
  }

  #arrive(sent: SentChunk): void {
    this.#arriving = sent;
    this.#world.arrive(sent.to, { type: 'chunk', from: sent.from.member, chunk: sent.chunk });
    this.#arriving = undefined;
  }

  #between(from: Member, to: ReplicaNode): Connection[] {
    return [...this.#open].filter((each) => each.from.member.node === from.node && each.to === to);
  }

  #broken(connection: Connection): void {
    this.#end(connection, false);
    this.#world.later(connection.to, { type: 'chunksEnded', from: connection.from.member });
  }

  #end(connection: Connection, ok: boolean): void {
    const { from, to, index } = connection;
    this.#open.delete(connection);
    this.#world.later(from, { type: 'snapshotSent', to: to.member, index, ok });
  }
}

/** Where the holder of a lease begins in `bytes`. */
function indexOfHolder(bytes: Uint8Array): number {
  const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(HOLDER);
  if (at < 0) throw new Error('the chunk holds no lease that could be damaged');
  return at;
}

function chunkText({ sequence, term, request }: SnapshotChunk): string {
  return `chunk ${sequence} of t${term} transfer ${request}`;
}
