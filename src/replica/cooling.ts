/**
 * Cool-downs at the leader (design 7): it measures how long a domain stays closed after an expiry, in full again at a
 * leader change, and opens it by an entry of its own term.
 */
import { assert } from '../base/assert.js';
import type { Domain } from '../base/ids.js';
import { coolDownOf, coolDowns, slotsOf } from '../lease/lookup.js';
import { freePlace, slotDomain } from '../lease/slots.js';
import type { Applied, CoolDown } from '../lease/types.js';
import { setDue, takeDue } from './due.js';
import { freeingBatches } from './passing.js';
import { proposeInternal } from './proposing.js';
import type { Context, Cooling, Leadership } from './state.js';

/** What could not be proposed, because leadership is being handed over, is tried again after this, in milliseconds. */
const RETRY_MS = 50;

/** This leader begins: every domain stays closed for its full time. Each is timed by and by, as the leases are. */
export function takeOverCoolDowns({ lease, time }: Context, leadership: Leadership): void {
  leadership.coolingFound = { coolDowns: coolDowns(lease)[Symbol.iterator](), from: time.nowMs };
}

/** Begins to time at most `limit` of the cool-downs that were found. */
function timeFound(leadership: Leadership, limit: number): void {
  for (let looks = 0; leadership.coolingFound !== undefined && looks < limit; looks++) {
    const { coolDowns: found, from } = leadership.coolingFound;
    const next = found.next();
    if (next.done === true) leadership.coolingFound = undefined;
    // One that began meanwhile is timed already.
    else if (!leadership.cooling.has(next.value.domain)) beginCooling(leadership, next.value, from);
  }
}

/** What an entry closed and opened. */
export function settleCoolDowns(context: Context, leadership: Leadership, applied: Applied): void {
  for (const { domain } of applied.opened) leadership.cooling.delete(domain);
  for (const coolDown of applied.closed) beginCooling(leadership, coolDown, context.time.nowMs);
}

function beginCooling({ cooling, coolingDue }: Leadership, coolDown: CoolDown, from: number): void {
  const { domain, ms } = coolDown;
  assert(!cooling.has(domain), `domain ${domain} cools down twice`);
  const begun: Cooling = { coolDown, until: from + ms, dueAt: Infinity };
  cooling.set(domain, begun);
  setDue(coolingDue, begun, begun.until);
}

/**
 * What is left of the cool-down of `domain`, in whole milliseconds; of a counting name without a free slot, until the first
 * closed one opens. 0 for none, and where no leader measures it.
 */
export function coolDownLeftMs(context: Context, domain: Domain): number {
  const { time, lease, leadership } = context;
  if (leadership === undefined || (leadership.cooling.size === 0 && leadership.coolingFound === undefined)) return 0;
  if (freePlace(lease, domain) !== undefined) return 0;
  const slots = slotsOf(lease, domain);
  let until = endOf(context, leadership, domain);
  for (let number = 0; number < (slots ?? 0); number++) {
    until = Math.min(until, endOf(context, leadership, slotDomain(domain, number)));
  }
  return until === Infinity ? 0 : Math.max(0, Math.ceil(until - time.nowMs));
}

/** When the cool-down of a domain or a slot is over; Infinity without one. */
function endOf({ lease }: Context, { cooling, coolingFound }: Leadership, domain: Domain): number {
  const timed = cooling.get(domain);
  if (timed !== undefined) return timed.until;
  const found = coolingFound === undefined ? undefined : coolDownOf(lease, domain);
  return coolingFound === undefined || found === undefined ? Infinity : coolingFound.from + found.ms;
}

/** Opens what is due. Called at each tick. */
export function scanCoolDowns(context: Context, leadership: Leadership): void {
  const { nowMs, unixMs } = context.time;
  timeFound(leadership, context.options.timedPerTick);
  const parts = freeingBatches(
    context,
    leadership,
    takeDue(leadership.coolingDue, nowMs),
    ({ coolDown }) => coolDown.domain,
    ({ coolDown }) => 24 + coolDown.domain.length,
  );
  for (const part of parts) {
    const domains = part.map(({ item: { coolDown }, detached }) => {
      const { domain, since } = coolDown;
      return { domain, since, detached };
    });
    const command = { type: 'endCoolDown', term: leadership.term, domains, atUnixMs: unixMs } as const;
    const frees = part.map(({ name }) => name);
    if (proposeInternal(context, leadership, command, { frees }) !== undefined) continue;
    for (const { item } of part) setDue(leadership.coolingDue, item, nowMs + RETRY_MS);
  }
}
