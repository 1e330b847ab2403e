/** Appends commands as leader: those of calls, and this leader's own. */
import { assert } from '../base/assert.js';
import type { AcquireCall } from '../base/api.js';
import type { Domain } from '../base/ids.js';
import { ACQUIRE_SHARE } from '../base/limits.js';
import type { AcquireCommand } from '../lease/acquire.js';
import type { Command } from '../lease/commands.js';
import { step } from '../raft/raft.js';
import type { Effect as RaftEffect } from '../raft/types.js';
import { uncommittedBytes } from '../raft/view.js';
import { countFreeing, freedBy } from './passing.js';
import type { Context, Leadership, PendingEntry, Served } from './state.js';

/** Appends the command of a call, for which `served` waits, or says why not. */
export function tryPropose(context: Context, leadership: Leadership, command: Command, served: Served): RaftEffect {
  const payload = context.codec.encode(command);
  const uncommitted = uncommittedBytes(context.raft);
  if (command.type === 'acquire' && uncommitted > 0 && uncommitted + payload.length > acquireBytes(context)) {
    return { type: 'rejected', reason: 'uncommittedLimit' };
  }
  const effects = step(context.raft, { type: 'propose', payload, onlyInTerm: leadership.term });
  const [effect] = effects;
  assert(effects.length === 1 && effect !== undefined, 'a proposal has one immediate effect');
  if (effect.type === 'proposed') {
    served.proposed = true;
    const frees = freedBy(command);
    leadership.pending.set(effect.index, { term: effect.term, command, served, resume: undefined, frees });
    countFreeing(leadership, frees, 1);
  }
  return effect;
}

/** What may wait to be committed when an acquire is appended: the rest is for calls that keep and end leases. */
export function acquireBytes({ options }: Context): number {
  return Math.ceil(options.maxUncommittedBytes * ACQUIRE_SHARE);
}

/** Proposes the acquire of a call that is held for a waiter; false when it was not taken. */
export function proposeAcquire(context: Context, leadership: Leadership, served: Served): boolean {
  assert(served.call.type === 'acquire', `a ${served.call.type} is proposed as an acquire`);
  const command = acquireCommand(context, served, served.call);
  return tryPropose(context, leadership, command, served).type === 'proposed';
}

/** The command of an acquire, as this leader would append it now. */
export function acquireCommand(context: Context, served: Served, call: AcquireCall): AcquireCommand {
  const { domain, requestId, holder, ttlMs, waitMs, metadata, coolDownMs, slots, seenRevision } = call;
  const { principal } = served;
  return {
    type: 'acquire',
    domain,
    requestId,
    holder,
    ttlMs,
    waitMs,
    metadata,
    coolDownMs,
    slots,
    seenRevision,
    atUnixMs: context.time.unixMs,
    owner: ownerOf(served),
    principal: principal.name,
  };
}

/** Whom a request id is bound to; '' for nobody. */
export function ownerOf({ principal }: Served): string {
  return principal.authenticated ? principal.name : '';
}

/**
 * Appends an internal command: never refused for load (S9.3) unless `exempt` is false, never forwarded, bound to this term
 * (L1). `resume` is run after it is applied; `frees` are the names of which it frees places, see `passing.ts`.
 * Returns the index, or undefined when it was not taken.
 */
export function proposeInternal(
  context: Context,
  leadership: Leadership,
  command: Command,
  more: { readonly resume?: () => void; readonly exempt?: boolean; readonly frees?: readonly Domain[] } = {},
): number | undefined {
  const { resume, exempt = true, frees = [] } = more;
  const payload = context.codec.encode(command);
  const [effect] = step(context.raft, { type: 'propose', payload, onlyInTerm: leadership.term, exempt });
  if (effect?.type !== 'proposed') return undefined;
  const entry: PendingEntry = { term: effect.term, command, served: undefined, resume, frees };
  leadership.pending.set(effect.index, entry);
  countFreeing(leadership, frees, 1);
  return effect.index;
}
