/** The entry by which an operator sets the limits that the state machine uses. */
import { setLimits } from './change.js';
import type { CommandOf } from './commands.js';
import type { State } from './state.js';
import type { Result } from './types.js';

/**
 * Sets the limits that the command names. A repetition changes nothing more. What is over a lowered limit stays and goes on
 * as before: waiters are granted, leases renewed; only new requests are refused, until there is room.
 */
export function changeLimits(state: State, { change }: CommandOf<'limits'>): Result {
  const before = state.limits;
  const after = { ...before, ...change };
  setLimits(state, after);
  return { type: 'limitsChanged', before, after };
}
