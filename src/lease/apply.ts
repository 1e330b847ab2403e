/** Applies one log entry. Uses nothing but state and entry; dispatches, and asserts what must hold before and after. */
import { AssertionFailed, unreachable } from '../base/assert.js';
import type { Revision } from '../base/revision.js';
import { acquire } from './acquire.js';
import { forgetOldest } from './change.js';
import { checkpoint, endCoolDown, stopHolding, voidCheckpoints } from './clock.js';
import type { Command } from './commands.js';
import { endWait, expire, forceRelease, release, withdraw } from './finish.js';
import { changeLimits } from './limits.js';
import { finishedLease } from './lookup.js';
import type { State } from './state.js';
import type { Applied, Doing, Result } from './types.js';

/** Where the entry stands. */
export interface EntryAt {
  /** The entry's revision: one more than that of the entry applied before it. */
  readonly revision: Revision;
  /** The entry's Raft term, which internal commands are compared with. */
  readonly term: number;
}

const DONE: Result = { type: 'done' };

/**
 * Applies the entry at `at` and says what it did. `command` is undefined for a no-op and for a configuration: they take
 * a revision and change nothing else.
 *
 * Throws `AssertionFailed` when an entry is skipped or applied twice, and when a rule of the state machine would be
 * broken; the state is then of no use any more.
 */
export function apply(state: State, at: EntryAt, command: Command | undefined): Applied {
  if (at.revision !== state.revision + 1) {
    throw new AssertionFailed(`revision ${at.revision} is applied after ${state.revision}, not the next one`);
  }
  state.revision = at.revision;
  const doing: Doing = { granted: [], ended: [], queued: undefined, left: [], closed: [], opened: [] };
  if (command === undefined) return { result: DONE, ...doing };
  const result = dispatch(state, at.term, command, doing) ?? DONE;
  forgetOldest(state);
  check(state, doing);
  return { result, ...doing };
}

/** The result for the caller that proposed the command; undefined for a leader's own. */
function dispatch(state: State, term: number, command: Command, doing: Doing): Result | undefined {
  switch (command.type) {
    case 'acquire':
      return acquire(state, command, doing);
    case 'withdraw':
      return withdraw(state, command, doing);
    case 'release':
      return release(state, command, doing);
    case 'forceRelease':
      return forceRelease(state, command, doing);
    case 'limits':
      return changeLimits(state, command);
    case 'expire':
      expire(state, command, term, doing);
      return undefined;
    case 'endWait':
      endWait(state, command, term, doing);
      return undefined;
    case 'endCoolDown':
      endCoolDown(state, command, term, doing);
      return undefined;
    case 'checkpoint':
      checkpoint(state, command);
      return undefined;
    case 'void':
      voidCheckpoints(state, command);
      return undefined;
    case 'endHold':
      stopHolding(state, command, term);
      return undefined;
  }
  return unreachable(command);
}

/**
 * The other half of the assertions in `change.ts`: what the entry says it did is what the state shows. A domain granted
 * twice by one entry fails here too, because the state holds only one of the two leases.
 */
function check(state: State, { granted, ended, queued, left, closed }: Doing): void {
  const { revision } = state;
  for (const lease of granted) {
    if (lease.token !== revision || state.leases.get(lease.domain) !== lease) {
      throw new AssertionFailed(`the grant of ${lease.domain} at revision ${revision} is not what the state holds`);
    }
  }
  for (const { lease } of ended) {
    const request = finishedLease(state, lease);
    if (request?.finishedAt !== revision || state.leases.get(lease.domain) === lease) {
      throw new AssertionFailed(
        `the end of lease ${lease.token} of ${lease.domain} at ${revision} is not what the state holds`,
      );
    }
  }
  if (queued !== undefined && state.requests.known.get(queued.requestId) !== queued) {
    throw new AssertionFailed(`request ${queued.requestId}, queued at ${revision}, does not wait`);
  }
  for (const waiter of left) {
    if (state.requests.known.get(waiter.requestId) === waiter) {
      throw new AssertionFailed(`request ${waiter.requestId}, which left its queue at ${revision}, still waits`);
    }
  }
  for (const { domain, since } of closed) {
    if (since !== revision || state.coolDowns.get(domain)?.since !== since) {
      throw new AssertionFailed(`the cool-down of ${domain} at ${revision} is not what the state holds`);
    }
  }
}
