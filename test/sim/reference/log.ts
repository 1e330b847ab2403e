/** A log as the relation believes it to be. */
import type { Entry, Position } from '../../../src/raft/types.js';

/** Entries from `anchor` on. What lies before the anchor is committed and stands in a durable state. */
export class ModelLog {
  anchor: Position;
  readonly entries: Entry[];

  constructor(anchor: Position, entries: readonly Entry[]) {
    this.anchor = anchor;
    this.entries = [...entries];
  }

  get last(): number {
    return this.anchor.index + this.entries.length;
  }

  get lastTerm(): number {
    return this.entries.at(-1)?.term ?? this.anchor.term;
  }

  at(index: number): Entry | undefined {
    return this.entries[index - this.anchor.index - 1];
  }

  termAt(index: number): number | undefined {
    return index === this.anchor.index ? this.anchor.term : this.at(index)?.term;
  }

  push(entry: Entry): void {
    this.entries.push(entry);
  }

  /** Removes what stands at and above `from`. */
  cut(from: number): void {
    this.entries.length = Math.max(0, from - this.anchor.index - 1);
  }

  /** Forgets what stands at and below `index`. */
  compact(index: number): void {
    const term = this.termAt(index) ?? 0;
    this.entries.splice(0, index - this.anchor.index);
    this.anchor = { index, term };
  }

  /** Begins anew behind a snapshot. */
  reset({ index, term }: Position): void {
    this.entries.length = 0;
    this.anchor = { index, term };
  }
}

/** True when both say the same. */
export function sameEntry(left: Entry | undefined, right: Entry | undefined): boolean {
  if (left === right) return true;
  if (left?.index !== right?.index || left?.term !== right?.term || left?.kind !== right?.kind) return false;
  const a = left?.payload ?? new Uint8Array(0);
  const b = right?.payload ?? new Uint8Array(0);
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
