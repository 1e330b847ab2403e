/** LEAK on a disk: what lies in a database beside the table and the log that are in force (S2.2). */
import { blockRange, metaKey, otherPrefixes, POINTER_KEY, type KeyRange } from '../../../src/wire/disk.js';
import { decodeCutMeta, decodePointer } from '../../../src/wire/disk-records.js';
import { textOf, type View } from './records.js';

/** How many records a start should have removed, in words; undefined when there is none. `view` is what a start has accepted. */
export function leftOver(view: View): string | undefined {
  const pointer = view.get(textOf(POINTER_KEY));
  const prefix = pointer === undefined ? 0 : decodePointer(pointer);
  const meta = view.get(textOf(metaKey(prefix)));
  if (meta === undefined) return 'no table is in force';
  const { anchor } = decodeCutMeta(meta);
  const tables = otherPrefixes(prefix).reduce((sum, range) => sum + countIn(view, range), 0);
  const blocks = countIn(view, blockRange(anchor.index + 1));
  if (tables + blocks === 0) return undefined;
  return `${tables} records of tables out of use and ${blocks} log blocks below the anchor are left`;
}

function countIn(view: View, { gte, lt }: KeyRange): number {
  const [from, to] = [textOf(gte), textOf(lt)];
  let count = 0;
  for (const key of view.keys()) if (key >= from && key < to) count++;
  return count;
}
