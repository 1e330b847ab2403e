/**
 * The names that a List shows, in byte order: domains and slots that are held or closed, names that are waited for. Kept
 * as blocks of at most some hundreds, so that one more name, one less, and the next page cost microseconds among a million.
 * Names are ASCII, whose order as text is that of their bytes.
 */
import type { Domain } from '../base/ids.js';

/** Blocks in order, each in order, none empty. */
export type Names = Domain[][];

const BLOCK = 512;

/** Adds `name`, if it is not there. */
export function addName(names: Names, name: Domain): void {
  const at = blockOf(names, name);
  const block = names[at];
  if (block === undefined) {
    names.push([name]);
    return;
  }
  const place = placeIn(block, name);
  if (block[place] === name) return;
  block.splice(place, 0, name);
  if (block.length > BLOCK) names.splice(at + 1, 0, block.splice(BLOCK / 2));
}

/** Takes `name` out, if it is there. */
export function removeName(names: Names, name: Domain): void {
  const at = blockOf(names, name);
  const block = names[at];
  if (block === undefined) return;
  const place = placeIn(block, name);
  if (block[place] !== name) return;
  block.splice(place, 1);
  if (block.length === 0) names.splice(at, 1);
}

/** At most `limit` names that begin with `prefix`, from the first behind `after` on; '' for the first of all. */
export function namesFrom(names: Names, prefix: string, after: string, limit: number): Domain[] {
  const found: Domain[] = [];
  const start = after > prefix ? after : prefix;
  for (let at = blockOf(names, start); at < names.length; at++) {
    const block = names[at] ?? [];
    for (let place = placeIn(block, start); place < block.length; place++) {
      const name = block[place];
      if (name === undefined || name === after) continue;
      if (!name.startsWith(prefix) || found.length === limit) return found;
      found.push(name);
    }
  }
  return found;
}

/** The first block that ends at or behind `name`; the last one for a name behind all. */
function blockOf(names: Names, name: string): number {
  let low = 0;
  let high = names.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((names[middle]?.at(-1) ?? '') < name) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where `name` is in `block`, or belongs. */
function placeIn(block: readonly Domain[], name: string): number {
  let low = 0;
  let high = block.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((block[middle] ?? '') < name) low = middle + 1;
    else high = middle;
  }
  return low;
}
