/**
 * Cool-downs at the leader (design 7): it measures how long a domain stays closed after an expiry, in full again at a
 * leader change, and opens it by an entry of its own term.
 */
import { assert } from '../base/assert.js';
import { nameOf } from '../base/domain.js';
import type { Domain } from '../base/ids.js';
import { coolDowns } from '../lease/lookup.js';
import type { Applied, CoolDown } from '../lease/types.js';
import { batches, proposeInternal } from './renewal.js';
import type { Context, Leadership } from './state.js';
import { detachedBefore } from './waiting.js';

/** One closed domain as this leader times it. */
export interface Cooling {
  readonly coolDown: CoolDown;
  readonly until: number;
  /** True while an EndCoolDown of it is open. */
  opening: boolean;
}

/** This leader begins: every domain stays closed for its full time. */
export function takeOverCoolDowns(context: Context, leadership: Leadership): void {
  for (const coolDown of coolDowns(context.lease)) beginCooling(context, leadership, coolDown);
}

/** What an entry closed and opened. */
export function settleCoolDowns(context: Context, leadership: Leadership, applied: Applied): void {
  for (const { domain } of applied.opened) leadership.cooling.delete(domain);
  for (const coolDown of applied.closed) beginCooling(context, leadership, coolDown);
}

function beginCooling({ time }: Context, { cooling }: Leadership, coolDown: CoolDown): void {
  const { domain, ms } = coolDown;
  assert(!cooling.has(domain), `domain ${domain} cools down twice`);
  cooling.set(domain, { coolDown, until: time.nowMs + ms, opening: false });
}

/** What is left of the cool-down of `domain`, in whole milliseconds; 0 for none. */
export function coolDownLeftMs({ time, leadership }: Context, domain: Domain): number {
  const cooling = leadership?.cooling.get(domain);
  return cooling === undefined ? 0 : Math.max(0, Math.ceil(cooling.until - time.nowMs));
}

/** Opens what is due. Called at each tick. */
export function scanCoolDowns(context: Context, leadership: Leadership): void {
  const { nowMs, unixMs } = context.time;
  const due = [...leadership.cooling.values()].filter(({ until, opening }) => !opening && until <= nowMs);
  const ends = due.map((cooling) => {
    const { domain, since } = cooling.coolDown;
    return { cooling, domain, since, detached: detachedBefore(context, leadership, nameOf(domain)) };
  });
  for (const batch of batches(ends, ({ domain, detached }) => 24 + domain.length + 38 * detached.length)) {
    const domains = batch.map(({ domain, since, detached }) => ({ domain, since, detached }));
    const command = { type: 'endCoolDown', term: leadership.term, domains, atUnixMs: unixMs } as const;
    if (proposeInternal(context, leadership, command) === undefined) continue;
    for (const { cooling } of batch) cooling.opening = true;
  }
}
