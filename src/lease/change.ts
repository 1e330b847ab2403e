/**
 * The only functions that change a state, each keeping all of its indexes in step and noting what the next cut has to
 * write. They assert what must hold before; `apply.ts` asserts what must hold after.
 */
import { AssertionFailed } from '../base/assert.js';
import type { Domain, RequestId } from '../base/ids.js';
import { at, shift } from './fifo.js';
import { addName, removeName } from './names.js';
import { dequeue, enqueue } from './queue.js';
import { count, countName, recountPrefixes } from './quotas.js';
import { ended, evict, hold, remember, wait } from './requests.js';
import { recordBytes } from './size.js';
import { createSlots, setTaken } from './slots.js';
import type { State } from './state.js';
import type { Asked, CoolDown, CountingName, FinishedRequest, Lease, StateLimits, Waiter } from './types.js';

// The messages are built only when they are needed: these checks run for every entry.

/** Makes `lease` the live lease of its domain, at the revision that is being applied. */
export function grant(state: State, lease: Lease): void {
  const { domain, token, requestId } = lease;
  if (token !== state.revision) {
    throw new AssertionFailed(`a grant of ${domain} at revision ${state.revision} has token ${token}`);
  }
  const held = state.leases.get(domain);
  if (held !== undefined) {
    throw new AssertionFailed(`${domain} is granted at ${token} while token ${held.token} is live`);
  }
  if (state.coolDowns.has(domain)) throw new AssertionFailed(`${domain} is granted at ${token} while it is closed`);
  // Two grants of one domain at one revision would be two leases with one token (L11).
  if (ended(state.requests, domain, token) !== undefined) {
    throw new AssertionFailed(`${domain} is granted at ${token} a second time`);
  }
  hold(state.requests, requestId, domain);
  markDirty(state, state.changes.dirty.domain, domain, false, recordBytes.asked(lease));
  state.leases.set(domain, lease);
  addName(state.names, domain);
  setTaken(state, domain, true);
  count(state, 'leases', lease, 1);
}

/** Replaces the live lease `lease` by itself with a new version and what is left of it for a leader that starts now. */
export function setCheckpoint(state: State, lease: Lease, checkpointLeftMs: number | undefined): void {
  const changed = { ...lease, version: lease.version + 1, checkpointLeftMs };
  markDirty(state, state.changes.dirty.domain, lease.domain, true, recordBytes.asked(changed));
  state.leases.set(lease.domain, changed);
}

/** Ends the live lease `lease` and remembers its request. */
export function end(
  state: State,
  lease: Lease,
  asked: Asked,
  reason: FinishedRequest['reason'],
  by = '',
  note = '',
): void {
  const { domain, token, requestId, owner } = lease;
  if (state.leases.get(domain) !== lease) {
    throw new AssertionFailed(`lease ${token} of ${domain} ends at ${state.revision}, but is not live`);
  }
  if (token >= state.revision) {
    throw new AssertionFailed(`lease ${token} of ${domain} ends at ${state.revision}, not after its grant`);
  }
  markDirty(state, state.changes.dirty.domain, domain, true, recordBytes.domainKey(domain));
  state.leases.delete(domain);
  dropName(state, domain);
  setTaken(state, domain, false);
  count(state, 'leases', lease, -1);
  finish(state, { requestId, domain, finishedAt: state.revision, token, reason, by, note, owner, asked });
}

/** Puts `waiter`, of the revision that is being applied, at the end of its queue. */
export function joinQueue(state: State, waiter: Waiter): void {
  const { domain, queuedAt } = waiter;
  if (queuedAt !== state.revision) {
    throw new AssertionFailed(`a waiter for ${domain} at revision ${state.revision} is of ${queuedAt}`);
  }
  wait(state.requests, waiter);
  const queue = state.queues.get(domain);
  if (queue === undefined) state.queues.set(domain, [waiter]);
  else enqueue(queue, waiter);
  addName(state.names, domain);
  count(state, 'waiters', waiter, 1);
  markDirty(state, state.changes.dirty.waiter, waiter, false, recordBytes.asked(waiter));
}

/** Takes `waiter` out of its queue. Its request is granted or finished next. */
export function leaveQueue(state: State, waiter: Waiter): void {
  const { domain } = waiter;
  const queue = state.queues.get(domain) ?? [];
  dequeue(queue, waiter);
  if (queue.length === 0) {
    state.queues.delete(domain);
    dropName(state, domain);
  }
  count(state, 'waiters', waiter, -1);
  markDirty(state, state.changes.dirty.waiter, waiter, true, recordBytes.waiterKey);
}

/** Remembers the end of a request that was never granted: a waiter that left its queue, or an id that never came (F6). */
export function finishUngranted(
  state: State,
  request: { readonly requestId: RequestId; readonly domain: Domain; readonly owner: string },
  asked: Asked | undefined,
  reason: 'withdrawn' | 'left_queue',
): void {
  const { requestId, domain, owner } = request;
  const held = state.requests.known.get(requestId);
  if (typeof held === 'string') throw new AssertionFailed(`request ${requestId} holds ${held} and ends ungranted`);
  const finishedAt = state.revision;
  finish(state, { requestId, domain, finishedAt, token: undefined, reason, by: '', note: '', owner, asked });
}

/** Closes a domain or a slot that nobody holds. */
export function close(state: State, coolDown: CoolDown): void {
  const { domain } = coolDown;
  if (state.leases.has(domain) || state.coolDowns.has(domain)) {
    throw new AssertionFailed(`${domain} is closed at ${state.revision} while it is held or closed`);
  }
  markDirty(state, state.changes.dirty.coolDown, domain, false, recordBytes.coolDown(domain));
  state.coolDowns.set(domain, coolDown);
  addName(state.names, domain);
  setTaken(state, domain, true);
}

/** Opens what `coolDown` closed. */
export function open(state: State, coolDown: CoolDown): void {
  const { domain } = coolDown;
  if (state.coolDowns.get(domain) !== coolDown) throw new AssertionFailed(`${domain} is opened and was not closed so`);
  markDirty(state, state.changes.dirty.coolDown, domain, true, recordBytes.domainKey(domain));
  state.coolDowns.delete(domain);
  dropName(state, domain);
  setTaken(state, domain, false);
}

/** Makes a name a counting one, for good. */
export function beginCounting(state: State, counting: CountingName): void {
  const { name } = counting;
  if (state.slots.has(name)) throw new AssertionFailed(`${name} counts already`);
  markDirty(state, state.changes.dirty.counting, name, false, recordBytes.counting(counting));
  state.slots.set(name, createSlots(counting));
  countName(state, counting);
}

/** Allows grants from here. */
export function endHold(state: State): void {
  state.holding = false;
  state.changes.bytes += recordBytes.summary;
}

/** Other limits are in force from here. What is held and waits stays, whatever it comes to: only what is new is refused. */
export function setLimits(state: State, limits: StateLimits): void {
  state.limits = limits;
  recountPrefixes(state);
  state.changes.bytes += recordBytes.summary;
}

/** Forgets the oldest finished requests beyond the limit. Called once for an entry, after its command. */
export function forgetOldest(state: State): void {
  const { changes, requests, limits } = state;
  if (requests.order.length <= limits.finishedRequests) return;
  evict(requests, limits.finishedRequests, (request) => {
    if (request.finishedAt > changes.takenAt) changes.bytes -= recordBytes.finished(request);
  });
  for (let key = at(changes.batches, 0); key !== undefined && key <= requests.forgotten; key = at(changes.batches, 0)) {
    shift(changes.batches);
    changes.outdated.push(key);
    changes.bytes += recordBytes.batchKey;
  }
}

/** A name is shown for as long as there is anything to say of it. */
function dropName({ names, leases, queues, coolDowns }: State, name: Domain): void {
  if (!leases.has(name) && !queues.has(name) && !coolDowns.has(name)) removeName(names, name);
}

function finish(state: State, request: FinishedRequest): void {
  remember(state.requests, request);
  state.changes.bytes += recordBytes.finished(request);
}

/** Notes that the record `key`, which was there until now or was not, changes and takes `bytes` in the next cut. */
function markDirty<Key>(
  { changes }: State,
  dirty: Map<Key, { readonly stored: boolean; bytes: number }>,
  key: Key,
  wasThere: boolean,
  bytes: number,
): void {
  const known = dirty.get(key);
  if (known === undefined) {
    // Untouched since the last cut, so that cut holds what the state holds now.
    dirty.set(key, { stored: wasThere, bytes });
    changes.bytes += bytes;
  } else {
    changes.bytes += bytes - known.bytes;
    known.bytes = bytes;
  }
}
