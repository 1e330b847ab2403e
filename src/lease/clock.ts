/**
 * The commands by which the leader's clock reaches the state: Checkpoint, Void, EndCoolDown, EndHold. There is no clock
 * here: what is left of a lease is a number that the leader measured, and only the next leader reads it.
 */
import type { Domain } from '../base/ids.js';
import { endHold, open, setCheckpoint } from './change.js';
import type { CommandOf } from './commands.js';
import { handOverAll } from './hand-over.js';
import { coolDownOf, liveLease } from './lookup.js';
import type { State } from './state.js';
import type { Doing } from './types.js';

/** Notes for each listed lease that lives what is left of it. Needs no term: an older leader's lies before the next no-op. */
export function checkpoint(state: State, command: CommandOf<'checkpoint'>): void {
  for (const key of command.leases) {
    const lease = liveLease(state, key);
    if (lease !== undefined) setCheckpoint(state, lease, key.leftMs);
  }
}

/**
 * Cancels the checkpoint of each listed lease that lives, whoever wrote it (F5). The version rises even where none was
 * set: a renewal waits for this entry, and an Expire decided before that renewal must not end the lease.
 */
export function voidCheckpoints(state: State, command: CommandOf<'void'>): void {
  for (const key of command.leases) {
    const lease = liveLease(state, key);
    if (lease !== undefined) setCheckpoint(state, lease, undefined);
  }
}

/** Opens each listed domain that is closed by that very cool-down, if the entry's term is the proposer's. */
export function endCoolDown(state: State, command: CommandOf<'endCoolDown'>, term: number, doing: Doing): void {
  if (command.term !== term) return;
  const freed: Domain[] = [];
  for (const key of command.domains) {
    const coolDown = coolDownOf(state, key.domain);
    if (coolDown?.since !== key.since) continue;
    open(state, coolDown);
    doing.opened.push(coolDown);
    freed.push(key.domain);
  }
  handOverAll(state, freed, command.domains, command.atUnixMs, doing);
}

/**
 * Allows grants from here, if the entry's term is the proposer's: another leader's clock must not end this one's hold
 * (F14). Whoever waits is granted by its next call, or by the one that the leader holds for it.
 */
export function stopHolding(state: State, command: CommandOf<'endHold'>, term: number): void {
  if (command.term === term && state.holding) endHold(state);
}
