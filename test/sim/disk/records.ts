/**
 * The records of a simulated database, and which of its batches a power loss may take. As with LevelDB: a batch is there
 * or not, its checksum sees to that; and one that was not synced may be gone though later, synced ones are there,
 * because a write-ahead file is not synced when the next one is begun.
 */
import { nextInt } from '../../../src/base/random.js';
import type { Operation } from '../../../src/storage/database.js';
import type { Device } from './device.js';

/** A key as a text with a character for each byte: equal order, and a Map can hold it. */
export type KeyText = string;

/** What a batch does to one key. */
export interface Change {
  readonly key: KeyText;
  /** Undefined: removed. */
  readonly value: Uint8Array | undefined;
}

/** Key → value, at one moment: never changed by a later write. */
export type View = ReadonlyMap<KeyText, Uint8Array>;

/** The kernel has long written back what is older than so many batches. */
const MAX_SINCE = 200;
/** So many batches can be taken back. */
const MAX_UNDO = 8;

/** See the head of the file. */
export class Records {
  #now: Map<KeyText, Uint8Array>;
  /** Somebody holds `#now` as it is. */
  #shared = false;
  /** Without `#since`; undefined while nothing is unsynced. */
  #synced: Map<KeyText, Uint8Array> | undefined;
  #since: { readonly changes: readonly Change[]; readonly synced: boolean }[] = [];
  /** What takes each of the last batches back, the oldest first. */
  #undo: (readonly Change[])[] = [];

  constructor(view: View = new Map()) {
    this.#now = new Map(view);
  }

  /** All of them, now. */
  get view(): View {
    this.#shared = true;
    return this.#now;
  }

  get(key: KeyText): Uint8Array | undefined {
    return this.#now.get(key);
  }

  /** Carries a batch out. */
  apply(changes: readonly Change[], synced: boolean): void {
    if (!synced) this.#synced ??= new Map(this.#now);
    if (this.#shared) {
      this.#now = new Map(this.#now);
      this.#shared = false;
    }
    this.#undo.push(changes.map(({ key }) => ({ key, value: this.#now.get(key) })));
    if (this.#undo.length > MAX_UNDO) this.#undo.shift();
    applyTo(this.#now, changes);
    if (this.#synced === undefined) return;
    this.#since.push({ changes, synced });
    if (this.#since.length > MAX_SINCE) this.flush();
  }

  /** Everything written is on the medium: the kernel wrote it back, or a start moved it into a synced table. */
  flush(): void {
    this.#synced = undefined;
    this.#since = [];
  }

  /** Power loss: each unsynced batch is there or not. */
  losePower(device: Device): void {
    const records = this.#synced;
    if (records === undefined) return;
    // Nothing of them is on the medium, or all up to some place, or some of them.
    const place = [0, nextInt(device.random, 0, this.#since.length), undefined][nextInt(device.random, 0, 2)];
    let lost = 0;
    let keptLater = false;
    for (const [at, { changes, synced }] of this.#since.entries()) {
      if (synced || (place === undefined ? device.oneIn(2) : at < place)) {
        applyTo(records, changes);
        if (synced && lost > 0) keptLater = true;
      } else lost++;
    }
    if (lost > 0) {
      device.count(keptLater ? 'unsynced lost, later synced kept' : 'unsynced lost');
      device.trace(
        `loses ${lost} unsynced ${lost === 1 ? 'batch' : 'batches'}${keptLater ? ', keeps later ones' : ''}`,
      );
    }
    this.#now = records;
    this.#shared = false;
    this.#undo = [];
    this.flush();
  }

  /** Records at rest that are not what was written: for tests of what a start notices. */
  damage(changes: readonly Change[]): void {
    this.#now = new Map(this.#now);
    this.#shared = false;
    applyTo(this.#now, changes);
    this.#undo = [];
    this.flush();
  }

  /** Damage: the last batches are gone, as if they had never been written. */
  takeBack(batches: number): void {
    this.damage(this.#undo.slice(-batches).reverse().flat());
  }

  /** Keys that the last batches changed, each with what was there before its last change. */
  older(): ReadonlyMap<KeyText, Uint8Array | undefined> {
    return new Map(this.#undo.flat().map(({ key, value }) => [key, value]));
  }

  /** The same once more, with what is not synced still unsynced. */
  fork(): Records {
    const fork = new Records();
    fork.#now = this.#now;
    fork.#shared = this.#shared = true;
    fork.#synced = this.#synced && new Map(this.#synced);
    fork.#since = [...this.#since];
    fork.#undo = [...this.#undo];
    return fork;
  }
}

/** Copies what is to be written: whoever gave it may use its memory again. */
export function changesOf(operations: readonly Operation[]): readonly Change[] {
  return operations.map((operation) => ({
    key: textOf(operation.key),
    value: operation.type === 'put' ? operation.value.slice() : undefined,
  }));
}

export function textOf(key: Uint8Array): KeyText {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1');
}

/** The inverse of {@link textOf}. */
export function bytesOf(key: KeyText): Uint8Array {
  return Buffer.from(key, 'latin1');
}

function applyTo(records: Map<KeyText, Uint8Array>, changes: readonly Change[]): void {
  for (const { key, value } of changes) {
    if (value === undefined) records.delete(key);
    else records.set(key, value);
  }
}
