/**
 * The waiters of one domain or counting name, first come first served. Their order is the revision that queued them, a
 * field of the record: a member that loaded its table has the same queue as its peers (S4).
 */
import { AssertionFailed } from '../base/assert.js';
import type { RequestId } from '../base/ids.js';
import type { Waiter } from './types.js';

/** Ascending by `queuedAt`. A queue has at most some thousands of waiters, so taking one out of the middle is cheap. */
export type Queue = Waiter[];

/** Puts `waiter`, who is the newest of all, at the end. */
export function enqueue(queue: Queue, waiter: Waiter): void {
  const last = queue.at(-1);
  if (last !== undefined && last.queuedAt >= waiter.queuedAt) {
    throw new AssertionFailed(`request ${waiter.requestId} is queued at ${waiter.queuedAt}, behind ${last.queuedAt}`);
  }
  queue.push(waiter);
}

/** Takes `waiter`, who is in the queue, out of it. */
export function dequeue(queue: Queue, waiter: Waiter): void {
  queue.splice(placeOf(queue, waiter), 1);
}

/** The place of `waiter`, who is in the queue; 0 is the first. */
export function placeOf(queue: Queue, waiter: Waiter): number {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((queue[middle]?.queuedAt ?? Infinity) < waiter.queuedAt) low = middle + 1;
    else high = middle;
  }
  if (queue[low] !== waiter)
    throw new AssertionFailed(`request ${waiter.requestId} should wait for ${waiter.domain} and does not`);
  return low;
}

/** The first waiter who is not among `passed`. */
export function firstBut(queue: Queue, passed: ReadonlySet<RequestId>): Waiter | undefined {
  return queue.find(({ requestId }) => !passed.has(requestId));
}
