/**
 * The order of the operations of one stream: of those that name one domain each begins when the one before is done with,
 * so nothing between here and the log can swap them: no second way to another leader, no renewal that needs no entry, no
 * call that the leader puts off until the fate of a lease is decided. Operations of different domains do not wait for
 * each other. An operation of many domains waits for all of them, and all of them for it.
 */

/** Something with a place in the order. Only {@link DomainOrder} writes to `before`. */
export interface Ordered {
  /** The domains, or the counting names of slots, that it is about; each once. */
  readonly names: readonly string[];
  /** How many operations it waits for: one for each of its names at most. */
  before: number;
}

/** See the head of the file. */
export class DomainOrder<T extends Ordered> {
  /** By name: who has come and not left, the first one under way. */
  readonly #lines = new Map<string, T[]>();

  /** Takes its place behind all that have come; true when it may begin at once. */
  enter(operation: T): boolean {
    for (const name of operation.names) {
      const line = this.#lines.get(name);
      if (line === undefined) this.#lines.set(name, [operation]);
      else {
        line.push(operation);
        operation.before++;
      }
    }
    return operation.before === 0;
  }

  /** It is done with, or has given up its place; returns those that may begin now. */
  leave(operation: T): T[] {
    const freed: T[] = [];
    for (const name of operation.names) {
      const line = this.#lines.get(name) ?? [];
      const place = line.indexOf(operation);
      if (place < 0) continue;
      line.splice(place, 1);
      if (line.length === 0) this.#lines.delete(name);
      const next = line[place];
      // Whoever stood behind one that was not the first waits for the same first one as before.
      if (place > 0 || next === undefined) continue;
      next.before--;
      if (next.before === 0) freed.push(next);
    }
    return freed;
  }
}
