/**
 * Counting names (design 7, Slots; F12): `n` slots, `name#0` to `name#(n-1)`, each with its own order of tokens, and one
 * queue. The number is fixed by the first grant for good: with a lower one, stale holders of dropped slots would never be
 * fenced. A name is exclusive or counting, never both.
 */
import { AssertionFailed } from '../base/assert.js';
import { slotOf } from '../base/domain.js';
import type { Domain } from '../base/ids.js';
import type { Slots, State } from './state.js';
import type { CountingName } from './types.js';

/** All slots free. */
export function createSlots(counting: CountingName): Slots {
  return { counting, taken: new Array<boolean>(counting.slots).fill(false), count: 0 };
}

/** Notes that `domain`, which is a domain or a slot, is taken, or free again. */
export function setTaken(state: State, domain: Domain, taken: boolean): void {
  const slot = slotOf(domain);
  if (slot === undefined) return;
  const slots = state.slots.get(slot.name);
  if (slots?.taken[slot.number] !== !taken) {
    throw new AssertionFailed(`slot ${domain} becomes ${taken ? 'taken' : 'free'} and was so, or is none of its name`);
  }
  slots.taken[slot.number] = taken;
  slots.count += taken ? 1 : -1;
}

/** The domain, or the lowest slot, of `name` that is neither held nor closed; undefined when there is none. */
export function freePlace(state: State, name: Domain): Domain | undefined {
  const slots = state.slots.get(name);
  if (slots === undefined) return state.leases.has(name) || state.coolDowns.has(name) ? undefined : name;
  if (slots.count === slots.counting.slots) return undefined;
  return slotDomain(name, slots.taken.indexOf(false));
}

/** How many places of `name` are neither held nor closed: itself, or its slots. */
export function freePlaces(state: State, name: Domain): number {
  const slots = state.slots.get(name);
  if (slots !== undefined) return slots.counting.slots - slots.count;
  return freePlace(state, name) === undefined ? 0 : 1;
}

/** True when an acquire of `name` with that number of slots contradicts what the name is. */
export function slotsDiffer(state: State, name: Domain, slots: number): boolean {
  const counting = state.slots.get(name);
  if (counting !== undefined) return counting.counting.slots !== slots;
  if (slots === 1) return false;
  // Exclusive for as long as somebody holds it, waits for it or is kept away from it.
  return state.leases.has(name) || state.coolDowns.has(name) || state.queues.has(name);
}

/** The slot's own name. */
export function slotDomain(name: Domain, number: number): Domain {
  return `${name}#${number}` as Domain;
}
