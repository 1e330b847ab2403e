/**
 * What the log on disk looks like, in memory: which blocks there are and the chain value of each kept entry. Payloads
 * are not here; nobody reads the log back while the process runs.
 */
import { assert } from '../base/assert.js';
import type { ChainPosition } from '../wire/disk-records.js';

/** The kept part of a block: later blocks have superseded what is not in it. */
interface Block {
  readonly first: number;
  readonly terms: number[];
  readonly chains: number[];
}

/** Entries and their chain values, as a block brings them. */
export interface BlockContents {
  readonly first: number;
  readonly terms: readonly number[];
  readonly chains: readonly number[];
}

/** The log's blocks. Changed in step with the batch that changes the disk. */
export class LogIndex {
  #anchor: ChainPosition;
  #blocks: Block[] = [];

  /** An empty log behind `anchor`. */
  constructor(anchor: ChainPosition) {
    this.#anchor = anchor;
  }

  /** The position before the first kept entry. */
  get anchor(): ChainPosition {
    return this.#anchor;
  }

  /** The position of the last entry, or the anchor. */
  get last(): ChainPosition {
    for (let i = this.#blocks.length - 1; i >= 0; i--) {
      const block = this.#blocks[i];
      if (block !== undefined && block.terms.length > 0) return positionIn(block, lastOf(block));
    }
    return this.#anchor;
  }

  /** The position of `index`; undefined when it is neither kept nor the anchor. */
  at(index: number): ChainPosition | undefined {
    if (index === this.#anchor.index) return this.#anchor;
    const block = this.#blocks.findLast((candidate) => candidate.first <= index);
    return block === undefined || index > lastOf(block) ? undefined : positionIn(block, index);
  }

  /** Drops the entries from `index` on. Returns the first indexes of the blocks that are to be deleted. */
  cut(index: number): readonly number[] {
    const deleted: number[] = [];
    for (let block = this.#blocks.at(-1); block !== undefined && lastOf(block) >= index; block = this.#blocks.at(-1)) {
      if (block.first < index) {
        block.terms.length = index - block.first;
        block.chains.length = index - block.first;
        break;
      }
      deleted.push(block.first);
      this.#blocks.pop();
    }
    return deleted;
  }

  /** Adds a block at the end; it takes the place of an empty one that begins there. */
  append(block: BlockContents): void {
    assert(block.first === this.last.index + 1, `block ${block.first} does not follow entry ${this.last.index}`);
    if (this.#blocks.at(-1)?.first === block.first) this.#blocks.pop();
    this.#blocks.push({ first: block.first, terms: [...block.terms], chains: [...block.chains] });
  }

  /** Drops the whole blocks below `keepFrom`. Returns their first indexes. */
  compact(keepFrom: number): readonly number[] {
    const deleted: number[] = [];
    for (let block = this.#blocks[0]; block !== undefined && lastOf(block) < keepFrom; block = this.#blocks[0]) {
      if (block.terms.length > 0) this.#anchor = positionIn(block, lastOf(block));
      deleted.push(block.first);
      this.#blocks.shift();
    }
    return deleted;
  }

  /** An empty log behind `anchor`. Returns the first indexes of all blocks. */
  reset(anchor: ChainPosition): readonly number[] {
    const deleted = this.#blocks.map((block) => block.first);
    this.#blocks = [];
    this.#anchor = anchor;
    return deleted;
  }
}

function lastOf(block: Block): number {
  return block.first + block.terms.length - 1;
}

function positionIn(block: Block, index: number): ChainPosition {
  const term = block.terms[index - block.first];
  const chain = block.chains[index - block.first];
  assert(term !== undefined && chain !== undefined, `entry ${index} is not in the block that begins at ${block.first}`);
  return { index, term, chain };
}
