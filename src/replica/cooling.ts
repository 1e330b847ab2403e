/**
 * Cool-downs at the leader (design 7): it measures how long a domain stays closed after an expiry, in full again at a
 * leader change, and opens it by an entry of its own term.
 */
import { assert } from '../base/assert.js';
import type { Domain } from '../base/ids.js';
import { coolDowns, slotsOf } from '../lease/lookup.js';
import { freePlace, slotDomain } from '../lease/slots.js';
import type { Applied, CoolDown } from '../lease/types.js';
import { setDue, takeDue } from './due.js';
import { freeingBatches } from './passing.js';
import { proposeInternal } from './proposing.js';
import type { Context, Cooling, Leadership } from './state.js';

/** What could not be proposed, because leadership is being handed over, is tried again after this, in milliseconds. */
const RETRY_MS = 50;

/** This leader begins: every domain stays closed for its full time. */
export function takeOverCoolDowns(context: Context, leadership: Leadership): void {
  for (const coolDown of coolDowns(context.lease)) beginCooling(context, leadership, coolDown);
}

/** What an entry closed and opened. */
export function settleCoolDowns(context: Context, leadership: Leadership, applied: Applied): void {
  for (const { domain } of applied.opened) leadership.cooling.delete(domain);
  for (const coolDown of applied.closed) beginCooling(context, leadership, coolDown);
}

function beginCooling({ time }: Context, { cooling, coolingDue }: Leadership, coolDown: CoolDown): void {
  const { domain, ms } = coolDown;
  assert(!cooling.has(domain), `domain ${domain} cools down twice`);
  const begun: Cooling = { coolDown, until: time.nowMs + ms, dueAt: Infinity };
  cooling.set(domain, begun);
  setDue(coolingDue, begun, begun.until);
}

/**
 * What is left of the cool-down of `domain`, in whole milliseconds; of a counting name without a free slot, until the first
 * closed one opens. 0 for none, and where no leader measures it.
 */
export function coolDownLeftMs({ time, lease, leadership }: Context, domain: Domain): number {
  const cooling = leadership?.cooling;
  if (cooling === undefined || cooling.size === 0 || freePlace(lease, domain) !== undefined) return 0;
  const slots = slotsOf(lease, domain);
  let until = cooling.get(domain)?.until ?? Infinity;
  for (let number = 0; number < (slots ?? 0); number++) {
    until = Math.min(until, cooling.get(slotDomain(domain, number))?.until ?? Infinity);
  }
  return until === Infinity ? 0 : Math.max(0, Math.ceil(until - time.nowMs));
}

/** Opens what is due. Called at each tick. */
export function scanCoolDowns(context: Context, leadership: Leadership): void {
  const { nowMs, unixMs } = context.time;
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
