/** Applies one log entry. Uses nothing but state and entry; dispatches, and asserts what must hold before and after. */
import { AssertionFailed, unreachable } from '../base/assert.js';
import type { Revision } from '../base/revision.js';
import { acquire } from './acquire.js';
import { forgetOldest } from './change.js';
import { checkpoint, stopHolding, voidCheckpoints } from './clock.js';
import { expire, forceRelease, release, withdraw } from './finish.js';
import type { State } from './state.js';
import type { Applied, Command } from './types.js';

/** Where the entry stands. */
export interface EntryAt {
  /** The entry's revision: one more than that of the entry applied before it. */
  readonly revision: Revision;
  /** The entry's Raft term, which internal commands are compared with. */
  readonly term: number;
}

const NOTHING: Applied = { result: { type: 'done' }, granted: [], ended: [] };

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
  if (command === undefined) return NOTHING;
  const applied = dispatch(state, at.term, command);
  forgetOldest(state);
  check(state, applied);
  return applied;
}

function dispatch(state: State, term: number, command: Command): Applied {
  switch (command.type) {
    case 'acquire':
      return acquire(state, command);
    case 'withdraw':
      return withdraw(state, command);
    case 'release':
      return release(state, command);
    case 'forceRelease':
      return forceRelease(state, command);
    case 'expire':
      return expire(state, command, term);
    case 'checkpoint':
      return checkpoint(state, command);
    case 'void':
      return voidCheckpoints(state, command);
    case 'endHold':
      return stopHolding(state, command, term);
  }
  return unreachable(command);
}

/**
 * The other half of the assertions in `change.ts`: what the entry says it did is what the state shows. A domain granted
 * twice by one entry fails here too, because the state holds only one of the two leases.
 */
function check(state: State, { granted, ended }: Applied): void {
  const { revision } = state;
  for (const lease of granted) {
    if (lease.token !== revision || state.leases.get(lease.domain) !== lease) {
      throw new AssertionFailed(`the grant of ${lease.domain} at revision ${revision} is not what the state holds`);
    }
  }
  for (const { lease } of ended) {
    const request = state.requests.byToken.get(lease.token);
    if (
      request?.finishedAt !== revision ||
      request.domain !== lease.domain ||
      state.leases.get(lease.domain) === lease
    ) {
      throw new AssertionFailed(
        `the end of lease ${lease.token} of ${lease.domain} at ${revision} is not what the state holds`,
      );
    }
  }
}
