/**
 * Items by the time at which each has to be looked at, in steps of some milliseconds: putting one in, moving it and taking
 * it out cost the same however many there are, and nothing is left behind by those that are gone.
 */

/** What has such a time. Changed only by the functions of this file. */
export interface Due {
  /** Monotonic milliseconds; Infinity while it is in no list. */
  dueAt: number;
}

/** A list of them; an item is in one list at most. */
export interface DueList<T extends Due> {
  /** By step. */
  readonly steps: Map<number, Set<T>>;
  /** No step before this one holds anything. */
  first: number;
}

/** How late an item may be taken, in milliseconds. */
const STEP_MS = 20;
/** What one tick takes from a list: tens of thousands that are due together are done within a second, calls flow between. */
export const MAX_DUE_A_TICK = 2_000;

/** An empty list. */
export function createDueList<T extends Due>(): DueList<T> {
  return { steps: new Map(), first: 0 };
}

/** Puts `item` in, or moves it; with Infinity it is taken out. */
export function setDue<T extends Due>(list: DueList<T>, item: T, at: number): void {
  const step = stepOf(at);
  if (stepOf(item.dueAt) === step) {
    item.dueAt = at;
    return;
  }
  dropDue(list, item);
  item.dueAt = at;
  if (step === Infinity) return;
  list.first = list.steps.size === 0 ? step : Math.min(list.first, step);
  const items = list.steps.get(step);
  if (items === undefined) list.steps.set(step, new Set([item]));
  else items.add(item);
}

/** Takes `item` out, if it is in. */
export function dropDue<T extends Due>(list: DueList<T>, item: T): void {
  const step = stepOf(item.dueAt);
  const items = list.steps.get(step);
  if (items?.delete(item) === true && items.size === 0) list.steps.delete(step);
  item.dueAt = Infinity;
}

/** Takes out what is due at `now`, at most `limit` items, oldest steps first. */
export function takeDue<T extends Due>(list: DueList<T>, now: number, limit = MAX_DUE_A_TICK): T[] {
  const taken: T[] = [];
  const last = Math.floor(now / STEP_MS);
  for (; list.steps.size > 0 && list.first <= last; list.first++) {
    for (const item of list.steps.get(list.first) ?? []) {
      if (taken.length === limit) return taken;
      dropDue(list, item);
      taken.push(item);
    }
  }
  return taken;
}

/** The step at whose beginning what is due `at` is due. */
function stepOf(at: number): number {
  return Math.ceil(at / STEP_MS);
}
