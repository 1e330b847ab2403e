/**
 * A member's disk: what is durable, and the writes that were issued and not synced yet. Losing power drops the latter.
 */
import type { Entry, HardState, LogWrite, Position, SnapshotMeta } from '../../src/raft/types.js';

/** The toy state machine's state: what was applied, in order. */
export type AppliedState = readonly string[];

/** A durable state at one index. */
export interface Cut {
  readonly meta: SnapshotMeta;
  readonly state: AppliedState;
}

/** What survives a crash. */
export interface Image {
  readonly hard: HardState;
  readonly anchor: Position;
  readonly entries: readonly Entry[];
  readonly cut: Cut;
}

/** One thing in the write queue. `staged` is the snapshot that a log write switches to. */
export type Pending =
  | { readonly type: 'log'; readonly write: LogWrite; readonly staged: Cut | undefined }
  | { readonly type: 'cut'; readonly cut: Cut };

/** `image` after `pending` has reached the disk. Throws where a write does not fit what is there. */
function applyPending(image: Image, pending: Pending): Image {
  if (pending.type === 'cut') return { ...image, cut: pending.cut };
  const { write, staged } = pending;
  let { anchor, entries, cut } = image;
  if (write.install !== undefined) {
    if (staged === undefined) throw new Error(`write ${write.seq} installs a snapshot that was not staged`);
    cut = staged;
    anchor = { index: write.install.index, term: write.install.term };
    entries = [];
  }
  const { cutFrom } = write;
  if (cutFrom !== undefined) entries = entries.filter((entry) => entry.index < cutFrom);
  let next = (entries.at(-1)?.index ?? anchor.index) + 1;
  for (const entry of write.entries) {
    if (entry.index !== next) {
      throw new Error(`write ${write.seq} leaves a gap: entry ${entry.index} where ${next} follows`);
    }
    next++;
  }
  return { hard: write.hard, anchor, entries: [...entries, ...write.entries], cut };
}

/** See the file's comment. */
export class Disk {
  image: Image;
  readonly pending: Pending[] = [];
  stalled = false;
  /** The next sync fails; the process then ends (design 6: retry nothing). */
  failing = false;

  constructor(image: Image) {
    this.image = image;
  }

  /** Makes the oldest pending write durable and returns it. */
  sync(): Pending | undefined {
    const done = this.pending.shift();
    if (done !== undefined) this.image = applyPending(this.image, done);
    return done;
  }

  /** The process is gone: unsynced writes reach the disk (`lose` false) or not. */
  crash(lose: boolean): void {
    while (!lose && this.pending.length > 0) this.sync();
    this.pending.length = 0;
  }

  /** Entries up to and including `index` are dropped; only behind a durable cut. */
  compact(index: number): void {
    const entry = this.image.entries.find((candidate) => candidate.index === index);
    if (entry === undefined || index > this.image.cut.meta.index) {
      throw new Error(`cannot compact to ${index}: the durable cut is at ${this.image.cut.meta.index}`);
    }
    const entries = this.image.entries.filter((candidate) => candidate.index > index);
    this.image = { ...this.image, anchor: { index, term: entry.term }, entries };
  }

  /** Index of the last durable entry. */
  get last(): number {
    return this.image.entries.at(-1)?.index ?? this.image.anchor.index;
  }
}
