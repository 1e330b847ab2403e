/** Makes the list of faults behind a failure short: what a run can do without is no part of the story. */

/**
 * The items of `all` without which `fails` is no longer true, as far as `budget` calls of it can tell; `fails(all)` must
 * be true. First halves, then ever smaller parts, at last one by one (delta debugging, Zeller and Hildebrandt 2002).
 */
export async function reduce<T>(
  all: readonly T[],
  fails: (kept: readonly T[]) => Promise<boolean>,
  budget: number,
): Promise<readonly T[]> {
  let kept = all;
  let calls = 0;
  const stillFails = async (candidate: readonly T[]): Promise<boolean> => {
    calls++;
    return fails(candidate);
  };
  if (kept.length > 0 && calls < budget && (await stillFails([]))) return [];
  for (let parts = 2; kept.length > 1 && calls < budget;) {
    const size = Math.ceil(kept.length / parts);
    let shorter: readonly T[] | undefined;
    for (let from = 0; from < kept.length && shorter === undefined && calls < budget; from += size) {
      const rest = [...kept.slice(0, from), ...kept.slice(from + size)];
      if (await stillFails(rest)) shorter = rest;
    }
    if (shorter !== undefined) {
      kept = shorter;
      parts = Math.max(2, parts - 1);
    } else if (size === 1) break;
    else parts = Math.min(kept.length, parts * 2);
  }
  return kept;
}
