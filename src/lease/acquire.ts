/** Acquire: grants, or queues. A known id is answered from the state as it is now, never from a recording (F8). */
import type { Domain } from '../base/ids.js';
import { beginCounting, joinQueue } from './change.js';
import type { CommandOf } from './commands.js';
import { grantPlace, grantWaiter } from './hand-over.js';
import { askedFor, endedRequest, findRequest, leaseInTheWay, queueOf } from './lookup.js';
import type { FoundRequest } from './lookup.js';
import { overLeases, overNames, overWaiters } from './quotas.js';
import { differenceFrom } from './reuse.js';
import { freePlace, slotDomain, slotsDiffer } from './slots.js';
import type { State } from './state.js';
import type { Doing, RefusalReason, Result, Waiter } from './types.js';

/** An Acquire as the log has it. */
export type AcquireCommand = CommandOf<'acquire'>;

/** Grants the domain, or a slot of it, if one is free and the id is new; else queues it if it may wait. */
export function acquire(state: State, command: AcquireCommand, doing: Doing): Result {
  const found = findRequest(state, command.requestId);
  if (found !== undefined) return repeated(state, command, found, doing);
  const { forgotten } = state.requests;
  // Its record may have been evicted: granting could be the second time (F6).
  if (command.seenRevision < forgotten) return { type: 'tooOld', forgotten };
  const { domain, slots } = command;
  if (slotsDiffer(state, domain, slots)) return refused(state, domain, 'slots_differ');
  // A name that does not count yet begins with its first slot.
  const begins = slots > 1 && !state.slots.has(domain);
  const place = begins ? slotDomain(domain, 0) : freePlace(state, domain);
  if (place === undefined || state.holding) return queueOr(state, command, doing);
  const over = begins ? overNames(state, command) : undefined;
  const refusal = over ?? overLeases(state, command);
  if (refusal !== undefined) return refusal;
  if (begins) beginCounting(state, { name: domain, slots, principal: command.principal });
  return { type: 'granted', lease: grantPlace(state, place, command, command.atUnixMs, doing) };
}

/**
 * An id that the state knows stands for one domain, TTL, holder, cool-down, number of slots and owner; metadata, wait and
 * seenRevision may differ, because a repetition may know more. A waiter who finds its domain free is granted: it had been
 * passed over as detached, or grants were held back.
 */
function repeated(state: State, command: AcquireCommand, found: FoundRequest, doing: Doing): Result {
  const difference = differenceOf(state, command, found);
  if (difference !== undefined) return { type: 'reused', difference };
  switch (found.type) {
    case 'live':
      return { type: 'granted', lease: found.lease };
    case 'finished':
      return { type: 'ended', ended: endedRequest(state, found.request) };
    case 'waiting': {
      const { waiter } = found;
      const place = state.holding ? undefined : freePlace(state, waiter.domain);
      if (place === undefined) return { type: 'queued', waiter, current: leaseInTheWay(state, waiter.domain) };
      return { type: 'granted', lease: grantWaiter(state, place, waiter, command.atUnixMs, doing) };
    }
  }
}

/** In which field an Acquire differs from what its id stands for; undefined for none. */
export function differenceOf(
  state: State,
  command: Omit<AcquireCommand, 'type' | 'atUnixMs'>,
  found: FoundRequest,
): string | undefined {
  switch (found.type) {
    case 'live':
      return differenceFrom(found.lease, askedFor(state, found.lease), command);
    case 'waiting':
      return differenceFrom(found.waiter, found.waiter, command);
    case 'finished':
      return differenceFrom(found.request, found.request.asked, command);
  }
}

function queueOr(state: State, command: AcquireCommand, doing: Doing): Result {
  const { domain, waitMs } = command;
  if (waitMs === 0) return refused(state, domain, whyNot(state, domain));
  // A name that does not count yet has nothing to wait for: only a hold gets here with it, and ends by itself.
  if (command.slots > 1 && !state.slots.has(domain)) return refused(state, domain, 'recovering');
  if (queueOf(state, domain).length >= state.limits.queue) return refused(state, domain, 'queue_full');
  const over = overWaiters(state, command);
  if (over !== undefined) return over;
  const waiter = waiterFrom(state, command);
  joinQueue(state, waiter);
  doing.queued = waiter;
  return { type: 'queued', waiter, current: leaseInTheWay(state, domain) };
}

/** What nobody holds, and is not free, is closed: the domain, or all slots of the name. */
function whyNot(state: State, domain: Domain): RefusalReason {
  if (state.holding) return 'recovering';
  return leaseInTheWay(state, domain) === undefined ? 'cool_down' : 'held';
}

function refused(state: State, domain: Domain, reason: RefusalReason): Result {
  return { type: 'notGranted', reason, current: leaseInTheWay(state, domain) };
}

function waiterFrom(state: State, command: AcquireCommand): Waiter {
  const { domain, requestId, holder, metadata, ttlMs, coolDownMs, slots, waitMs, atUnixMs, owner, principal } = command;
  return {
    domain,
    queuedAt: state.revision,
    requestId,
    holder,
    metadata,
    ttlMs,
    coolDownMs,
    slots,
    waitMs,
    queuedAtUnixMs: atUnixMs,
    owner,
    principal,
  };
}
