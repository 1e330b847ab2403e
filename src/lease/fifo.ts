/**
 * A first-in-first-out queue over one ring: push and shift in constant time, never a shift of a long array. The ring
 * doubles when it is full and never shrinks, so its memory is that of the longest the queue has been.
 */
export interface Fifo<T> {
  /** A power of two long; unused places hold undefined, so nothing that has left is kept alive. */
  ring: (T | undefined)[];
  head: number;
  length: number;
}

const FIRST_LENGTH = 16;

/** An empty queue. */
export function createFifo<T>(): Fifo<T> {
  return { ring: new Array<T | undefined>(FIRST_LENGTH).fill(undefined), head: 0, length: 0 };
}

/** Appends `item`. */
export function push<T>(fifo: Fifo<T>, item: T): void {
  if (fifo.length === fifo.ring.length) grow(fifo);
  fifo.ring[(fifo.head + fifo.length) & (fifo.ring.length - 1)] = item;
  fifo.length += 1;
}

/** Takes the oldest item; undefined when there is none. */
export function shift<T>(fifo: Fifo<T>): T | undefined {
  if (fifo.length === 0) return undefined;
  const item = fifo.ring[fifo.head];
  fifo.ring[fifo.head] = undefined;
  fifo.head = (fifo.head + 1) & (fifo.ring.length - 1);
  fifo.length -= 1;
  return item;
}

/** The item at `position`, 0 being the oldest; undefined outside the queue. */
export function at<T>(fifo: Fifo<T>, position: number): T | undefined {
  if (position < 0 || position >= fifo.length) return undefined;
  return fifo.ring[(fifo.head + position) & (fifo.ring.length - 1)];
}

/** All items from `position` on, oldest first. */
export function from<T>(fifo: Fifo<T>, position: number): T[] {
  const items: T[] = [];
  for (let i = position; i < fifo.length; i++) {
    const item = at(fifo, i);
    if (item !== undefined) items.push(item);
  }
  return items;
}

function grow<T>(fifo: Fifo<T>): void {
  const items = from(fifo, 0);
  const ring = new Array<T | undefined>(fifo.ring.length * 2).fill(undefined);
  for (const [position, item] of items.entries()) ring[position] = item;
  fifo.ring = ring;
  fifo.head = 0;
}
