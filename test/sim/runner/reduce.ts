/** Makes the list of faults behind a failure short: what a run can do without is no part of the story. */

/**
 * The items of `all` without which `fails` is no longer true, as far as `mayTry` lets it be tried; `fails(all)` must
 * be true. First halves, then ever smaller parts, at last one by one (delta debugging, Zeller and Hildebrandt 2002).
 */
export async function reduce<T>(
  all: readonly T[],
  fails: (kept: readonly T[]) => Promise<boolean>,
  mayTry: () => boolean,
): Promise<readonly T[]> {
  let kept = all;
  if (kept.length > 0 && mayTry() && (await fails([]))) return [];
  for (let parts = 2; kept.length > 1 && mayTry();) {
    const size = Math.ceil(kept.length / parts);
    let shorter: readonly T[] | undefined;
    for (let from = 0; from < kept.length && shorter === undefined && mayTry(); from += size) {
      const rest = [...kept.slice(0, from), ...kept.slice(from + size)];
      if (await fails(rest)) shorter = rest;
    }
    if (shorter !== undefined) {
      kept = shorter;
      parts = Math.max(2, parts - 1);
    } else if (size === 1) break;
    else parts = Math.min(kept.length, parts * 2);
  }
  return kept;
}
