/** Many items in few entries. */
import { MAX_INTERNAL_COMMAND_BYTES } from '../base/limits.js';

/**
 * Splits so that each part stays below the limit of an internal command. `sizeOf` is about the bytes of an item behind
 * `before`, which is undefined for the first of a part.
 */
export function* batches<T>(items: readonly T[], sizeOf: (item: T, before: T | undefined) => number): Generator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for (const item of items) {
    let size = sizeOf(item, batch.at(-1));
    if (bytes + size > MAX_INTERNAL_COMMAND_BYTES && batch.length > 0) {
      yield batch;
      batch = [];
      bytes = 0;
      size = sizeOf(item, undefined);
    }
    batch.push(item);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
