/**
 * A map for up to millions of texts. A `Map` that is full moves all its entries into one of twice the size, at once: for
 * the 1 048 577th that takes 0.4 s (measured), and maps that grow in step do it in the same turn of the event loop. Here
 * the entries are spread over many maps by a hash of their keys, so that each such step is short and they come at
 * different times.
 */

/** Maps of one that is large. */
export const PARTS = 256;
/** One map does for so many: less to look after while there is nothing to gain. */
export const SPLIT_ABOVE = 16_384;

/** As a `Map`, but for the order in which its entries come, which means nothing. */
export class BigMap<Key extends string, Value> {
  /** One, or {@link PARTS}. */
  readonly #parts: Map<Key, Value>[] = [new Map<Key, Value>()];
  #size = 0;

  /** How many entries there are. */
  get size(): number {
    return this.#size;
  }

  /** The number of entries of each of its maps. */
  get partSizes(): readonly number[] {
    return this.#parts.map((part) => part.size);
  }

  get(key: Key): Value | undefined {
    return this.#partOf(key).get(key);
  }

  has(key: Key): boolean {
    return this.#partOf(key).has(key);
  }

  set(key: Key, value: Value): this {
    const part = this.#partOf(key);
    const before = part.size;
    part.set(key, value);
    this.#size += part.size - before;
    if (this.#parts.length === 1 && this.#size > SPLIT_ABOVE) this.#split();
    return this;
  }

  /** Whether there was one. */
  delete(key: Key): boolean {
    const deleted = this.#partOf(key).delete(key);
    if (deleted) this.#size--;
    return deleted;
  }

  /**
   * An entry that is there from before the first is taken until its turn comes at least once; one that is deleted before
   * its turn does not come; one that is added meanwhile may come.
   */
  *entries(): Generator<[Key, Value], undefined> {
    for (const part of this.#parts) yield* part;
  }

  /** As {@link entries}. */
  *keys(): Generator<Key, undefined> {
    for (const part of this.#parts) yield* part.keys();
  }

  /** As {@link entries}. */
  *values(): Generator<Value, undefined> {
    for (const part of this.#parts) yield* part.values();
  }

  [Symbol.iterator](): Generator<[Key, Value], undefined> {
    return this.entries();
  }

  #partOf(key: Key): Map<Key, Value> {
    const [first] = this.#parts;
    const part = this.#parts.length === 1 ? first : this.#parts[hashOf(key) % PARTS];
    if (part === undefined) throw new RangeError('a map has lost a part');
    return part;
  }

  /** The first part stays, so that whoever is walking it goes on with what is left there, and then through the others. */
  #split(): void {
    const [first] = this.#parts;
    while (this.#parts.length < PARTS) this.#parts.push(new Map<Key, Value>());
    for (const [key, value] of first ?? []) {
      const part = this.#partOf(key);
      if (part === first) continue;
      part.set(key, value);
      first?.delete(key);
    }
  }
}

/** FNV-1a over the text's units; its low bits are mixed with the others, which are better. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}
