/**
 * The commands by which the leader's clock reaches the state: Checkpoint, Void, EndHold. There is no clock here: what is
 * left of a lease is a number that the leader measured, and only the next leader reads it.
 */
import { endHold, setCheckpoint } from './change.js';
import { liveLease } from './lookup.js';
import type { State } from './state.js';
import type { Applied, Command } from './types.js';

type CommandOf<Type extends Command['type']> = Extract<Command, { readonly type: Type }>;

const DONE: Applied = { result: { type: 'done' }, granted: [], ended: [] };

/** Notes for each listed lease that lives what is left of it. Needs no term: an older leader's lies before the next no-op. */
export function checkpoint(state: State, command: CommandOf<'checkpoint'>): Applied {
  for (const key of command.leases) {
    const lease = liveLease(state, key);
    if (lease !== undefined) setCheckpoint(state, lease, key.leftMs);
  }
  return DONE;
}

/**
 * Cancels the checkpoint of each listed lease that lives, whoever wrote it (F5). The version rises even where none was
 * set: a renewal waits for this entry, and an Expire decided before that renewal must not end the lease.
 */
export function voidCheckpoints(state: State, command: CommandOf<'void'>): Applied {
  for (const key of command.leases) {
    const lease = liveLease(state, key);
    if (lease !== undefined) setCheckpoint(state, lease, undefined);
  }
  return DONE;
}

/** Allows grants from here, if the entry's term is the proposer's: another leader's clock must not end this one's hold (F14). */
export function stopHolding(state: State, command: CommandOf<'endHold'>, term: number): Applied {
  if (command.term === term && state.holding) endHold(state);
  return DONE;
}
