/**
 * Who is passed over when a name comes free (design 7, Hand-over): the detached waiters in front of the last one that the
 * entry may come to. It may come to as many as there are places that are free, that it frees, or that entries before it
 * free which are not applied yet; for with each of those the queue may lose the first who is not detached.
 */
import { assert } from '../base/assert.js';
import { nameOf } from '../base/domain.js';
import type { Domain, RequestId } from '../base/ids.js';
import type { Command } from '../lease/commands.js';
import { queueOf } from '../lease/lookup.js';
import { freePlaces } from '../lease/slots.js';
import { attachmentOf, isDetached } from './attachments.js';
import { batches } from './batches.js';
import type { Context, Leadership } from './state.js';

/** Bytes of one id in a list. */
const ID_BYTES = 38;

/** What a leader's own command frees, or may free, with who is passed over. */
export interface Freeing<T> {
  readonly item: T;
  readonly name: Domain;
  readonly detached: readonly RequestId[];
}

/** The ids that an entry passes over which frees `frees` places of `name`, as the applied state and this leader see it now. */
export function passedOver(context: Context, leadership: Leadership, name: Domain, frees = 1): RequestId[] {
  const detached: RequestId[] = [];
  const listed: RequestId[] = [];
  let left = mayBeFree(context, leadership, name) + frees;
  if (left === 0) return listed;
  for (const waiter of queueOf(context.lease, name)) {
    const { requestId } = waiter;
    const attachment = attachmentOf(context, leadership, waiter);
    if (isDetached(context, attachment)) detached.push(requestId);
    else {
      listed.push(...detached.splice(0));
      left--;
      if (left === 0) return listed;
    }
  }
  // Whoever is behind the last who is not detached may be come to as well.
  return [...listed, ...detached];
}

/** Places of `name` that are free, or come free by what is on its way; at most. */
export function mayBeFree({ lease }: Context, { waits }: Leadership, name: Domain): number {
  return freePlaces(lease, name) + (waits.freeing.get(name) ?? 0);
}

/** The name of which a client's command frees a place, or takes a waiter away. */
export function freedBy(command: Command): readonly Domain[] {
  const { type } = command;
  return type === 'release' || type === 'withdraw' || type === 'forceRelease' ? [nameOf(command.domain)] : [];
}

/** An entry that frees a place of each of `names` was appended (`by` = 1), or applied (−1). */
export function countFreeing({ waits: { freeing } }: Leadership, names: readonly Domain[], by: 1 | -1): void {
  for (const name of names) {
    const now = (freeing.get(name) ?? 0) + by;
    assert(now >= 0, `${now} entries that free ${name} are on their way`);
    if (now === 0) freeing.delete(name);
    else freeing.set(name, now);
  }
}

/**
 * Splits what a leader's own commands free so that each part is one entry below the limit of an internal command. The items
 * of one name are together, and its list is with the first of them in each part. `bytesOf` is about the bytes of an item
 * without its list; `frees` how many places the `count` items of a name free at most.
 */
export function* freeingBatches<T>(
  context: Context,
  leadership: Leadership,
  items: readonly T[],
  domainOf: (item: T) => Domain,
  bytesOf: (item: T) => number,
  frees: (name: Domain, count: number) => number = (_, count) => count,
): Generator<readonly Freeing<T>[]> {
  const byName = new Map<Domain, T[]>();
  for (const item of items) {
    const name = nameOf(domainOf(item));
    const these = byName.get(name);
    if (these === undefined) byName.set(name, [item]);
    else these.push(item);
  }
  const all = [...byName].flatMap(([name, these]) => {
    const detached = passedOver(context, leadership, name, frees(name, these.length));
    return these.map((item): Freeing<T> => ({ item, name, detached }));
  });
  const bytes = ({ item, name, detached }: Freeing<T>, before: Freeing<T> | undefined): number =>
    bytesOf(item) + (before?.name === name ? 0 : ID_BYTES * detached.length);
  for (const batch of batches(all, bytes)) {
    yield batch.map((each, at) => (batch[at - 1]?.name === each.name ? { ...each, detached: [] } : each));
  }
}
